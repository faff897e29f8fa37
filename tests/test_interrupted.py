"""Ctrl-C at any place: what was acknowledged is there, and both this handle and others go on."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from interrupts import everywhere
from stores import Place

from snapstore import PhaseTimedOut, Session, SnapstoreError, Store
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.maintenance.purge import purge
from snapstore.tasks import Phase

AT_ONCE = timedelta(0)
STEPS = {"memory": 1, "log": 3, "object store": 11}
"""Every how many places it comes: a longer way has more of them."""


def message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def told(session: Session) -> list[str]:
    return [each["content"] for each in session.history]


def add(session: Session, text: str) -> None:
    session.history.append(message(text))
    session.save(text)


@pytest.mark.parametrize("step", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_save_that_was_interrupted_is_repeated_and_keeps_each_message_once(
    place: Place, step: int
) -> None:
    session = place.open().session("a")
    add(session, "first")
    expected = ["first"]
    for n, ctrl_c in enumerate(everywhere(step=step or STEPS[place.kind])):
        session.history.append(message(f"m{n}"))
        session.scratchpad["n"] = n
        with ctrl_c:
            session.save(f"t{n}")
        seen = told(place.open().session("a"))
        assert seen in (expected, [*expected, f"m{n}"])
        assert ctrl_c.came or len(seen) == len(expected) + 1
        expected.append(f"m{n}")
        add(place.open().session("other"), f"o{n}")
        session.save(f"t{n}")
        assert told(session) == told(place.open().session("a")) == expected
        assert session.scratchpad["n"] == n and session.turn == n + 2
    assert n > 20
    assert list(place.open().verify()) == []


@pytest.mark.parametrize("step", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_save_that_was_interrupted_and_not_repeated_stands_in_no_way(
    place: Place, step: int
) -> None:
    session = place.open().session("a")
    add(session, "first")
    for n, ctrl_c in enumerate(everywhere(step=step or 2 * STEPS[place.kind])):
        session.history.append(message(f"m{n}"))
        with ctrl_c:
            session.save()
        fork = None
        if session.unsaved is False:
            fork = session.fork(f"fork{n}")
        add(session, f"and m{n}")
        assert told(session)[-2:] == [f"m{n}", f"and m{n}"]
        assert told(place.open().session("a")) == told(session)
        assert fork is None or told(fork)[-1] == f"m{n}"
    assert len(told(session)) == 2 * n + 3
    assert sorted(info.name for info in place.open().sessions() if "+" in info.name) == []


def test_going_back_that_was_interrupted_shows_one_turn_whole(place: Place) -> None:
    session = place.open().session("a")
    for n in range(4):
        session.scratchpad["n"] = n
        add(session, f"turn {n}")
    for n, ctrl_c in enumerate(everywhere(step=STEPS[place.kind])):
        with ctrl_c:
            if n % 2:
                session.reload()
            else:
                session.rewind(2 if session.turn == 4 else 4, force=True)
        shown = len(told(session))
        assert shown in (2, 4) and session.scratchpad["n"] == shown - 1 and session.turn == shown
        session.reload()


@pytest.mark.parametrize("slowly", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_first_save_that_was_interrupted_makes_the_store_when_it_is_repeated(
    new_place: Callable[[], Place], slowly: bool
) -> None:
    for ctrl_c in everywhere(step=1 if slowly else 23):
        with new_place() as place:
            session = place.open().session("a")
            session.history.append(message("first"))
            with ctrl_c:
                session.save()
            session.save()
            add(session, "second")
            assert told(place.open().session("a")) == ["first", "second"]
            assert list(place.open().verify()) == []


def with_brief_leases(store: Store) -> Store:
    """Where a lease that could not be given back has to run out, let it be soon."""
    if isinstance(store.engine, ObjectStoreEngine):
        store.engine.lease_time = 0.3
    return store


def test_a_task_that_was_interrupted_goes_on_in_the_same_handle(
    new_place: Callable[[], Place],
) -> None:
    for ctrl_c in everywhere(step=67):
        with new_place() as place:
            store, ran = with_brief_leases(place.open()), Counter[str]()
            phases = [
                Phase(name, partial(ran.update, [name]), timeout=60)
                for name in ("one", "two", "three")
            ]
            with ctrl_c:
                store.run_task("t", phases)
            store.run_task("t", phases)
            again = with_brief_leases(place.open())
            again.run_task("t", phases)
            with pytest.raises(PhaseTimedOut):
                again.run_task("slow", [Phase("slow", partial(time.sleep, 9), timeout=0.01)])
            assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
            assert set(ran) == {"one", "two", "three"} and ran.total() <= 4
            assert list(again.verify()) == []


# --- everything else ---------------------------------------------------------------------------


def fill(store: Store) -> None:
    """Save a line of six turns, a fork, and a session that is deleted."""
    session = store.session("a")
    for n in range(6):
        add(session, f"turn {n}")
    add(session.fork("fork", at=3), "on the fork")
    add(store.session("gone"), "to be let go of")
    store.delete("gone")


def filled(root: Path, work: Path) -> LogEngine:
    """An engine on such a store, which has files too."""
    engine = LogEngine(root, durable=False)
    store = Store(engine)
    fill(store)
    files = store.session("files")
    work.mkdir()
    files.worktree = work
    for text in ("one", "two"):
        (work / "file.txt").write_text(text)
        add(files, text)
    return engine


def save_files(store: Store) -> None:
    session = store.session("files")
    assert session.worktree is not None
    (session.worktree / "file.txt").write_text("three")
    session.save("three")


MOVES: dict[str, tuple[Callable[[Store], object], int]] = {
    "rewind": (lambda store: store.session("a").rewind(2), 17),
    "undo": (lambda store: store.session("a").undo(), 17),
    "fork": (lambda store: store.session("a").fork("new", at=2), 17),
    "tag": (lambda store: store.tag("good", store.session("a").at(2)), 17),
    "delete": (lambda store: store.delete("fork"), 11),
    "rename": (lambda store: store.rename("fork", "other"), 13),
    "save files": (save_files, 23),
    "rewind files": (lambda store: store.session("files").rewind(1, files=True), 47),
    "restore files": (lambda store: store.session("files").restore(1), 47),
    "read": (lambda store: told(store.session("a")), 17),
    "verify": (lambda store: list(store.verify()), 61),
    "collect": (lambda store: store.gc(apply=True, grace=AT_ONCE), 307),
    "purge": (lambda store: purge(store, "turn 3", apply=True), 607),
}


@pytest.mark.parametrize("what", MOVES)
def test_what_was_interrupted_harms_nobody(what: str, tmp_path: Path) -> None:
    move, step = MOVES[what]
    for n, ctrl_c in enumerate(everywhere(step=step)):
        root, work = tmp_path / f"store{n}", tmp_path / f"work{n}"
        store = Store(filled(root, work))
        with ctrl_c:
            move(store)
        with Store(LogEngine(root, durable=False)) as fresh:
            assert_whole(fresh, purged=what == "purge")
            assert told(fresh.session("files")) in (["one"], ["one", "two"])
            add(fresh.session("b"), "by another handle")
        with suppress(SnapstoreError):  # it may have been done
            move(store)
        session = store.session("a")
        before = told(session)
        add(session, "and on")
        assert told(store.session("a")) == [*before, "and on"]
        assert_whole(store, purged=what == "purge")
        store.close()
    assert n > 5


@pytest.mark.parametrize("what", ["rewind", "fork", "tag", "rename", "collect", "purge"])
def test_nor_does_it_on_any_engine(what: str, new_place: Callable[[], Place]) -> None:
    move, step = MOVES[what]
    for ctrl_c in everywhere(step=step):
        with new_place() as place:
            store = place.open()
            fill(store)
            with ctrl_c:
                move(store)
            fresh = place.open()
            assert_whole(fresh, purged=what == "purge")
            add(fresh.session("b"), "by another handle")
            with suppress(SnapstoreError):
                move(store)
            session = store.session("a")
            before = told(session)
            add(session, "and on")
            assert told(place.open().session("a")) == [*before, "and on"]
            assert list(store.verify()) == []


def assert_whole(store: Store, *, purged: bool) -> None:
    """Nothing is damaged, and the line is there, as it was or as it is to be."""
    problems = list(store.verify())
    assert all(problem.harmless and purged for problem in problems), problems
    line = told(store.session("a"))
    if not purged:
        assert line[:2] == ["turn 0", "turn 1"] and len(line) in (2, 3, 5, 6, 7)
