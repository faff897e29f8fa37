"""The events of a harness, as it hands them to a hook: JSON that is believed in nothing.

Claude Code and Codex send the same base fields. Which of the two it is does not matter here: a
transcript tells that itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

HISTORY = frozenset({"Stop", "SubagentStop", "PreCompact", "SessionEnd"})
"""Events at which the transcript holds something worth keeping."""
FILES = frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure"})
"""Events between which files may have changed."""
TURN = "Stop"
"""The event that ends a turn: history and files of that moment belong together."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event; a field that was not sent, or is not text, is empty."""

    name: str
    session_id: str
    transcript: str
    """Path of the transcript, which need not exist (yet)."""
    cwd: str
    """Where the harness works."""
    reply: str = ""
    """What the model said last, where the event tells it."""


def read_event(data: bytes) -> Event | None:
    """The event in what a hook was given on its standard input; None where that is none."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict):
        return None

    def text(key: str) -> str:
        value: Any = told.get(key)
        return value if isinstance(value, str) and "\0" not in value else ""

    return Event(
        name=text("hook_event_name"),
        session_id=text("session_id").strip(),
        transcript=text("transcript_path"),
        cwd=text("cwd"),
        reply=text("last_assistant_message"),
    )
