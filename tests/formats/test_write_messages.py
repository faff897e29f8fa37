"""Messages from one API's shape into another's: what is said stays, what cannot be said is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore import pairs
from snapstore.formats.losses import Losses
from snapstore.formats.write_messages import anthropic, items, openai

PNG = {"type": "base64", "media_type": "image/png", "data": "aGk="}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln+/="}
CLAUDE: list[Any] = [
    {"role": "user", "content": "count"},
    {
        "role": "assistant",
        "content": [
            THOUGHT,
            {"type": "text", "text": "ok"},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            {"type": "tool_use", "id": "t2", "name": "Look", "input": {}},
        ],
        "id": "msg_1",
        "usage": {"output_tokens": 3},
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "2"},
            {"type": "tool_result", "tool_use_id": "t2", "content": [
                {"type": "text", "text": "see"}, {"type": "image", "source": PNG}]},
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
]  # fmt: skip
CHAT: list[Any] = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": [
        {"type": "text", "text": "what is this"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
    {"role": "assistant", "content": "a cat"},
]  # fmt: skip
RESPONSES: list[Any] = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "patch it"}]},
    {"type": "reasoning", "summary": [], "encrypted_content": "ZW5j"},
    {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"},
    {"type": "function_call", "call_id": "c2", "name": "shell", "arguments": '{"cmd":"ls"}'},
    {"type": "custom_tool_call_output", "call_id": "c1", "output": "Success"},
    {"type": "function_call_output", "call_id": "c2", "output": [
        {"type": "input_text", "text": "a"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
]  # fmt: skip
WRITERS = [anthropic, openai, items]


def told(writer: Any, messages: list[Any]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    losses = Losses()
    return writer(messages, losses), dict(losses.listed())


# --- to its own shape ------------------------------------------------------------------------


def test_what_an_api_said_goes_back_to_it_without_the_fields_that_it_does_not_take() -> None:
    written, lost = told(anthropic, CLAUDE)
    assert written == [{"role": m["role"], "content": m["content"]} for m in CLAUDE]
    assert lost == {}
    assert told(openai, CHAT) == (CHAT, {})
    assert told(items, RESPONSES) == (RESPONSES, {})


# --- to another's ----------------------------------------------------------------------------


def test_claudes_messages_as_chat() -> None:
    written, lost = told(openai, CLAUDE)
    assert [m["role"] for m in written] == ["user", "assistant", "tool", "tool", "assistant"]
    assert written[1]["content"] == "ok"
    assert written[1]["tool_calls"][0]["function"] == {
        "name": "Bash",
        "arguments": '{"command": "ls"}',
    }
    assert [m["content"] for m in written[2:4]] == ["2", "see"]
    assert lost == {
        "thinking blocks (only the model's own API reads them)": 1,
        "pictures in results": 1,
    }


def test_claudes_messages_as_items() -> None:
    written, lost = told(items, CLAUDE)
    assert [item["type"] for item in written] == [
        "message", "message", "function_call", "function_call",
        "function_call_output", "function_call_output", "message",
    ]  # fmt: skip
    picture = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
    assert written[5]["output"] == [{"type": "input_text", "text": "see"}, picture]
    assert lost == {"thinking blocks (only the model's own API reads them)": 1}


def test_chat_as_claudes_messages() -> None:
    written, lost = told(anthropic, CHAT)
    assert [m["role"] for m in written] == ["user", "assistant", "user", "assistant"]
    assert written[0]["content"][1] == {"type": "image", "source": PNG}
    assert written[1]["content"][0]["input"] == {"at": 1}
    assert lost == {"system and developer messages": 1}


def test_items_as_claudes_messages_put_calls_and_results_together() -> None:
    written, lost = told(anthropic, RESPONSES)
    assert [m["role"] for m in written] == ["user", "assistant", "user", "assistant"]
    assert [b["id"] for b in written[1]["content"]] == ["c1", "c2"]
    assert written[1]["content"][0]["input"] == {"input": "*** Begin"}
    assert [b["tool_use_id"] for b in written[2]["content"]] == ["c1", "c2"]
    assert lost == {
        "contexts that Codex put in": 1,
        "reasoning blocks (only the model's own API reads them)": 1,
    }


def test_a_call_that_was_never_answered_is_answered_as_interrupted_where_the_talk_goes_on() -> None:
    chat = [*CHAT[:3], {"role": "user", "content": "never mind"}]
    written, lost = told(anthropic, [*chat, {"role": "assistant", "content": "fine"}])
    assert pairs.pending(written) == []
    assert lost["calls without a result (answered as interrupted)"] == 1
    at_the_end, lost = told(anthropic, CHAT[:3])
    assert [call.id for call in pairs.pending(at_the_end)] == ["c1"]
    assert "calls without a result (answered as interrupted)" not in lost


def test_a_result_without_a_call_is_left_out_and_told() -> None:
    written, lost = told(anthropic, [CHAT[3], {"role": "assistant", "content": "?"}])
    assert pairs.orphans(written) == []
    assert lost["results without a call"] == 1


def test_blocks_that_nobody_else_has_are_told_by_their_kind() -> None:
    odd = {"role": "user", "content": [{"type": "document", "source": {}}]}
    assert told(openai, [odd, CHAT[4]])[1] == {"blocks of type document": 1}


def test_values_that_say_no_kind_are_told_in_words() -> None:
    odd = [7, {"step": 1}, {"role": "user", "content": [None]}]
    assert told(openai, [*odd, CHAT[4]])[1] == {"values of no known type": 3}


def test_langchain_messages_are_understood() -> None:
    chain = [
        {"type": "human", "content": "hi"},
        {"type": "ai", "content": "", "tool_calls": [{"id": "c", "name": "f", "args": {"a": 1}}]},
        {"type": "tool", "tool_call_id": "c", "content": "1"},
    ]
    written, _ = told(anthropic, chain)
    (used,) = written[1]["content"]
    assert used == {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
    assert told(openai, chain)[0][1]["tool_calls"][0]["function"]["name"] == "f"


MESSAGES = st.lists(
    st.sampled_from([*CLAUDE, *CHAT, *RESPONSES]) | st.sampled_from([1, None, "text", {}, []]),
    max_size=12,
)


@pytest.mark.parametrize("writer", WRITERS)
@settings(deadline=None, max_examples=150)
@given(messages=MESSAGES)
def test_any_mixture_is_told_without_an_error_and_is_then_in_shape(
    writer: Any, messages: list[Any]
) -> None:
    written, _ = told(writer, messages)
    assert told(writer, written) == (written, {})


@pytest.mark.parametrize("writer", [anthropic, openai])
@settings(deadline=None, max_examples=150)
@given(messages=st.lists(st.sampled_from(RESPONSES), max_size=14))
def test_of_items_in_any_order_come_messages_with_whole_pairs(
    writer: Any, messages: list[Any]
) -> None:
    written, _ = told(writer, messages)
    assert pairs.orphans(written) == []
    last = max((n for n, m in enumerate(written) if m["role"] == "assistant"), default=-1)
    assert all(call.index == last for call in pairs.pending(written))
