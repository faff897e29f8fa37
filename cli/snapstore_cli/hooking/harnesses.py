"""The harnesses that can run a hook: where their settings stand, and what is entered there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """How a harness is to run the hook at one event."""

    timeout: int | None = None
    """Seconds that it waits."""
    matcher: str | None = None
    """Which tools it is about."""
    background: bool = False
    """Whether it goes on at once."""

    def entry(self, command: str) -> dict[str, Any]:
        """The entry in the settings, as both harnesses have it."""
        run: dict[str, Any] = {"type": "command", "command": command}
        if self.timeout is not None:
            run["timeout"] = self.timeout
        if self.background:
            run["async"] = True
        return ({"matcher": self.matcher} if self.matcher is not None else {}) | {"hooks": [run]}


@dataclass(frozen=True, slots=True)
class Harness:
    """A program that runs hooks."""

    name: str
    title: str
    folder: str
    """The directory of its settings, in a project and in a home."""
    file: str
    home: str
    """The environment variable that names another directory for the user's own settings."""
    calls: Mapping[str, Call]
    """By event."""
    advice: str = ""
    """What else is to be done."""

    def settings(self, environment: Mapping[str, str], *, user: bool) -> Path:
        """The settings file: of the project in the working directory, or the user's own."""
        if not user:
            return Path.cwd() / self.folder / self.file
        own = environment.get(self.home)
        home = environment.get("HOME")
        return (
            Path(own) if own else (Path(home) if home else Path.home()) / self.folder
        ) / self.file


_ANY_TOOL = Call(matcher="*", background=True)

CLAUDE_CODE = Harness(
    "claude-code",
    "Claude Code",
    ".claude",
    "settings.json",
    "CLAUDE_CONFIG_DIR",
    {
        "SessionStart": Call(10),
        "UserPromptSubmit": Call(30),
        "PostToolUse": _ANY_TOOL,
        "PostToolUseFailure": _ANY_TOOL,
        "PreCompact": Call(30),
        "Stop": Call(30),
        "SubagentStop": Call(30),
        "SessionEnd": Call(5),
    },
)

CODEX = Harness(
    "codex",
    "Codex",
    ".codex",
    "hooks.json",
    "CODEX_HOME",
    {
        "SessionStart": Call(10),
        "UserPromptSubmit": Call(30),
        "PostToolUse": Call(30, matcher="*"),
        "PreCompact": Call(30),
        "Stop": Call(30),
        "SubagentStop": Call(30),
        "SessionEnd": Call(3),
    },
    "Codex runs only hooks that you trust: confirm them when it asks, for it skips others silently",
)

HARNESSES = {harness.name: harness for harness in (CLAUDE_CODE, CODEX)}
