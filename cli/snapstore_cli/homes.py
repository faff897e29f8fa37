"""Where things are, as the environment tells it."""

from __future__ import annotations

import os
from pathlib import Path

_HOMES = {"claude-code": ("CLAUDE_CONFIG_DIR", ".claude"), "codex": ("CODEX_HOME", ".codex")}


def home_of(program: str) -> Path:
    """Where a program keeps its sessions."""
    variable, folder = _HOMES[program]
    named = os.environ.get(variable)
    return Path(named) if named else Path.home() / folder


def here() -> str:
    """The working directory; the root where it was deleted below us."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"
