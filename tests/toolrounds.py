"""Histories with tool pairs in them, in the shapes of three APIs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Message = dict[str, Any]

_ids = st.sampled_from(["t1", "t2", "t3", "t4"])
_parallel = st.lists(_ids, min_size=1, max_size=3, unique=True)


def anthropic_calls(ids: list[str]) -> Message:
    """One reply that thinks and then calls several tools at once."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    calls = [{"type": "tool_use", "id": i, "name": "Bash", "input": {}} for i in ids]
    return {"role": "assistant", "content": [thinking, *calls]}


def anthropic_results(ids: list[str]) -> Message:
    """The one message that answers it."""
    results = [{"type": "tool_result", "tool_use_id": i, "content": "ok"} for i in ids]
    return {"role": "user", "content": results}


def chat_calls(ids: list[str]) -> Message:
    """One reply of Chat Completions that calls several tools at once."""
    calls = [
        {"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def chat_result(call_id: str) -> Message:
    """The message that answers one call."""
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


def response_call(call_id: str) -> Message:
    """A call in the shape of the Responses API: a message of its own."""
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def response_result(call_id: str) -> Message:
    """The item that answers it."""
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def _anthropic(ids: list[str], answered: list[str]) -> list[Message]:
    return [anthropic_calls(ids), anthropic_results(answered)]


def _chat(ids: list[str], answered: list[str]) -> list[Message]:
    return [chat_calls(ids), *map(chat_result, answered)]


def _responses(ids: list[str], answered: list[str]) -> list[Message]:
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "c2VjcmV0"}
    return [reasoning, *map(response_call, ids), *map(response_result, answered)]


def _said(role: str) -> st.SearchStrategy[list[Message]]:
    return st.just([{"role": role, "content": f"{role} says"}])


def rounds() -> st.SearchStrategy[list[Message]]:
    """A few messages that belong together: something said, or calls and all their results."""
    shapes = st.sampled_from([_anthropic, _chat, _responses])
    answered = _parallel.flatmap(lambda ids: st.tuples(st.just(ids), st.permutations(ids)))
    called = st.builds(lambda shape, ids: shape(*ids), shapes, answered)
    return st.one_of(_said("user"), _said("assistant"), called)


def whole_histories(most: int = 10) -> st.SearchStrategy[list[Message]]:
    """Histories in which every call has its result. Ids come again later, as they do."""
    return st.lists(rounds(), max_size=most).map(lambda parts: [m for part in parts for m in part])
