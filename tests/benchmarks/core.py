"""What saving, loading and moving about cost, as ratios to the physical floor in the same run.

    python -m tests.benchmarks.core [--quick]

The floor of a durable save is one write and one fdatasync of as many bytes as the save appended,
taken in turn with the saves, so that both see the same disk. Loads are compared with json.loads of
the same messages' lines. Times from a busy machine are not worth quoting; ratios mostly are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

import snapstore
from snapstore.disk import Disk
from snapstore.engine import Kind, Obj
from snapstore.engines.log.engine import LogEngine
from snapstore.ids import object_id
from snapstore.store import Store
from snapstore.values import encode
from tests.benchmarks.workload import (
    best,
    bytes_in,
    clock,
    median,
    pair,
    scratch,
    show,
    text,
    turn,
)

Row = tuple[str, str, str]


class CountingDisk(Disk):
    """The real disk, counting its syncs."""

    def __init__(self) -> None:
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)


def saves(root: Path, turns: int) -> list[Row]:
    """Durable saves of 2 KB turns against the floor."""
    disk = CountingDisk()
    store = Store(LogEngine(root / "saves", disk=disk))
    session = store.session("saves")
    _add(session, 0)
    session.save()
    before = bytes_in(root / "saves")
    _add(session, 1)
    session.save()
    payload = os.urandom(bytes_in(root / "saves") - before)
    fd = os.open(root / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    ours: list[float] = []
    floor: list[float] = []
    synced = disk.syncs
    for n in range(2, turns):
        _add(session, n)
        ours.append(clock(session.save))
        floor.append(clock(lambda: (os.write(fd, payload), os.fdatasync(fd))))
    os.close(fd)
    synced = disk.syncs - synced
    store.close()
    ratio = median(ours) / median(floor)
    return [
        ("durable save of a 2 KB turn / write + fdatasync of its bytes",
         f"{ratio:.2f} ({median(ours) * 1e6:.0f} us / {median(floor) * 1e6:.0f} us)", "1.2"),
        ("fdatasyncs a save", f"{synced / (turns - 2):.3f}", "1"),
    ]  # fmt: skip


def _add(session: snapstore.Session, number: int) -> None:
    session.history.extend(pair(number))


def lengths(root: Path, turns: int) -> list[Row]:
    """The same saves at the beginning and at the end of a long session, without waiting for the
    disk: its times vary more than what is looked for."""
    store = snapstore.open(root / "long", durable=False)
    session = store.session("long")
    early: list[float] = []
    late: list[float] = []
    for n in range(turns):
        _add(session, n)
        took = clock(session.save)
        if 100 <= n < 1100:
            early.append(took)
        elif n >= turns - 1000:
            late.append(took)
    store.close()
    return [
        (f"save at turn {turns:,} / at turn 100 (no disk in it)",
         f"{median(late) / median(early):.2f} ({median(late) * 1e6:.0f} us)", "1.1"),
        *_moves(root / "long", turns),
    ]  # fmt: skip


def _moves(root: Path, turns: int) -> list[Row]:
    def opened(act: Callable[[Store], Any]) -> Callable[[], None]:
        def run() -> None:
            with snapstore.open(root, durable=False) as store:
                act(store)

        return run

    with snapstore.open(root, durable=False) as store:
        before = bytes_in(root)
        store.session("long").fork("other", at=turns // 2)
        grew = bytes_in(root) - before
        other = store.session("other")
        other.history.append("another way")
        other.save()
    acts: list[tuple[str, Callable[[Store], Any]]] = [
        ("message n/2", lambda s: s.session("long").history[turns]),
        ("the last 20 messages", lambda s: s.session("long").history[-20:]),
        ("turn n/2", lambda s: s.session("long").at(turns // 2).label),
        ("common ancestor", lambda s: s.diff("long@1", "long@2").base),
        ("where two lines part", lambda s: s.objects.snapshots.common_ancestor(
            s.resolve("long").raw_id, s.resolve("other").raw_id)),
        ("rewind and undo", lambda s: (s.session("long").rewind(5), s.undo("long"))),
    ]  # fmt: skip
    rows = [
        (f"{what}, from opening, {turns:,} turns", f"{best(opened(act)) * 1e3:.1f} ms", "5 ms")
        for what, act in acts
    ]
    return [*rows, ("a fork", f"{grew} bytes", "1 KB")]


def bookkeeping(root: Path, turns: int) -> list[Row]:
    """Bytes a turn of two messages beside the messages themselves: what a turn grows by, less what
    its two messages take when they are compressed by themselves. They are random, so that nothing
    of the bookkeeping is hidden in a better compression of the messages."""
    packer = zstandard.ZstdCompressor(level=3)
    store = snapstore.open(root / "books", durable=False)
    session = store.session("books")
    sizes = 0
    start = 0
    for n in range(turns):
        if n == turns // 2:
            start, sizes = bytes_in(root / "books"), 0
        messages = [{"role": "user", "content": os.urandom(300).hex()} for _ in range(2)]
        sizes += len(packer.compress(b"".join(map(encode, messages))))
        session.history.extend(messages)
        session.save()
    grew = bytes_in(root / "books") - start
    store.close()
    each = (grew - sizes) / (turns - turns // 2)
    return [(f"bookkeeping a turn of two messages, {turns:,} turns", f"{each:.0f} bytes", "400")]


def loads(root: Path, messages: int, per_save: int) -> list[Row]:
    """Loading a whole history against json.loads of its lines."""
    import random

    rng = random.Random(5)
    body = [
        {"role": "user" if n % 2 == 0 else "assistant",
         "content": [{"type": "text", "text": text(rng, 80 + n % 40 * 50)}]}
        for n in range(messages)
    ]  # fmt: skip
    where = root / f"load{per_save}"
    with snapstore.open(where, durable=False) as store:
        session = store.session("load")
        for n in range(0, messages, per_save):
            session.history.extend(body[n : n + per_save])
            session.save()
    lines = root / "load.jsonl"
    lines.write_text("\n".join(map(json.dumps, body)))

    def ours() -> list[Any]:
        with snapstore.open(where) as store:
            return list(store.session("load").history)

    def plain() -> list[Any]:
        with lines.open() as file:
            return [json.loads(line) for line in file]

    assert ours() == body
    ratio = best(ours, 3) / best(plain, 3)
    mine, theirs = _peak(ours), _peak(plain)
    return [
        (f"load {messages:,} messages, {per_save} a save / json.loads", f"{ratio:.2f}", "1.5"),
        ("peak memory of that load / of the list", f"{mine / theirs:.2f}", "2"),
    ]


def _peak(run: Callable[[], Any]) -> int:
    tracemalloc.start()
    kept = run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return peak


def opening(root: Path, objects: int) -> list[Row]:
    """Opening a store of many objects and reading one."""
    engine = LogEngine(root / "many", durable=False)
    ids: list[bytes] = []
    for n in range(0, objects, 1000):
        contents = [b"object %d" % k for k in range(n, n + 1000)]
        ids += [object_id(c) for c in contents]
        engine.commit([Obj(object_id(c), Kind.CONTENT, c) for c in contents])
    engine.close()

    def run() -> None:
        opened = LogEngine(root / "many")
        opened.read(ids[objects // 3])
        opened.close()

    what = f"open a store of {objects:,} objects and read one"
    return [(what, f"{best(run) * 1e3:.1f} ms", "20 ms")]


_WRITER = """
import sys, time, snapstore
store = snapstore.open(sys.argv[1]); session = store.session(sys.argv[2])
session.save()
print("ready", flush=True); sys.stdin.readline()
done, end = 0, time.perf_counter() + float(sys.argv[3])
while time.perf_counter() < end:
    session.history.append({"role": "user", "content": f"{done} " + "lorem ipsum dolor " * 100})
    session.save()
    done += 1
