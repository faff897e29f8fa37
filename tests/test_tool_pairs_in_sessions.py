"""No trim, compaction, rewind or fork cuts between a call and its results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import Place
from toolrounds import (
    Message,
    anthropic_calls,
    anthropic_results,
    chat_calls,
    chat_result,
    response_call,
    whole_histories,
)

from snapstore import InvalidInput, Session, Store, pairs
from snapstore import open as open_store

WIDEST_ROUND = 7
"""Messages in the longest round: what a border may be rounded outwards by."""


def session_of(messages: list[Message]) -> Session:
    """An unsaved session with these messages."""
    session = open_store("memory://").session("s")
    session.history.extend(messages)
    return session


@given(messages=whole_histories(), keep=st.integers(0, 40))
@settings(deadline=None)
def test_trim_keeps_whole_pairs_and_at_least_what_was_asked_for(
    messages: list[Message], keep: int
) -> None:
    session = session_of(messages)
    removed = session.trim(keep)
    left = list(session.history)
    assert left == messages[removed:]
    assert pairs.validate(left) == []
    assert min(keep, len(messages)) <= len(left) <= keep + WIDEST_ROUND


@given(
    messages=whole_histories(), cuts=st.lists(st.integers(0, 12), max_size=5), saved=st.booleans()
)
@settings(deadline=None)
def test_chained_compactions_and_trims_leave_no_orphan(
    messages: list[Message], cuts: list[int], saved: bool
) -> None:
    session = session_of(messages)
    for n, keep in enumerate(cuts):
        if n % 2:
            session.trim(keep)
        else:
            before = list(session.history)
            replaced = session.compact(f"summary {n}", keep)
            assert session.history[0] == {"role": "user", "content": f"summary {n}"}
            assert session.history[1:] == before[replaced:]
        assert pairs.validate(session.history) == []
        if saved:
            session.save()


@given(messages=whole_histories(6), keep=st.integers(0, 6), calls=st.sampled_from([
    [anthropic_calls(["t1", "t2"])],
    [chat_calls(["t1", "t2"]), chat_result("t2")],
    [response_call("t1"), response_call("t2")],
]))  # fmt: skip
@settings(deadline=None)
def test_a_call_in_flight_is_never_trimmed_off(
    messages: list[Message], keep: int, calls: list[Message]
) -> None:
    session = session_of([*messages, *calls])
    waiting = [(call["id"], call["name"]) for call in session.pending_tool_calls]
    assert waiting
    session.trim(keep)
    assert [(call["id"], call["name"]) for call in session.pending_tool_calls] == waiting
    assert {problem.kind for problem in pairs.validate(session.history)} == {"pending"}


@given(messages=whole_histories(5), at=st.data())
@settings(deadline=None, max_examples=50)
def test_every_turn_is_as_whole_after_rewind_and_fork_as_it_was_saved(
    messages: list[Message], at: st.DataObject
) -> None:
    session = session_of([])
    kept = []
    for start in range(0, len(messages), 3):
        session.history.extend(messages[start : start + 3])
        session.save()
        kept.append(pairs.validate(session.history))
    for turn in range(len(kept), 0, -1):
        assert pairs.validate(session.fork(f"f{turn}", at=turn).history) == kept[turn - 1]
        session.rewind(turn)
        assert pairs.validate(session.history) == kept[turn - 1]


def test_trim_refuses_a_negative_number(store: Store) -> None:
    with pytest.raises(InvalidInput):
        store.session("s").trim(-1)


def test_turns_before_a_trim_stay_rewindable(store: Store, place: Place) -> None:
    session = store.session("s")
    messages = [f"message {n}" for n in range(600)]
    for start in range(0, 600, 100):
        session.history.extend(messages[start : start + 100])
        session.save()
    assert session.trim(keep=40) == 560
    session.save("trimmed")
    session.compact("what happened", keep=10)
    session.save("compacted")
    again = place.open().session("s")
    assert again.history == [{"role": "user", "content": "what happened"}, *messages[-10:]]
    assert again.rewind(7).label == "trimmed"
    assert again.history == messages[-40:]
    for turn in range(6, 0, -1):
        again.rewind(turn)
        assert again.history == messages[: turn * 100]


def test_a_summary_can_be_a_message_of_any_shape(store: Store) -> None:
    session = store.session("s")
    session.history.extend(["a", "b"])
    assert session.compact({"type": "summary", "text": "ab"}) == 2
    assert session.history == [{"type": "summary", "text": "ab"}]


# --- calls without a result ------------------------------------------------------------------

ASKED = {"role": "user", "content": "go"}


def test_pending_calls_are_reported_and_kept_as_they_are(store: Store, place: Place) -> None:
    session = store.session("s")
    session.history.extend([ASKED, anthropic_calls(["t1", "t2"])])
    session.save()
    again = place.open().session("s")
    assert again.pending_tool_calls == [
        {"id": "t1", "name": "Bash", "index": 1},
        {"id": "t2", "name": "Bash", "index": 1},
    ]
    assert again.history == [ASKED, anthropic_calls(["t1", "t2"])]
    assert not again.unsaved


@pytest.mark.parametrize(
    "calls",
    [
        [anthropic_calls(["t1", "t2"])],
        [chat_calls(["t1", "t2"])],
        [response_call("t1"), response_call("t2")],
    ],
    ids=["anthropic", "chat", "responses"],
)
@pytest.mark.parametrize("how", ["answer", "drop"])
def test_repair_mends_what_is_pending_and_can_be_undone(
    store: Store, calls: list[Message], how: str
) -> None:
    session = store.session("s")
    session.history.extend([ASKED, *calls])
    session.save()
    assert session.repair(how) == 2  # type: ignore[arg-type]
    assert pairs.validate(session.history) == []
    assert session.history[0] == ASKED
    session.save("repaired")
    assert session.repair(how) == 0  # type: ignore[arg-type]
    session.undo()
    assert session.history == [ASKED, *calls]


def test_repair_that_finds_nothing_changes_nothing(store: Store) -> None:
    session = store.session("s")
    session.history.extend([ASKED, anthropic_calls(["t1"]), anthropic_results(["t1"])])
    session.save()
    assert session.repair("answer") == session.repair("drop") == 0
    assert not session.unsaved


def test_dropping_also_takes_out_results_that_have_no_call(store: Store) -> None:
    session = store.session("s")
    session.history.extend([anthropic_results(["t9"]), ASKED])
    session.save()
    assert session.repair("answer") == 0
    assert session.repair("drop") == 1
    assert session.history == [ASKED]


@pytest.mark.parametrize("pending", [False, True])
def test_repair_knows_two_ways(store: Store, pending: bool) -> None:
    session = store.session("s")
    if pending:
        session.history.append(chat_calls(["t1"]))
    with pytest.raises(InvalidInput, match="unknown way to repair"):
        session.repair("guess")  # type: ignore[arg-type]


def test_thinking_and_signatures_survive_byte_for_byte(new_place: Callable[[], Place]) -> None:
    thought = {"type": "thinking", "thinking": "a \ud83d b\0 é", "signature": "c2lnbmF0dXJl=="}
    message = {"role": "assistant", "content": [thought, {"type": "text", "text": "so"}]}
    with new_place() as place:
        session = place.open().session("s")
        session.history.extend([ASKED, message])
        session.save()
        session.history.append("later")
        session.save()
        session.rewind(1)
        fork = session.fork("f")
        fork.trim(keep=1)
        fork.save()
        assert list(place.open().session("f").history[0].items()) == list(message.items())
        assert fork.history[0]["content"][0] == thought
