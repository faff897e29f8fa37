"""How long a writer waits while a collection swaps the segments of its store.

    python -m tests.benchmarks.pause [--quick]

One process saves small turns as fast as it can, another collects a store of 200,000 objects, half
of which go. The longest time from one save to the next is told for the saves before the collection,
for those while it copies, and for the one into which the swap falls: with the processor time that
the writer itself used in it, for the rest is waiting.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import snapstore
from tests.benchmarks.workload import pair, scratch, show

ROUNDS = 3
_WRITER = """
import json, sys, time, snapstore
root, durable = sys.argv[1:]
store = snapstore.open(root, durable=durable == "durable")
session = store.session("writer")
seen, swaps, last, used = [], 0, time.monotonic(), time.process_time()
for n in range(1 << 30):
    session.history.append({"role": "user", "content": f"message {n}"})
    session.save()
    rewrites = store.engine.rewrites
    now, cpu = time.monotonic(), time.process_time()
    if now - last > 0.002 or rewrites > swaps or n < 2:
        seen.append((last, now, cpu - used, rewrites > swaps))
    swaps, last, used = rewrites, now, cpu
    if n == 0:
        print("saving", flush=True)
    if n % 64 == 0 and (store.engine.root / "enough").exists():
        break
print(json.dumps([n + 1, seen]))
"""
_COLLECTOR = """
import datetime, sys, snapstore
with snapstore.open(sys.argv[1]) as store:
    print("open", flush=True)
    sys.stdin.read(1)
    print(store.gc(apply=True, grace=datetime.timedelta(0)).objects, flush=True)
"""


def build(root: Path, turns: int) -> int:
    """A store of turns in sessions of 500, every other of which is deleted; its objects."""
    with snapstore.open(root, durable=False) as store:
        for first in range(0, turns, 500):
            session = store.session(f"s{first // 500}")
            for n in range(first, first + 500):
                session.history.extend(pair(n))
                session.save()
        for first in range(0, turns, 1000):
            store.delete(f"s{first // 500}")
        return store.engine.stats().objects


def _started(code: str, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *args]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _heard(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def measure(root: Path, durable: str) -> list[str]:
    """One round: seconds of gc and saves made; the longest gaps before, while copying, and in the
    swap, in ms."""
    collector = _started(_COLLECTOR, str(root))
    _heard(collector)
    writer = _started(_WRITER, str(root), durable)
    _heard(writer)
    time.sleep(3)
    start = time.monotonic()
    collector.communicate("!")
    end = time.monotonic()
    (root / "enough").touch()
    saves, seen = json.loads(writer.communicate()[0].splitlines()[-1])
    gaps = [(last, 1000 * (now - last), 1000 * cpu, swap) for last, now, cpu, swap in seen[2:]]
    before = [(gap, cpu) for last, gap, cpu, _ in gaps if last < start]
    copying = [(gap, cpu) for last, gap, cpu, swap in gaps if start <= last < end and not swap]
    swaps = [(gap, cpu) for _, gap, cpu, swap in gaps if swap]
    return [f"{end - start:.0f} s, {saves} saves", *map(_longest, (before, copying, swaps))]


def _longest(gaps: list[tuple[float, float]]) -> str:
    gap, cpu = max(gaps, default=(0.0, 0.0))
    return f"{gap:.0f} ({cpu:.0f} busy)"


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the store, one round")
    quick = parser.parse_args().quick
    rows: list[tuple[str, str, str]] = []
    with scratch() as folder:
        objects = build(folder / "store", 5_000 if quick else 50_000)
        for durable in ("not durable", "durable"):
            for _ in range(1 if quick else ROUNDS):
                copy = folder / "copy"
                shutil.copytree(folder / "store", copy)
                gc, before, copying, swap = measure(copy, durable)
                rows.append((f"{durable}: gc of {objects:,} objects beside a writer", gc, ""))
                rows.append(("  longest ms between saves before / while it copies",
                             f"{before} / {copying}", ""))  # fmt: skip
                rows.append(("  ms between saves in the swap", swap, "50"))
                shutil.rmtree(copy)
    show(rows)


if __name__ == "__main__":
    main()
