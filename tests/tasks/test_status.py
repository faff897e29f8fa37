"""How far tasks have come, and taking back that a phase finished."""

from __future__ import annotations

from typing import Any

import pytest
from journal import Journal
from stores import Place

from snapstore import Locked, NotFound, Store
from snapstore.tasks import Context, Phase, reset, status, tasks


def states(store: Store, name: str = "t") -> list[tuple[str, str]]:
    return [(phase.name, phase.state) for phase in status(store, name).phases]


def test_each_phase_has_a_state(place: Place, journal: Journal) -> None:
    store = place.open()
    seen: list[Any] = []
    phases = [
        journal.phase("a", {"n": 1}),
        ("b", lambda: seen.extend(states(place.open() if seen else store))),
        journal.failing("c"),
        journal.phase("d"),
    ]
    with pytest.raises(RuntimeError):
        store.run_task("t", phases)
    assert seen == [("a", "done"), ("b", "running"), ("c", "waiting"), ("d", "waiting")]
    found = status(store, "t")
    assert [p.state for p in found.phases] == ["done", "done", "failed", "waiting"]
    assert found.phases[0].result == {"n": 1} and found.phases[0].seconds is not None
    assert found.phases[2].error == "RuntimeError: c fails"
    assert found.holder is None and found.finished == 2
    assert tasks(store) == ["t"]


def test_one_whose_runner_was_killed_is_interrupted(place: Place) -> None:
    class Killed(BaseException):
        pass

    def killed(ctx: Context) -> None:
        ctx.once("mail", lambda: (_ for _ in ()).throw(Killed()))

    with pytest.raises(Killed):
        place.open().run_task("t", [("p", killed)])
    store = place.open()
    store.session("task/t").rewind(2)  # as if the end had not been recorded
    assert states(store) == [("p", "interrupted")]
    assert status(store, "t").uncertain == ("mail",)


def test_a_reset_phase_runs_again_with_those_after_it(place: Place, journal: Journal) -> None:
    phases = [journal.phase(name) for name in "abc"]
    store = place.open()
    store.run_task("t", phases)
    assert reset(store, "t", "b") == ["b", "c"]
    assert states(store) == [("a", "done"), ("b", "waiting"), ("c", "waiting")]
    assert place.open().run_task("t", phases).ran == ["b", "c"]
    assert states(place.open()) == [("a", "done"), ("b", "done"), ("c", "done")]


def test_only_what_needs_the_phase_runs_again_where_needs_are_told(store: Store) -> None:
    phases = [Phase(n, dict, needs=needs) for n, needs in (("a", ()), ("b", ()), ("c", ("a",)))]
    store.run_task("t", phases)
    assert reset(store, "t", "a") == ["a", "c"]
    assert store.run_task("t", phases).ran == ["a", "c"]


def test_undo_takes_a_reset_back(place: Place, journal: Journal) -> None:
    phases = [journal.phase(name) for name in "ab"]
    store = place.open()
    store.run_task("t", phases)
    reset(store, "t", "a")
    store.session("task/t").undo()
    assert place.open().run_task("t", phases).ran == []


def test_a_reset_lets_a_phase_go_that_is_no_phase_any_more(store: Store, journal: Journal) -> None:
    store.run_task("t", [journal.phase("old")])
    assert reset(store, "t", "old") == ["old"]
    assert store.run_task("t", [journal.phase("new")]).ran == ["new"]


def test_unknown_tasks_and_phases_are_not_found(store: Store, journal: Journal) -> None:
    store.run_task("t", [journal.phase("a"), journal.phase("b")])
    with pytest.raises(NotFound, match="it has: a, b"):
        reset(store, "t", "c")
    for look in (status, lambda s, n: reset(s, n, "a")):
        with pytest.raises(NotFound, match="there is no task u"):
            look(store, "u")  # type: ignore[operator]


def test_a_task_under_way_is_not_reset(store: Store) -> None:
    def phase() -> None:
        with pytest.raises(Locked, match="being run by process"):
            reset(store, "t", "p")

    store.run_task("t", [("p", phase)])
