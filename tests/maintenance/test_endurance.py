"""Writers, readers, collections, verification and kill -9 on one store at the same time."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
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
    session.save()
    n += 1
    print(n, flush=True)
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
    assert [p for p in store.verify() if not p.harmless] == []
"""


def started(code: str, root: Path, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(root), *args]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def killed(process: subprocess.Popen[str]) -> int:
    """Kill it; the last number that it told, 0 for none."""
    os.kill(process.pid, signal.SIGKILL)
    told, _ = process.communicate()
    return int(next((line for line in reversed(told.split("\n")) if line.isdigit()), 0))


@pytest.mark.slow
def test_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    root, rng = tmp_path / "store", random.Random(1)
    with open_store(root) as store:
        store.session("start").save()
    reader = started(READER, root)
    acknowledged = {"w0": 0, "w1": 0}
    end = time.monotonic() + 120
    while time.monotonic() < end:
        writers = {name: started(WRITER, root, name) for name in acknowledged}
        collector = started(COLLECTOR, root)
        time.sleep(rng.uniform(1.0, 4.0))
        killed(collector)
        for name, writer in writers.items():
            acknowledged[name] = max(acknowledged[name], killed(writer))
        assert reader.poll() is None
    killed(reader)
    with open_store(root) as store:
        assert min(acknowledged.values()) > 0
        for name, least in acknowledged.items():
            assert len(store.session(name).history) >= least
        assert [problem for problem in store.verify() if not problem.harmless] == []