print(done)
"""


def writers(root: Path, count: int, seconds: float) -> list[Row]:
    """Several processes saving into one store, against one process that only writes and syncs."""
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(root / "writers"), f"w{n}", str(seconds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for n in range(count)
    ]  # fmt: skip
    for child in children:
        assert child.stdout and child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    saved = sum(int(child.communicate()[0]) for child in children)
    fd = os.open(root / "floor2", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    payload, written, end = os.urandom(450), 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        os.write(fd, payload)
        os.fdatasync(fd)
        written += 1
    os.close(fd)
    return [
        (f"{count} processes saving / one that writes and syncs",
         f"{saved / written:.2f} ({saved / seconds:,.0f} a second / {written / seconds:,.0f})",
         "0.6, or 2,000 a second")
    ]  # fmt: skip


def startup() -> list[Row]:
    """CPU of ``snapstore --help``."""
    command = Path(sys.executable).with_name("snapstore")

    def cpu() -> float:
        before = os.times()
        subprocess.run([command, "--help"], capture_output=True, check=True)
        after = os.times()
        return (after.children_user + after.children_system) - (
            before.children_user + before.children_system
        )

    return [("snapstore --help, CPU", f"{min(cpu() for _ in range(7)):.3f} s", "0.15 s")]


def growth(root: Path, turns: int) -> list[Row]:
    """Disk for a session of which every turn stays rewindable, against its JSON."""
    store = snapstore.open(root / "growth", durable=False)
    session = store.session("growth")
    raw = 0
    for n in range(1, turns + 1):
        new = turn(n)
        raw += len(json.dumps(new, separators=(",", ":")))
        session.history.extend(new)
        session.save()
    store.close()
    return [(f"disk, {turns:,} turns, every one rewindable / raw JSON",
             f"{bytes_in(root / 'growth') / raw:.2f}", "1.0")]  # fmt: skip


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    scale = 10 if parser.parse_args().quick else 1
    assert threading.active_count() == 1
    rows: list[Row] = []
    with scratch() as root:
        rows += saves(root, 4000 // scale)
        rows += lengths(root, 100_000 // scale)
        rows += bookkeeping(root, 4000 // scale)
        rows += growth(root, 2000 // scale)
        rows += loads(root, 100_000 // scale, 10)
        rows += loads(root, 100_000 // scale, 2)
        rows += opening(root, 1_000_000 // scale)
        rows += writers(root, 4, 5.0 / scale)
    rows += startup()
    show(rows)


if __name__ == "__main__":
    main()
