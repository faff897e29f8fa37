"""Running tasks: what runs, what is skipped, what is handed on, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from journal import Journal
from stores import Place

from snapstore import InvalidInput, Refused, Store, UnsupportedValue
from snapstore.tasks import Context, Event, Phase, Task


def test_phases_run_in_order_and_hand_their_results_on(store: Store, journal: Journal) -> None:
    def implement(ctx: Context) -> list[int]:
        ctx.scratchpad["seen"] = ctx.results["scaffold"]["files"]
        return [1, 2]

    report = store.run_task(
        "t", [journal.phase("scaffold", {"files": ["a.py"]}), ("implement", implement)]
    )
    assert report.ran == ["scaffold", "implement"] and report.skipped == []
    assert report.results == {"scaffold": {"files": ["a.py"]}, "implement": [1, 2]}
    assert store.session("task/t").scratchpad == {"seen": ["a.py"]}


def test_a_finished_task_runs_nothing_and_still_tells_its_results(
    place: Place, journal: Journal
) -> None:
    phases = [journal.phase("a", 1), journal.phase("b", None)]
    place.open().run_task("t", phases)
    again = place.open()
    moves = [move for move in again.engine.reflog() if move.ref.startswith("sessions/")]
    report = again.run_task("t", phases)
    assert (report.ran, report.skipped, report.results) == ([], ["a", "b"], {"a": 1, "b": None})
    assert [move for move in again.engine.reflog() if move.ref.startswith("sessions/")] == moves
    assert journal.words == ["a", "b"]


def test_an_error_comes_through_and_the_next_run_begins_with_its_phase(
    place: Place, journal: Journal
) -> None:
    a, b, c = (journal.phase(name) for name in "abc")
    with pytest.raises(RuntimeError, match="b fails"):
        place.open().run_task("t", [a, journal.failing("b"), c])
    report = place.open().run_task("t", [a, b, c])
    assert (report.ran, report.skipped) == (["b", "c"], ["a"])
    assert journal.words == ["a", "b", "b", "c"]


def test_recording_a_phase_is_two_saves(place: Place, journal: Journal) -> None:
    store, counting = place.counted()
    store.run_task("t", [journal.phase("first")])
    counting.forget()
    store.run_task("t", [journal.phase("first"), *(journal.phase(f"p{n}") for n in range(10))])
    of_lease = 2 if place.kind == "object store" else 0
    assert counting.commits == 20 + of_lease


def test_a_task_of_many_phases_is_read_back_in_bulk(place: Place, journal: Journal) -> None:
    phases = [(f"phase {n}", lambda n=n: n) for n in range(300)]
    place.open().run_task("t", phases)
    store, counting = place.counted()
    assert store.run_task("t", phases).skipped == [name for name, _ in phases]
    assert len(counting.read_ids) < 4 * 300 + 10  # two records a phase, and a list node for each


def test_a_function_is_handed_the_context_only_when_it_has_to_take_it(store: Store) -> None:
    class Callable:
        def __call__(self, ctx: Context) -> str:
            return ctx.phase

    phases: list[Any] = [
        ("nothing", lambda: "nothing"),
        ("context", lambda ctx: ctx.phase),
        ("other name", lambda c: c.task),
        *((f"bound {x}", lambda x=x: x) for x in (1, 2)),
        ("by name", lambda ctx=None: ctx.attempt),
        ("object", Callable()),
        ("builtin", dict),
    ]
    assert store.run_task("t", phases).results == {
        "nothing": "nothing", "context": "context", "other name": "t", "bound 1": 1, "bound 2": 2,
        "by name": 1, "object": "object", "builtin": {},
    }  # fmt: skip


def test_results_are_the_same_now_and_later_and_cannot_be_changed(place: Place) -> None:
    seen: list[Any] = []

    def second(ctx: Context) -> None:
        seen.append(ctx.results["first"])
        ctx.results["first"]["list"].append(1)

    phases = [("first", lambda: {"list": []}), ("second", second)]
    for _ in range(2):
        with pytest.raises(TypeError, match="read only"):
            place.open().run_task("t", phases)
    assert seen == [{"list": []}] * 2


@pytest.mark.parametrize("result", [{1, 2}, (1,), float("nan"), object(), {"a": b"x"}])
def test_a_result_that_is_not_json_is_refused_by_the_name_of_its_phase(
    store: Store, result: Any
) -> None:
    with pytest.raises(UnsupportedValue, match="phase 'odd'"):
        store.run_task("t", [Phase("odd", lambda: result, retries=3)])
    assert store.session("task/t").turn == 2  # not tried again: it would be odd again


def test_an_async_phase_is_refused_where_nobody_would_await_it(store: Store) -> None:
    async def phase() -> None: ...

    for run in (phase, lambda: phase()):
        with pytest.raises(InvalidInput, match="run_task_async"):
            store.run_task("t", [("p", run)])


def test_a_task_that_runs_itself_is_refused_instead_of_waiting_for_ever(store: Store) -> None:
    with pytest.raises(Refused, match="from within itself"):
        store.run_task("t", [("p", lambda: store.run_task("t", []) and None)])
    report = store.run_task("u", [("p", lambda: store.run_task("other", [("q", dict)]).ran)])
    assert report.results == {"p": ["q"]}


# --- what counts as the same phase ---------------------------------------------------------------


def ran(place: Place, *phases: Phase) -> list[str]:
    return place.open().run_task("t", phases).ran


def phase(name: str, **options: Any) -> Phase:
    return Phase(name, lambda: None, **options)


def test_a_changed_phase_runs_again_with_those_after_it(place: Place) -> None:
    ran(place, phase("a", version=1), phase("b"), phase("c"))
    assert ran(place, phase("a", version=1), phase("b", version=1), phase("c")) == ["b", "c"]
    assert ran(place, phase("a", version=2), phase("b", version=1), phase("c")) == ["a", "b", "c"]
    assert ran(place, phase("a", version=2), phase("b", version=1), phase("c")) == []


def test_inputs_are_compared_by_what_they_say(place: Place) -> None:
    ran(place, phase("a", inputs={"x": 1, "y": [{"b": 2, "a": 1}]}))
    assert ran(place, phase("a", inputs={"y": [{"a": 1, "b": 2}], "x": 1})) == []
    assert ran(place, phase("a", inputs={"y": [{"a": 1, "b": 3}], "x": 1})) == ["a"]
    with pytest.raises(UnsupportedValue, match="inputs of phase 'a'"):
        ran(place, phase("a", inputs={1}))


def test_those_after_a_changed_phase_run_again_also_when_the_run_was_cut_off(
    place: Place, journal: Journal
) -> None:
    ran(place, phase("a"), phase("b"), phase("c"))
    changed = [phase("a", version=2), Phase(*journal.failing("b")), phase("c")]
    with pytest.raises(RuntimeError):
        ran(place, *changed)
    assert ran(place, phase("a", version=2), phase("b"), phase("c")) == ["b", "c"]


def test_a_phase_put_in_between_makes_those_after_it_run_again(place: Place) -> None:
    ran(place, phase("a"), phase("c"))
    assert ran(place, phase("a"), phase("b"), phase("c")) == ["b", "c"]


def test_only_what_needs_a_changed_phase_runs_again_where_needs_are_told(place: Place) -> None:
    def phases(version: int) -> list[Phase]:
        return [
            phase("a", version=version),
            phase("b", needs=()),
            phase("c", needs=("a",)),
            phase("d", needs=("b",)),
        ]

    ran(place, *phases(1))
    assert ran(place, *phases(2)) == ["a", "c"]


def test_a_finished_phase_that_is_missing_now_is_an_error(place: Place, journal: Journal) -> None:
    ran(place, phase("a"), phase("b"))
    with pytest.raises(InvalidInput, match="'b' has finished"):
        ran(place, phase("a"), phase("c"))
    assert place.open().session("task/t").turn == 4
    with pytest.raises(RuntimeError):
        place.open().run_task("u", [journal.failing("never finished")])
    assert place.open().run_task("u", [("another", dict)]).ran == ["another"]


def test_finished_phases_in_another_order_are_an_error(place: Place) -> None:
    ran(place, phase("a"), phase("b"), phase("c"))
    with pytest.raises(InvalidInput, match="'c' stands before 'b'"):
        ran(place, phase("a"), phase("c"), phase("b"))


@pytest.mark.parametrize(
    ("phases", "why"),
    [
        ([phase("a"), phase("a")], "two phases called 'a'"),
        ([phase("a", needs=("b",))], "'b', which is no phase"),
        ([phase("a", needs=("b",)), phase("b", needs=("a",))], "wait for each other: 'a', 'b'"),
        ([phase("a", needs=("a",))], "wait for each other: 'a'"),
        ([phase(" ")], "cannot name a phase"),
        ([Phase("a", 1)], "cannot be called"),  # type: ignore[arg-type]
        ([phase("a", retries=-1)], "not negative"),
        ([phase("a", timeout=0)], "more than 0"),
    ],
)
def test_phases_that_make_no_sense_are_refused_before_anything_runs(
    store: Store, phases: list[Phase], why: str
) -> None:
    with pytest.raises(InvalidInput, match=why):
        store.run_task("t", phases)
    assert store.sessions() == []


def test_a_task_is_named_as_sessions_are(store: Store) -> None:
    with pytest.raises(InvalidInput, match="cannot name a session"):
        store.run_task("no good", [])
    assert store.run_task("good", []).ran == []


# --- the record ----------------------------------------------------------------------------------


def test_a_failure_is_recorded_with_its_traceback_and_the_changes_that_are_not_kept(
    store: Store,
) -> None:
    store.run_task("t", [("a", lambda ctx: ctx.scratchpad.update(kept=1, gone=2))])

    def b(ctx: Context) -> None:
        ctx.scratchpad["kept"] = {"raw": b"\0"}
        del ctx.scratchpad["gone"]
        ctx.facts["rows"] = 7
        raise ValueError("no such table")

    with pytest.raises(ValueError, match="no such table"):
        store.run_task("t", [("a", dict), ("b", b)])
    session = store.session("task/t")
    record = session.history[-1]
    assert (record["name"], record["state"], record["position"]) == ("b", "failed", 1)
    assert record["error"]["type"] == "ValueError"
    assert 'raise ValueError("no such table")' in record["error"]["traceback"]
    assert record["scratchpad"] == {
        "set": {"kept": {"raw": {"$bytes": "AA=="}}},
        "removed": ["gone"],
    }
    assert record["facts"] == {"rows": 7}
    assert session.head is not None
    assert session.head.label == "b failed: ValueError: no such table"
    assert session.scratchpad == {"kept": 1, "gone": 2}
    json.dumps(list(session.history))


def test_each_attempt_begins_with_what_the_finished_phases_left(place: Place) -> None:
    found: list[Any] = []

    def count(ctx: Context) -> None:
        found.append(ctx.scratchpad.get("n", 0))
        ctx.scratchpad["n"] = ctx.scratchpad.get("n", 0) + 1
        if len(found) < 3:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        place.open().run_task("t", [Phase("count", count, retries=1, backoff=0)])
    place.open().run_task("t", [("count", count)])
    assert found == [0, 0, 0]
    assert place.open().session("task/t").scratchpad == {"n": 1}


def test_a_phase_that_runs_again_begins_with_what_it_began_with_before(place: Place) -> None:
    def step(ctx: Context) -> None:
        ctx.scratchpad[ctx.phase] = list(ctx.scratchpad)

    def phases(version: int) -> list[Phase]:
        return [Phase("a", step), Phase("b", step, version=version), Phase("c", step)]

    place.open().run_task("t", phases(1))
    place.open().run_task("t", phases(2))
    expected = {"a": [], "b": ["a"], "c": ["a", "b"]}
    assert place.open().session("task/t").scratchpad == expected


def test_a_note_in_the_scratchpad_between_two_runs_is_seen(place: Place, journal: Journal) -> None:
    with pytest.raises(RuntimeError):
        place.open().run_task("t", [journal.failing("p")])
    session = place.open().session("task/t")
    session.scratchpad["answer"] = 42
    session.save("told")
    report = place.open().run_task("t", [("p", lambda ctx: ctx.scratchpad["answer"])])
    assert report.results == {"p": 42}


def test_who_moves_the_session_meanwhile_does_not_make_a_finished_phase_run_again(
    place: Place, journal: Journal
) -> None:
    def disturbed() -> None:
        journal.note("disturbed")
        session = place.open().session("task/t")
        session.scratchpad["note"] = "by the way"
        session.save("a note")

    store = place.open()
    store.run_task("t", [("a", dict), ("disturbed", disturbed)])
    place.open().run_task("t", [("a", dict), ("disturbed", disturbed)])
    assert journal.words == ["disturbed"]
    assert place.open().session("task/t").scratchpad == {"note": "by the way"}


def test_a_task_is_rewound_and_forked_like_a_session(place: Place, journal: Journal) -> None:
    phases = [journal.phase(name) for name in "abc"]
    store = place.open()
    store.run_task("t", phases)
    store.session("task/t").fork("task/again", at=2)
    assert place.open().run_task("again", phases).ran == ["b", "c"]
    store.session("task/t").rewind(4)
    assert place.open().run_task("t", phases).ran == ["c"]
    difference = store.diff("task/t", "task/again")
    assert difference.base is not None and difference.base.turn == 2


def test_an_error_that_cannot_say_what_it_is_is_recorded_all_the_same(store: Store) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def mute() -> None:
        raise MuteError

    with pytest.raises(MuteError):
        store.run_task("t", [("mute", mute)])
    assert store.session("task/t").history[-1]["error"]["type"] == "MuteError"


# --- retries -------------------------------------------------------------------------------------


def test_a_failed_phase_is_tried_again_after_longer_and_longer_pauses(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("snapstore.tasks.runner.time.sleep", slept.append)
    events: list[Event] = []
    attempts: Iterator[int] = iter(range(1, 9))

    def flaky(ctx: Context) -> int:
        assert ctx.attempt == next(attempts)
        if ctx.attempt < 4:
            raise OSError("not yet")
        return ctx.attempt

    report = store.run_task(
        "t", [Phase("flaky", flaky, retries=5, backoff=0.5)], watch=events.append
    )
    assert report.results == {"flaky": 4} and slept == [0.5, 1.0, 2.0]
    assert [event.retry_in for event in events if event.kind == "failed"] == slept
    states = [m["state"] for m in store.session("task/t").history if m["type"] == "phase"]
    assert states == ["started", "failed"] * 3 + ["started", "done"]


def test_the_pauses_end_at_a_minute_and_the_tries_at_their_number(store: Store) -> None:
    patient = phase("p", retries=20, backoff=10)
    assert [patient.pause(n) for n in (1, 2, 3, 4, 20, 21)] == [10, 20, 40, 60, 60, None]

    def always() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        store.run_task("t", [Phase("p", always, retries=2, backoff=0)])
    states = [m["state"] for m in store.session("task/t").history if m["type"] == "phase"]
    assert states == ["started", "failed"] * 3


def test_an_interruption_is_recorded_as_one_and_not_tried_again(store: Store) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.run_task("t", [Phase("p", interrupted, retries=5)])
    assert store.session("task/t").history[-1]["state"] == "interrupted"
    assert store.session("task/t").turn == 2


# --- as an object --------------------------------------------------------------------------------


def test_a_task_can_be_written_as_decorated_functions(store: Store) -> None:
    release = Task("release")

    @release.phase
    def build() -> str:
        """Build it."""
        return "wheel"

    @release.phase(name="send it", retries=1, version="1")
    def upload(ctx: Context) -> str:
        return f"sent {ctx.results['build']}"

    assert build() == "wheel"
    assert release.run(store).results == {"build": "wheel", "send it": "sent wheel"}
    assert [p.version for p in release] == [None, "1"]
    with pytest.raises(InvalidInput, match="has a phase 'build' already"):
        release.phase(build)
