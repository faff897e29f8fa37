"""What captures and restores cost: counted, not timed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from overdisk import OpenStore
from pictures import fill

from snapstore import Session, Store
from snapstore.engine import Obj


class Counted:
    """Reads of a store's engine."""

    def __init__(self, store: Store, patch: pytest.MonkeyPatch) -> None:
        self.reads = 0
        read = store.engine.read

        def counting(object_id: bytes) -> Obj:
            self.reads += 1
            return read(object_id)

        patch.setattr(store.engine, "read", counting)


def bound(store: Store, work: Path) -> Session:
    session = store.session("s")
    session.worktree = work
    return session


def test_a_restore_costs_the_same_after_ten_turns_and_after_hundreds(
    open_store: OpenStore, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(work, {f"d{n}/f{m}": "x" for n in range(5) for m in range(5)})
    session = bound(open_store(), work)
    costs: list[int] = []
    for upto in (10, 300):
        while session.turn < upto:
            fill(work, {"edited": f"turn {session.turn}", f"d0/new{session.turn}": "y"})
            session.save(f"turn {session.turn}")
        store = open_store()
        counted = Counted(store, monkeypatch)
        bound(store, work).rewind(upto - 1, files=True)
        costs.append(counted.reads)
        store = open_store()
        session = bound(store, work)
        session.undo()
    assert costs[1] <= costs[0] + 20, costs


def test_a_hundred_captures_with_one_edit_each_cost_little_more_than_the_first(
    open_store: OpenStore, work: Path
) -> None:
    rnd = random.Random(1)
    fill(work, {f"d{n % 20}/f{n}": rnd.randbytes(4000) for n in range(400)})
    store = open_store()
    session = bound(store, work)
    session.save()
    first = store.engine.stats().bytes
    for n in range(100):
        fill(work, {"d7/f7": f"edit {n}"})
        session.save(f"{n}")
    # Two maps of some 20 entries, a root, a snapshot, a message-sized file.
    assert store.engine.stats().bytes - first < 100 * 4000


def test_a_capture_of_what_is_known_asks_the_store_for_nothing(
    open_store: OpenStore, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(work, {f"d{n % 20}/f{n}": f"{n}" for n in range(200)})
    store = open_store()
    session = bound(store, work)
    session.save()
    import time

    time.sleep(0.06)
    session.save()
    counted = Counted(store, monkeypatch)
    session.save()
    assert counted.reads == 0


def test_a_fork_of_a_large_tree_costs_nothing(open_store: OpenStore, work: Path) -> None:
    fill(work, {f"f{n}": "x" * n for n in range(300)})
    store = open_store()
    session = bound(store, work)
    session.save()
    before = store.engine.stats().bytes
    for n in range(20):
        session.fork(f"fork{n}")
    assert store.engine.stats().bytes - before < 20 * 1000
