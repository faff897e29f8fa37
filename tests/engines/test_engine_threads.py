"""Several threads on one engine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from given import content, head, holds_turn, save, snapshot, turn
from homes import Home, Opened

from snapstore.engine import Move
from snapstore.engines.log.engine import LogEngine
from snapstore.errors import RefMoved

THREADS = 6
TURNS = 25


def _at_once(work: Callable[[int], list[Move]]) -> list[list[Move]]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


def _insist(engine: Opened, ref: str, text: str) -> Move:
    snap = snapshot(text.encode())
    while True:
        try:
            move = engine.commit([snap], save(ref, snap.id, head(engine, ref)))
        except RefMoved:
            continue
        assert move is not None
        return move


def test_threads_with_refs_of_their_own_never_conflict(engine: Opened) -> None:
    def work(me: int) -> list[Move]:
        return [turn(engine, f"r{me}", f"turn {i} of {me}") for i in range(TURNS)]

    by_thread = _at_once(work)
    for me, moves in enumerate(by_thread):
        assert [m.gen for m in moves] == list(range(1, TURNS + 1))
        assert engine.tip(f"r{me}") == moves[-1]
        assert all(holds_turn(engine, f"turn {i} of {me}") for i in range(TURNS))
    assert len(list(engine.reflog())) == THREADS * TURNS


def test_threads_that_want_the_same_ref_each_get_their_move_in(engine: Opened) -> None:
    def work(me: int) -> list[Move]:
        return [_insist(engine, "shared", f"turn {i} of {me}") for i in range(TURNS)]

    granted = sorted((m for moves in _at_once(work) for m in moves), key=lambda m: m.gen)
    assert [m.gen for m in granted] == list(range(1, THREADS * TURNS + 1))
    assert list(engine.reflog()) == granted[::-1]


def test_threads_that_commit_the_same_object_keep_it_once(engine: Opened) -> None:
    same = content(b"what everybody says")

    def work(me: int) -> list[Move]:
        return [turn(engine, f"r{me}", f"{me}", same)]

    _at_once(work)
    assert engine.read(same.id) == same
    assert engine.stats().objects == 2 * THREADS + 1


def test_readers_are_not_disturbed_by_writers(engine: Opened) -> None:
    moves = [turn(engine, "old", f"old {i}") for i in range(40)]

    def work(me: int) -> list[Move]:
        if me % 2:
            return [turn(engine, f"r{me}", f"new {i} of {me}") for i in range(TURNS)]
        for _ in range(6):
            assert [m for m in engine.reflog() if m.ref == "old"] == moves[::-1]
            assert all(holds_turn(engine, f"old {i}") for i in range(0, 40, 3))
            assert engine.tip("old") in list(engine.tips("o"))
            assert [p for p in engine.verify() if not p.harmless] == []
        return []

    _at_once(work)


def test_handles_in_one_process_exclude_each_other(lasting: Home) -> None:
    handles = [lasting.open(), *(lasting.open() for _ in range(2))]

    def work(me: int) -> list[Move]:
        handle = handles[me % 3]
        return [_insist(handle, "shared", f"turn {i} of {me}") for i in range(12)]

    granted = sorted((m for moves in _at_once(work) for m in moves), key=lambda m: m.gen)
    assert [m.gen for m in granted] == list(range(1, THREADS * 12 + 1))
    assert all(list(handle.reflog()) == granted[::-1] for handle in handles)


def test_handles_that_make_the_store_at_the_same_moment_make_one(tmp_path: Path) -> None:
    for attempt in range(20):
        root = tmp_path / f"store-{attempt}"

        def work(me: int, root: Path = root) -> list[Move]:
            engine = LogEngine(root)
            try:
                return [turn(engine, f"r{me}", f"turn of {me}")]
            finally:
                engine.close()

        _at_once(work)
        engine = LogEngine(root)
        assert [tip.ref for tip in engine.tips()] == [f"r{me}" for me in range(THREADS)]
        engine.close()
