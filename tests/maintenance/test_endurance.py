"""What takes minutes: everything on one store at the same time, and a store of a million turns."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore.store import open_store

WRITER = """
import sys, snapstore
store = snapstore.open(sys.argv[1])
session = store.session(sys.argv[2])
n = len(session.history)
while True:
    session.history.append({"n": n, "text": sys.argv[2] * 100})
    session.scratchpad["n"] = n
    saved = session.save()
    n += 1
    print(n, saved.id, flush=True)
    if n % 50 == 0:
        session.fork(f"{sys.argv[2]}-{n}")
        session.undo()
        session.redo()
"""
COLLECTOR = """
import sys, snapstore
from datetime import timedelta
while True:
    with snapstore.open(sys.argv[1]) as store:
        store.gc(apply=True, grace=timedelta(0))
"""
READER = """
import sys, snapstore
store = snapstore.open(sys.argv[1])
while True:
    for info in store.sessions():
        numbers = [message["n"] for message in store.session(info.name).history]
        assert numbers == list(range(len(numbers))), numbers
"""
VERIFIER = """
import sys, snapstore
while True:
    with snapstore.open(sys.argv[1]) as store:
        found = [problem for problem in store.verify() if not problem.harmless]
        assert found == [], found
"""
MILLION = 1_000_000
COLLECT_MILLION = """
import resource, sys, snapstore
from datetime import timedelta
with snapstore.open(sys.argv[1], durable=False) as store:
    done = store.gc(apply=True, grace=timedelta(0))
print(done.objects, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def started(code: str, root: Path, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(root), *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed(process: subprocess.Popen[str]) -> list[tuple[int, str]]:
    """Kill it; the turns that it told of, by number and id."""
    os.kill(process.pid, signal.SIGKILL)
    told, _ = process.communicate()
    whole = (line.split() for line in told.split("\n")[:-1])
    return [(int(fields[0]), fields[1]) for fields in whole if len(fields) == 2]


@pytest.mark.slow
def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    root, rng = tmp_path / "store", random.Random(1)
    with open_store(root) as store:
        store.session("start").save()
    watching = [started(READER, root), started(VERIFIER, root)]
    acknowledged: dict[str, dict[int, str]] = {"w0": {}, "w1": {}}
    end = time.monotonic() + 120
    while time.monotonic() < end:
        writers = {name: started(WRITER, root, name) for name in acknowledged}
        collector = started(COLLECTOR, root)
        time.sleep(rng.uniform(1.0, 4.0))
        killed(collector)
        for name, writer in writers.items():
            acknowledged[name].update(killed(writer))
        assert [process.poll() for process in watching] == [None, None]
    for process in watching:
        killed(process)
    with open_store(root) as store:
        assert store.verify() == [p for p in store.verify() if p.harmless]
        for name, turns in acknowledged.items():
            assert turns
            kept = {turn.turn: turn.id for turn in store.session(name).log()}
            assert {number: kept.get(number) for number in turns} == turns
            said = [message["n"] for message in store.session(name).history]
            assert said == list(range(len(said)))


def seconds(do: Callable[[], object]) -> float:
    start = time.monotonic()
    do()
    return time.monotonic() - start


@pytest.mark.slow
def test_a_store_of_a_million_turns_is_worked_with_and_collected(tmp_path: Path) -> None:
    """Bounds are wide, for other work may go on beside it: they tell what grows with the store."""
    root = tmp_path / "store"
    with open_store(root, durable=False) as store:
        session = store.session("long")
        for n in range(MILLION):
            session.history.append({"role": "user", "content": f"message {n}"})
            session.save()
    with open_store(root, durable=False) as store:
        session = store.session("long")
        assert len(session.history) == MILLION
        steps = (
            lambda: store.resolve("long@123456").history[-1],
            lambda: session.history[777_777],
            lambda: session.history[-5:],
            lambda: store.fork(store.resolve("long@400000"), "other"),
            lambda: session.rewind(500_000),
            lambda: session.undo(),
            lambda: session.rewind(500_000),
        )
        assert max(map(seconds, steps)) < 2.0
        assert session.history[-1] == {"role": "user", "content": "message 499999"}
    collector = subprocess.run(
        [sys.executable, "-c", COLLECT_MILLION, str(root)], capture_output=True, check=True
    )
    objects, megabytes = map(int, collector.stdout.split())
    assert objects == 3 * MILLION // 2
    assert megabytes < 1500
    with open_store(root, durable=False) as store:
        assert store.verify(quick=True) == []
        assert len(store.session("long").history) == MILLION // 2
        assert seconds(lambda: store.resolve("long@123456").history[-1]) < 2.0
