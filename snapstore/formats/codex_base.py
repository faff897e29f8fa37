"""Forks of Codex threads: the file of a fork holds its own rows and says where the others are.

Its first row names a thread, and how many bytes of that thread's file come before its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from snapstore.formats.jsonl import Row, parse

_MOST_FORKS = 64
"""A fork may be of a fork; more than this is a circle."""


def rows_before(path: Path, rows: Sequence[Row]) -> list[Row]:
    """The rows that come before those of a fork's file; none for what is no fork, or where the
    file that they are in is not there."""
    found: list[Row] = []
    for _ in range(_MOST_FORKS):
        base = base_of(rows)
        there = _file_of(path, base["thread_id"]) if base else None
        if base is None or there is None:
            break
        rows = parse(there.read_bytes()[: base["end_byte_offset"]]).rows
        path, found = there, [*rows, *found]
    return found


def base_of(rows: Sequence[Row]) -> dict[str, Any] | None:
    """What a file says about the thread that it goes on from."""
    first = rows[0].value if rows else None
    payload = first.get("payload") if isinstance(first, dict) else None
    base = payload.get("history_base") if isinstance(payload, dict) else None
    if not isinstance(base, dict) or not isinstance(base.get("thread_id"), str):
        return None
    return base if type(base.get("end_byte_offset")) is int else None


def _file_of(path: Path, thread: str) -> Path | None:
    """The file of a thread, in the same tree of sessions as another one."""
    root = next((folder for folder in path.parents if folder.name == "sessions"), path.parent)
    if not thread.replace("-", "").isalnum():
        return None
    return next((p for p in sorted(root.rglob(f"rollout-*{thread}.jsonl")) if p != path), None)
