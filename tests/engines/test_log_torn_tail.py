"""The last batch is cut or garbled: nobody had been told that it was saved."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import QuickDisk, batches, files, flip, put, segment_path, unwitnessed
from given import content, holds_turn, turn

from snapstore.engines.log.engine import LogEngine

TURNS = 4


@pytest.fixture
def log(root: Path) -> Path:
    """The active segment of a store with a few turns."""
    with_turns(root)
    return segment_path(root)


def with_turns(root: Path) -> None:
    """Make a store with TURNS turns of ref a."""
    engine = LogEngine(root, disk=QuickDisk())
    for i in range(TURNS):
        turn(engine, "a", f"turn {i}")
    engine.close()
    unwitnessed(root)


def check_old_or_new(root: Path) -> int:
    """How many turns are there; all but the last must be, and reading must not touch a file."""
    before = files(root)
    engine = LogEngine(root, disk=QuickDisk())
    tip = engine.tip("a")
    assert tip is not None and tip.gen in (TURNS - 1, TURNS)
    assert all(holds_turn(engine, f"turn {i}") for i in range(tip.gen))
    assert len(list(engine.reflog())) == tip.gen
    assert all(p.harmless for p in engine.verify())
    engine.close()
    assert files(root) == before
    return tip.gen


def check_goes_on(root: Path, known: int, tail: bytes) -> None:
    """The next commit succeeds; what was behind the verified end is kept aside."""
    engine = LogEngine(root, disk=QuickDisk())
    turn(engine, "a", "and on")
    engine.close()
    again = LogEngine(root, disk=QuickDisk())
    assert holds_turn(again, "and on")
    assert all(holds_turn(again, f"turn {i}") for i in range(known))
    assert list(again.verify()) == []
    again.close()
    unwitnessed(root)
    kept = [path.read_bytes() for path in (root / "torn").glob("*")]
    assert kept == ([tail] if tail else [])


def test_every_cut_leaves_the_state_before_the_last_batch(log: Path, root: Path) -> None:
    whole = log.read_bytes()
    *_, (start, end) = batches(log)
    for cut in range(start, end):
        put(log, whole[:cut])
        assert check_old_or_new(root) == TURNS - 1
        check_goes_on(root, TURNS - 1, whole[start:cut])
        for kept in (root / "torn").glob("*"):
            kept.unlink()
        put(log, whole)


def test_every_garbled_byte_leaves_the_state_before_the_last_batch(log: Path, root: Path) -> None:
    whole = log.read_bytes()
    *_, (start, end) = batches(log)
    for at in range(start, end):
        flip(log, at, 1 << at % 8)
        garbled = log.read_bytes()
        assert check_old_or_new(root) == TURNS - 1
        check_goes_on(root, TURNS - 1, garbled[start:])
        for kept in (root / "torn").glob("*"):
            kept.unlink()
        put(log, whole)


@pytest.mark.parametrize("behind", [b"\0" * 4096, b"snpB", b"snpB" * 50, bytes(range(256))])
def test_anything_behind_the_last_batch_is_set_aside(log: Path, root: Path, behind: bytes) -> None:
    with log.open("ab") as file:
        file.write(behind)
    assert check_old_or_new(root) == TURNS
    check_goes_on(root, TURNS, behind)


def test_a_batch_that_does_not_follow_on_the_last_one_is_not_part_of_the_log(
    log: Path, root: Path
) -> None:
    whole = log.read_bytes()
    (*_, (first, second), _) = batches(log)
    with log.open("ab") as file:
        file.write(whole[first:second])  # a batch of this log, but not in its place
    assert check_old_or_new(root) == TURNS
    check_goes_on(root, TURNS, whole[first:second])


def test_what_takes_the_place_of_a_stray_batch_is_read_instead_of_it(
    log: Path, log_at: Callable[..., LogEngine]
) -> None:
    whole = log.read_bytes()
    (*_, (first, second), _) = batches(log)
    with log.open("ab") as file:
        file.write(whole[first:second])
    engine = log_at()
    assert engine.tip("a") is not None  # has looked at the stray batch
    turn(engine, "a", "in its place")
    assert holds_turn(engine, "in its place")


def test_a_handle_that_is_open_already_also_sets_it_aside(
    log: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at()
    turn(engine, "a", "before")
    with log.open("ab") as file:
        file.write(b"half a batch of a process that was killed")
    turn(engine, "a", "after")
    assert holds_turn(engine, "before") and holds_turn(engine, "after")
    assert list(engine.verify()) == []


def test_verify_calls_it_harmless_and_says_where(
    log: Path, log_at: Callable[..., LogEngine]
) -> None:
    end = log.stat().st_size
    with log.open("ab") as file:
        file.write(b"half a batch")
    (problem,) = log_at().verify()
    assert (problem.kind, problem.harmless) == ("torn_tail", True)
    assert (problem.path, problem.offset) == (str(log), end)


def test_a_torn_batch_that_holds_the_file_of_another_store_is_still_a_torn_batch(
    tmp_path: Path, root: Path
) -> None:
    other = LogEngine(tmp_path / "other", disk=QuickDisk())
    for _ in range(9):
        other.commit([content(os.urandom(300))])  # what does not compress is stored as it is
    other.close()
    inner = segment_path(tmp_path / "other").read_bytes()
    engine = LogEngine(root, disk=QuickDisk())
    turn(engine, "a", "first")
    engine.commit([content(inner)])
    engine.close()
    unwitnessed(root)
    whole = segment_path(root).read_bytes()
    assert inner in whole
    put(segment_path(root), whole[:-1])
    again = LogEngine(root, disk=QuickDisk())
    turn(again, "a", "second")
    assert holds_turn(again, "first") and holds_turn(again, "second")
    again.close()
