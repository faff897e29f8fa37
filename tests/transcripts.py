"""Transcripts of Claude Code and Codex for tests, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

COMMON = {
    "isSidechain": False,
    "cwd": "/w",
    "sessionId": "S",
    "version": "2",
    "userType": "external",
}


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict[str, Any]:
    """A row of what the person said, or of the results of tools."""
    message = {"role": "user", "content": content}
    return _row(uuid, parent, "user", message, fields)


def said(uuid: str, parent: str, *blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A row of a reply."""
    reply_id = fields.pop("reply", f"msg_{uuid}")
    message = {"id": reply_id, "type": "message", "role": "assistant", "content": list(blocks)}
    return _row(uuid, parent, "assistant", message, fields)


def _row(
    uuid: str, parent: str | None, kind: str, message: dict[str, Any], fields: dict[str, Any]
) -> dict[str, Any]:
    return {
        "parentUuid": parent,
        **COMMON,
        "type": kind,
        "message": message,
        "uuid": uuid,
        "timestamp": "2030-01-01T00:00:00.000Z",
        **fields,
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def thinking(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": "c2ln+/="}


def call(number: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": number, "name": "Bash", "input": {"command": number}}


def result(number: str, output: str = "done") -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": number, "content": output}]


def written(rows: Iterable[Any], end: bytes = b"\n") -> bytes:
    """Rows as the programs write them."""
    lines = (json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows)
    return b"".join(line.encode("utf-8", "backslashreplace") + end for line in lines)


TALK = [
    {"type": "summary", "summary": "Counting", "leafUuid": "elsewhere"},
    user("u1", None, "count the files"),
    said("a1", "u1", call("t1"), reply="m1", apiBlockIndex=0),
    said("a2", "a1", call("t2"), reply="m1", apiBlockIndex=1),
    user("r1", "a1", result("t1", "2"), toolUseResult={"stdout": "2" * 300}),
    user("r2", "a2", result("t2", "none"), toolUseResult="Error: none"),
    said("a3", "r2", thinking("hm…"), text("2 and none")),
    {"type": "system", "subtype": "turn_duration", "uuid": "d1", "parentUuid": "a3", **COMMON},
    {"type": "last-prompt", "lastPrompt": "and now the second", "sessionId": "S"},
    user("u2", "d1", "and now the second"),
    said("a4", "u2", text("the second answer")),
]
"""Two turns; what stands between them knows of the second."""


def codex(kind: str, payload: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A row of a rollout."""
    return {"timestamp": "2030-01-01T00:00:00.000Z", **fields, "type": kind, "payload": payload}


def item(role: str, words: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    message = {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
    return codex("response_item", message)


ROLLOUT = [
    codex("session_meta", {"id": "T", "cwd": "/w", "cli_version": "1", "model_provider": "x"}),
    item("developer", "<permissions>all</permissions>"),
    codex("turn_context", {"cwd": "/w/sub", "model": "m"}),
    item("user", "count the files"),
    codex("event_msg", {"type": "user_message", "message": "count the files"}),
    codex("response_item", {"type": "reasoning", "summary": [], "encrypted_content": "ZW5j"}),
    codex(
        "response_item",
        {"type": "function_call", "name": "shell", "arguments": '{"cmd":"ls"}', "call_id": "c1"},
    ),
    codex("response_item", {"type": "function_call_output", "call_id": "c1", "output": "2"}),
    item("assistant", "there are two"),
    codex("event_msg", {"type": "task_complete", "last_agent_message": "there are two"}),
    item("user", "and now the second"),
    item("assistant", "the second answer"),
]
