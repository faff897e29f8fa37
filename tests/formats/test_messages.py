"""Plain messages in every wrapping: no message is dropped, turns start at prompts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.formats import jsonl, messages
from snapstore.formats.transcript import Transcript


def read(data: str, name: str = "talk.json") -> Transcript:
    return messages.read(jsonl.load(data.encode()), name)


def histories(transcript: Transcript) -> list[list[Any]]:
    return [list(session.live.history()) for session in transcript.sessions]


def user(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


TALK = [user(), {"role": "assistant", "content": "hello"}]


@pytest.mark.parametrize(
    "wrapped",
    [
        json.dumps(TALK),
        json.dumps(TALK, indent=2),
        json.dumps({"messages": TALK, "tools": []}),
        json.dumps({"values": {"messages": TALK}, "next": []}, indent=1),
        json.dumps([{"task_id": 0, "traj": TALK}]),
        "".join(json.dumps(message) + "\n" for message in TALK),
        json.dumps({"messages": TALK}) + "\n\n",
    ],
    ids=["array", "pretty", "object", "graph state", "trajectory", "lines", "line of messages"],
)
def test_the_same_messages_come_out_of_every_wrapping(wrapped: str) -> None:
    assert histories(read(wrapped)) == [TALK]


def test_each_trajectory_and_each_line_of_messages_is_a_session() -> None:
    two = [TALK, [user("other")]]
    trajectories = read(json.dumps([{"traj": talk} for talk in two]), "runs/Airline 1.json")
    assert histories(trajectories) == two
    assert [s.live.name for s in trajectories.sessions] == ["airline-1-1", "airline-1-2"]
    assert trajectories.rows == 1
    lines = read("".join(json.dumps({"messages": talk}) + "\n" for talk in two))
    assert (histories(lines), lines.rows) == (two, 2)


def test_a_turn_starts_at_each_prompt_of_a_person() -> None:
    results = user([{"type": "tool_result", "tool_use_id": "t", "content": ""}])
    talk = [
        {"role": "system", "content": "be brief"},
        user("one"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t"}]},
        results,
        {"type": "human", "content": "two"},
        {"type": "ai", "content": "x"},
    ]
    (only,) = read(json.dumps(talk)).sessions
    assert [(turn.label, len(turn.messages)) for turn in only.live.turns] == [
        ("one", 4),
        ("two", 2),
    ]


def test_a_system_message_before_a_prompt_is_of_its_turn() -> None:
    system = {"role": "system", "content": "now"}
    (only,) = read(json.dumps([*TALK, system, user("two")])).sessions
    assert [len(turn.messages) for turn in only.live.turns] == [2, 2]


def test_a_session_is_called_by_its_title_its_prompt_or_its_file() -> None:
    titled = {"values": {"title": "A Title", "messages": TALK}}
    assert read(json.dumps(titled)).sessions[0].live.name == "a-title"
    assert read(json.dumps(TALK)).sessions[0].live.name == "hi"
    assert read("[]").sessions[0].live.name == "talk"


def test_a_file_without_messages_is_one_empty_session() -> None:
    for data in ("", "[]", '{"messages": []}'):
        assert histories(read(data)) == [[]]
        assert len(read(data).sessions[0].live.turns) == 1


def test_a_message_with_a_field_called_messages_stays_a_message() -> None:
    odd = {"role": "user", "content": "x", "messages": []}
    assert histories(read(json.dumps(odd))) == [[odd]]


def test_damage_is_passed_on_and_the_rest_is_read() -> None:
    transcript = read(json.dumps(TALK[0]) + "\n{oops\n" + json.dumps(TALK[1]) + "\n")
    assert histories(transcript) == [TALK]
    assert [warning.line for warning in transcript.warnings] == [2]


MESSAGES = st.one_of(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant", "system", "tool", "human", None, 5]),
        st.none() | st.text() | st.lists(st.sampled_from([{"type": "tool_result"}, "x", {}])),
    ),
    st.none(),
    st.integers(),
    st.text(),
)


@given(st.lists(MESSAGES))
@settings(deadline=None)
def test_nothing_is_dropped_and_the_order_is_kept(talk: list[Any]) -> None:
    assert histories(read(json.dumps(talk))) == [talk]
