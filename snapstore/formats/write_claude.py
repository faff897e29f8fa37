"""Claude Code transcripts, written: rows of old ones under a new session id, and rows for messages.

What Claude Code needs to go on from a file (observed with 2.1.332): one session id in all rows,
a parent for every row but the first that is in the file, every tool call with its result. It finds
the end of the conversation as the last row of the chain. Everything else in a row is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from snapstore.formats.losses import Losses
from snapstore.formats.turns import iso
from snapstore.formats.write_messages import anthropic

_SESSION_KEYS = ("sessionId", "session_id")
_PARENT_KEYS = ("parentUuid", "logicalParentUuid")
_NO_USAGE = {"input_tokens": 0, "output_tokens": 0}


@dataclass(frozen=True, slots=True)
class Facts:
    """What new rows say of the session they are in. Empty where it is not known."""

    session_id: str
    cwd: str = ""
    git_branch: str = ""
    version: str = ""
    model: str = ""
    time: int = 0
    """Microseconds since the epoch."""


def moved_rows(
    rows: Iterable[dict[str, Any]], session_id: str, move: Callable[[str], str]
) -> list[dict[str, Any]]:
    """The rows of a conversation as those of another session, working in another place.

    Move says for a path what it is there. A parent that is not among the rows, and so cannot be
    found, gives way to the row before; rows of a subagent become those of a session of its own.
    """
    told = list(rows)
    known = {row.get("uuid") for row in told}
    before: Any = None
    moved = []
    for row in told:
        new = dict(row)
        for key in _SESSION_KEYS:
            if key in new or key == "sessionId":
                new[key] = session_id
        for key in _PARENT_KEYS:
            if new.get(key) is not None and new[key] not in known:
                new[key] = before
        if isinstance(new.get("cwd"), str):
            new["cwd"] = move(new["cwd"])
        if new.get("isSidechain"):
            new["isSidechain"] = False
            new.pop("agentId", None)
        moved.append(new)
        before = new.get("uuid") or before
    return moved


def rows_for(
    messages: Sequence[Any], facts: Facts, parent: str | None, losses: Losses
) -> Iterator[dict[str, Any]]:
    """Rows that say these messages, of any shape, after the row whose uuid is parent."""
    common = {
        "userType": "external",
        "cwd": facts.cwd,
        "sessionId": facts.session_id,
        "version": facts.version,
        "gitBranch": facts.git_branch,
    }
    common = {key: value for key, value in common.items() if value}
    for message in anthropic(messages, losses, whole=True):
        uuid = str(uuid4())
        yield {
            "parentUuid": parent,
            "isSidechain": False,
            **common,
            "type": message["role"],
            "message": _reply(message, facts) if message["role"] == "assistant" else message,
            "uuid": uuid,
            "timestamp": iso(facts.time),
        }
        parent = uuid


def _reply(message: dict[str, Any], facts: Facts) -> dict[str, Any]:
    """A reply as the API gives it, made up where it is not known."""
    content = message["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    calls = any(isinstance(block, dict) and block.get("type") == "tool_use" for block in content)
    made_up = {
        "id": f"msg_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": facts.model or "unknown",
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": _NO_USAGE,
    }
    return {**made_up, **message, "content": content}
