"""Processes that write to one store are killed at any moment; what they acknowledged is there."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from given import turn
from writers import WriterProcess, check_kept

from snapstore.engines.log.engine import LogEngine
from snapstore.errors import Corrupt


def rounds(root: Path, count: int, rng: random.Random, longest: float) -> list[tuple[str, str]]:
    """Start four writers and kill them all, so many times; check after each."""
    acknowledged: list[tuple[str, str]] = []
    for n in range(count):
        writers = [WriterProcess(root, f"{n}-{w}", seal_at=20_000) for w in range(4)]
        begun = time.monotonic()
        while not all(w.lines for w in writers) and time.monotonic() < begun + 20:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, longest))
        for writer in rng.sample(writers, 4):
            acknowledged += writer.kill()
            time.sleep(rng.uniform(0, 0.005))
        check_kept(root, acknowledged)
    return acknowledged


def test_what_killed_processes_acknowledged_is_there(root: Path) -> None:
    acknowledged = rounds(root, 8, random.Random(11), longest=0.1)
    assert len(acknowledged) > 100
    assert {ref for ref, _ in acknowledged} >= {"shared"}
    engine = LogEngine(root)
    turn(engine, "a", "after all that")
    engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_what_killed_processes_acknowledged_is_there_after_many_rounds(
    root: Path, seed: int
) -> None:
    assert len(rounds(root, 60, random.Random(seed), longest=0.4)) > 1000


def test_a_reader_follows_writers_in_other_processes(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    reader = log_at()
    writer = WriterProcess(root, "w", seal_at=3000)
    seen = 0
    deadline = time.monotonic() + 20
    while seen < 60 and time.monotonic() < deadline:
        try:
            tip = reader.tip("shared")
        except Corrupt as damage:
            raise AssertionError("a reader took an unfinished save for damage") from damage
        if tip is not None:
            assert tip.gen >= seen
            seen = tip.gen
            assert tip.new is not None and reader.read(tip.new).id == tip.new
    check_kept(root, writer.kill())
    assert seen >= 60
    assert len(list((root / "log").glob("*.seg"))) > 1
