"""Whatever stands in a field, a file is read: formats change, and files are damaged."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.formats import Harness, Transcript, detect, read

KEPT = {"anchorUuid": "s1", "uuids": ["a1"], "headUuid": "a1", "tailUuid": "a1"}
USED = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "t"}]
ANSWERED = [{"type": "tool_result", "tool_use_id": "t", "content": "y"}]

CLAUDE_CODE: list[Any] = [
    {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "S", "cwd": "/"},
    {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "apiBlockIndex": 0, "timestamp": "x"},
    {"type": "assistant", "uuid": "a2", "parentUuid": "a1", "apiBlockIndex": 1},
    {"type": "user", "uuid": "r1", "parentUuid": "a2", "isSidechain": False, "agentId": "x"},
    {"type": "user", "uuid": "r2", "parentUuid": "a1", "isMeta": False},
    {
        "type": "system",
        "uuid": "b1",
        "parentUuid": None,
        "logicalParentUuid": "r1",
        "subtype": "compact_boundary",
        "compactMetadata": {"preservedMessages": KEPT, "preservedSegment": KEPT},
    },
    {"type": "user", "uuid": "s1", "parentUuid": "b1", "isCompactSummary": True},
    {"type": "user", "uuid": "u2", "parentUuid": "a1"},
    {"type": "ai-title", "aiTitle": "T", "leafUuid": "u2"},
]
for _row, _content in zip(
    CLAUDE_CODE, ["go", USED, USED, ANSWERED, ANSWERED, None, "sum", "on"], strict=False
):
    if _content is not None:
        _row["message"] = {"id": "m", "role": _row["type"], "content": _content, "usage": {"n": 1}}

CODEX: list[Any] = [
    {"type": "session_meta", "payload": {"id": "T", "cwd": "/", "git": {"branch": "b"}}},
    {"type": "turn_context", "payload": {"model": "m", "cwd": "/"}, "ordinal": 2},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": USED}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": "x"}, "ordinal": 4},
    {"type": "event_msg", "payload": {"type": "item_completed", "item": {"type": "UserMessage"}}},
    {"type": "compacted", "payload": {"message": "sum", "replacement_history": [None]}},
    {"type": "compacted", "payload": {"message": "sum"}},
    {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
]
MESSAGES: list[Any] = [
    {"role": "user", "content": USED, "timestamp": "x"},
    {"type": "human", "content": "x"},
    {"messages": [{"role": "system"}]},
    {"values": {"messages": [], "title": "x"}},
    [{"traj": [1]}],
]

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "a1", "u2", "text"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("type"), inner),
    max_leaves=3,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values inside a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, held in inner:
        found.append((*path, key))
        if isinstance(held, dict | list):
            found += places(held, (*path, key))
    return found


def with_changes(rows: list[Any], changes: list[tuple[int, Any]]) -> bytes:
    changed = copy.deepcopy(rows)
    for choice, value in changes:
        paths = places(changed)
        *way, last = paths[choice % len(paths)]
        target = changed
        for key in way:
            target = target[key]
        target[last] = value
    return "".join(json.dumps(row) + "\n" for row in changed).encode()


def read_all(data: bytes, harness: Harness) -> Transcript:
    detect(data)
    transcript = read(data, "file.jsonl", harness)
    for session in transcript.sessions:
        for line in session.lines():
            assert line.turns
            json.dumps([[turn.label, turn.time, turn.messages, turn.meta] for turn in line.turns])
            json.dumps([line.name, line.meta, line.history()])
    return transcript


CHANGES = st.lists(st.tuples(st.integers(0, 500), ANYTHING), min_size=1, max_size=4)


@given(CHANGES)
@settings(deadline=None, max_examples=300)
def test_a_claude_code_transcript_is_read_whatever_its_fields_hold(
    changes: list[tuple[int, Any]],
) -> None:
    assert read_all(with_changes(CLAUDE_CODE, changes), "claude-code").rows == len(CLAUDE_CODE)


@given(CHANGES)
@settings(deadline=None, max_examples=300)
def test_a_codex_rollout_is_read_whatever_its_fields_hold(changes: list[tuple[int, Any]]) -> None:
    assert read_all(with_changes(CODEX, changes), "codex").rows == len(CODEX)


@given(CHANGES)
@settings(deadline=None, max_examples=300)
def test_messages_are_read_whatever_their_fields_hold(changes: list[tuple[int, Any]]) -> None:
    assert read_all(with_changes(MESSAGES, changes), "messages").rows == len(MESSAGES)
