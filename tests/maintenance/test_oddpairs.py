"""Tool results that answer no call are told, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import Place
from toolrounds import anthropic_calls, anthropic_results, chat_calls, chat_result, whole_histories

from snapstore import Store, pairs
from snapstore.engine import Touch


def saved(store: Store, name: str, *turns: list[Any]) -> None:
    session = store.session(name)
    for messages in turns:
        session.history.extend(messages)
        session.save()


def odd(store: Store) -> list[tuple[int | None, str, tuple[Touch, ...]]]:
    """Position, what is told, and the turns, of each odd result."""
    found = store.verify()
    assert all(problem.kind == "pair" and problem.harmless for problem in found)
    return [(problem.position, problem.message, problem.touches) for problem in found]


def test_a_result_without_a_call_is_told_with_its_place(store: Store) -> None:
    saved(store, "s", ["hi"], [anthropic_results(["t1"])], ["more"])
    (problem,) = store.verify()
    assert problem.kind == "pair" and problem.harmless
    assert problem.id == store.session("s").history.ids()[1]
    assert problem.position == 1
    assert problem.touches == (Touch("sessions/s", 2, 3),)
    assert problem.message == "message 1: the result of t1 has no call before it"


def test_a_call_answered_twice_is_told(store: Store) -> None:
    saved(store, "s", [chat_calls(["t1"]), chat_result("t1")], [chat_result("t1")])
    (found,) = odd(store)
    assert found == (
        2, "message 2: the result of t1 comes a second time", (Touch("sessions/s", 2, 2),)
    )  # fmt: skip


@pytest.mark.parametrize(
    "history",
    [
        [anthropic_calls(["t1"])],
        [anthropic_calls(["t1", "t2"]), anthropic_results(["t1"])],
        [chat_calls(["t1"]), "given up", chat_calls(["t1"]), chat_result("t1")],
        [anthropic_calls(["t1"]), anthropic_results(["t1"])] * 2,
        ["the words tool_use, tool_result and function_call"],
    ],
    ids=["pending", "partly answered", "given up", "the same id again", "only spoken of"],
)
def test_a_call_that_waits_and_pairs_that_are_whole_are_nothing_odd(
    store: Store, history: list[Any]
) -> None:
    saved(store, "s", *[[message] for message in history])
    assert store.verify() == []


def test_a_call_may_be_answered_turns_later_and_in_a_fork(store: Store) -> None:
    saved(store, "s", [anthropic_calls(["t1"])], ["..."])
    store.session("s").fork("other", at=1)
    for name in ("s", "other"):
        saved(store, name, [anthropic_results(["t1"])])
    assert store.verify() == []
    saved(store, "other", [anthropic_results(["t1"])])
    ((position, _, touches),) = odd(store)
    assert (position, touches) == (2, (Touch("sessions/other", 3, 3),))


def test_a_result_that_forks_share_is_told_once_with_all_of_them(store: Store) -> None:
    saved(store, "s", [chat_result("t1")], ["more"])
    store.session("s").fork("other", at=1)
    ((_, _, touches),) = odd(store)
    assert touches == (Touch("sessions/other", 1, 1), Touch("sessions/s", 1, 2))


def test_messages_that_are_kept_in_pieces_count(store: Store) -> None:
    large = {"role": "tool", "tool_call_id": "t1", "content": "long " * 40_000}
    saved(store, "s", [chat_calls(["t1"])], [large])
    assert store.verify() == []
    saved(store, "s", [large])
    assert [position for position, _, _ in odd(store)] == [2]


def test_a_history_that_no_ref_leads_to_any_more_is_left_alone(store: Store) -> None:
    saved(store, "s", ["hi"], [chat_result("t1")])
    store.session("s").rewind(1)
    assert store.verify() == []


def test_contents_that_are_not_read_tell_nothing(store: Store) -> None:
    saved(store, "s", [chat_result("t1")])
    assert store.verify(quick=True) == []
    assert store.verify(share=0.5) == []


def test_what_cannot_be_read_makes_no_result_odd(store: Store, place: Place) -> None:
    saved(store, "s", [chat_calls(["t1"])], [chat_result("t1")])
    lost = store.session("s").history.ids()[0]
    assert [problem.kind for problem in place.lacking(lost).verify()] == ["missing"]


def test_many_calls_that_nothing_answers_take_no_time(store: Store) -> None:
    """Each node remembers what waits: together as much as there are calls, not their square."""
    calls = [anthropic_calls([f"t{n}"]) for n in range(3000)]
    saved(store, "s", calls, *[[call] for call in calls[:200]])
    assert store.verify() == []


def test_each_history_is_read_once_however_much_is_odd_in_it(store: Store, place: Place) -> None:
    for n in range(60):
        for name in ("a", "b"):
            saved(store, name, [{**chat_result(f"t{n}"), "content": name}])
    fresh, asked = place.counted()
    assert len(fresh.verify()) == 120
    assert asked.read_ids.count(store.session("a").at(1).record.history) <= 4


@settings(deadline=None, max_examples=40)
@given(told=st.lists(whole_histories(4).flatmap(st.permutations), max_size=3))
def test_what_is_told_is_what_judging_each_history_finds(
    new_place: Callable[[], Place], told: list[list[Any]]
) -> None:
    with new_place() as place:
        store = place.open()
        for n, history in enumerate(told):
            saved(store, f"s{n}", *[[message] for message in history])
        expected = {
            (f"sessions/s{n}", problem.index, _said(problem))
            for n, history in enumerate(told)
            for problem in pairs.validate(history)
            if problem.kind != "pending"
        }
        found = {(t.ref, at, what) for at, what, touches in odd(store) for t in touches}
        assert found == expected


def _said(problem: pairs.Problem) -> str:
    how = "has no call before it" if problem.kind == "orphan" else "comes a second time"
    return f"message {problem.index}: the result of {problem.id} {how}"
