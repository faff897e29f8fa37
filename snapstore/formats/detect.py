"""Which program wrote a file, told from its content."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Literal

from snapstore.formats import jsonl
from snapstore.formats.content import InMemory
from snapstore.formats.messages import conversations

Harness = Literal["claude-code", "codex", "messages", "gemini"]

_CLAUDE_MESSAGES = frozenset({"user", "assistant"})
_CLAUDE_SIDE_ROWS = {"summary": "leafUuid", "file-history-snapshot": "messageId"}
_MESSAGE_TYPES = frozenset(
    {"human", "ai", "system", "tool", "function_call", "function_call_output", "reasoning"}
)


def detect(data: bytes, name: str = "") -> Harness | None:
    """The program that wrote the file, or None. The first row that tells decides.

    Damaged rows and rows that fit several programs are passed over; only a rollout of which nothing
    can be read is told by its name.
    """
    met_row = False
    for found in jsonl.scan(InMemory(data)):
        if isinstance(found, jsonl.Row):
            met_row = True
            harness = of_value(found.value)
            if harness:
                return harness
        elif not met_row:
            met_row = True
            document = jsonl.parse_document(data)
            if document:
                return of_value(document.rows[0].value)
    return _of_name(name)


def of_rows(rows: jsonl.Rows, name: str = "") -> Harness | None:
    """The same for a file that has been read already."""
    found = (of_value(row.value) for row in rows.rows)
    return next(filter(None, found), None) or _of_name(name)


def of_value(value: Any) -> Harness | None:
    """The program that a row, or a whole document, is of."""
    if isinstance(value, list):
        told = value[0] if value else None
        is_list = isinstance(told, dict) and ("traj" in told or of_value(told) == "messages")
        return "messages" if is_list else None
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    kind = kind if isinstance(kind, str) else ""
    if isinstance(value.get("payload"), dict) and kind:
        return "codex"
    if "projectHash" in value:
        return "gemini"
    if _is_claude_row(value, kind):
        return "claude-code"
    if isinstance(value.get("role"), str) or kind in _MESSAGE_TYPES or any(conversations(value)):
        return "messages"
    return None


def _of_name(name: str) -> Harness | None:
    return "codex" if PurePath(name).name.startswith("rollout-") else None


def _is_claude_row(row: dict[str, Any], kind: str) -> bool:
    if isinstance(row.get("sessionId"), str):
        return bool(row.get("uuid") or row.get("leafUuid") or kind)
    if kind in _CLAUDE_MESSAGES:
        return isinstance(row.get("uuid"), str) and "message" in row
    return kind in _CLAUDE_SIDE_ROWS and _CLAUDE_SIDE_ROWS[kind] in row
