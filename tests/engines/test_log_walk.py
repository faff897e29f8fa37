"""Walking a history back: each step is looked for in the batch before, and found there or not."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import QuickDisk, flip, segment_path
from given import Keeping, content, snapshot, turn

from snapstore.engine import Move, Obj
from snapstore.engines.log import caches
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.segment import Segment
from snapstore.errors import Corrupt, ObjectMissing

TURNS = 40


@pytest.fixture(params=[1 << 20, 3000], ids=["one segment", "many segments"])
def engine(request: pytest.FixtureRequest, log_at: Callable[..., LogEngine]) -> LogEngine:
    made = log_at(disk=QuickDisk(), seal_at=request.param)
    for n in range(TURNS):
        turn(made, "a", f"turn {n}")
    made.close()
    return log_at(disk=QuickDisk(), seal_at=request.param)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was searched for in a segment, from now on."""
    searched: list[bytes] = []
    find = Segment.find

    def counted(self: Segment, object_id: bytes) -> object:
        searched.append(object_id)
        return find(self, object_id)

    monkeypatch.setattr(Segment, "find", counted)
    return searched


def saved(n: int) -> Obj:
    return snapshot(f"snapshot of turn {n}".encode())


def test_a_walk_back_searches_only_where_it_enters_a_segment(
    engine: LogEngine, searches: list[bytes]
) -> None:
    back = [saved(n) for n in reversed(range(TURNS))]
    assert [engine.read(o.id) for o in back] == back
    segments = len(engine._log.segments)
    assert len(searches) <= 3 * segments * segments
    if segments == 1:
        assert len(searches) == 2


def test_messages_read_in_their_order_are_found_behind_each_other(
    engine: LogEngine, searches: list[bytes]
) -> None:
    messages = [content(f"message of turn {n}".encode()) for n in range(TURNS)]
    for message in messages:  # so that all batches are at hand
        engine.read(message.id)
    searches.clear()
    assert engine.read_many([m.id for m in messages]) == messages
    segments = len(engine._log.segments)
    assert len(searches) <= segments * segments


def test_any_other_order_finds_the_same(engine: LogEngine) -> None:
    rng = random.Random(3)
    wanted = [saved(n) for n in range(TURNS)]
    wanted += [content(f"message of turn {n}".encode()) for n in range(TURNS)]
    for _ in range(20):
        start = rng.randrange(3, TURNS)
        for n in (start, start - 1, start - 2, rng.randrange(TURNS), start - 3):
            assert engine.read(saved(n).id) == saved(n)
        mixed = rng.choice(wanted)
        assert engine.read(mixed.id) == mixed


def test_what_is_not_there_is_not_found_in_the_middle_of_a_walk(engine: LogEngine) -> None:
    for n in (30, 29, 28):
        engine.read(saved(n).id)
    with pytest.raises(ObjectMissing):
        engine.read(saved(TURNS).id)
    assert engine.read(saved(27).id) == saved(27)


def test_a_damaged_batch_on_the_way_is_told(
    root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "WORTH_CLOSING", 2)  # so that damage is met where it is read
    engine = log_at(disk=QuickDisk())
    moves: list[Move] = [turn(engine, "a", f"turn {n}") for n in range(TURNS)]
    offset = engine._log.locate(moves[20].new or b"")[0].where[1]
    engine.close()
    flip(segment_path(root), offset + 60)
    again = log_at(disk=QuickDisk())
    for n in reversed(range(21, TURNS)):
        assert again.read(saved(n).id) == saved(n)
    with pytest.raises(Corrupt):
        again.read(saved(20).id)
    for n in reversed(range(20)):
        assert again.read(saved(n).id) == saved(n)


def test_a_walk_goes_on_where_a_rewrite_put_things(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine, other = log_at(disk=QuickDisk()), log_at(disk=QuickDisk())
    for n in range(TURNS):
        turn(engine, "a", f"turn {n}")
    for n in (39, 38, 37):
        assert engine.read(saved(n).id) == saved(n)
    other.rewrite(Keeping([content(b"message of turn 5").id]), now=0, grace=0)
    engine.tip("a")
    for n in reversed(range(37)):
        assert engine.read(saved(n).id) == saved(n)
