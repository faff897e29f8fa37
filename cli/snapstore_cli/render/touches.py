"""Which turns of which sessions a problem touches, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from snapstore import refs
from snapstore.engine import Touch
from snapstore_cli.render.words import count

_LINES = 3
"""Lines that are named before the others are only counted."""
_RUNS = 3
"""Runs of turns of one line that are named."""
_KINDS = {refs.SESSIONS: "session", refs.TAGS: "tag", refs.CAPTURES: "captures"}


def in_words(touches: Sequence[Touch]) -> str:
    """``turns 3-12 of fix-login, turn 9 of try-redis, and 14 more``."""
    by_ref: dict[str, list[Touch]] = {}
    for touch in touches:
        by_ref.setdefault(touch.ref, []).append(touch)
    told = [f"{_turns(runs)} of {_name(ref)}" for ref, runs in list(by_ref.items())[:_LINES]]
    left = list(by_ref)[_LINES:]
    noun = "session" if all(ref.startswith(refs.SESSIONS) for ref in left) else "line"
    return ", ".join(told) + (f", and {count(len(left), f'more {noun}')}" if left else "")


def _turns(runs: Sequence[Touch]) -> str:
    if not all(touch.last for touch in runs):
        return "all"
    if len(runs) > _RUNS:
        turns = sum(touch.last - touch.first + 1 for touch in runs)
        return f"{count(turns, 'turn')} from {runs[0].first} to {runs[-1].last}"
    told = [str(t.first) if t.first == t.last else f"{t.first}-{t.last}" for t in runs]
    one = len(runs) == 1 and runs[0].first == runs[0].last
    return f"turn{'' if one else 's'} {' and '.join(told)}"


def _name(ref: str) -> str:
    kind, name = _parted(ref)
    return name if kind == "session" else f"{kind} {name}"


def _parted(ref: str) -> tuple[str, str]:
    for prefix, kind in _KINDS.items():
        if ref.startswith(prefix):
            return kind, ref.removeprefix(prefix)
    return "ref", ref


def document(touch: Touch) -> dict[str, Any]:
    """``{"session": NAME, "turns": [FIRST, LAST]}``; turns are null for all of a line."""
    kind, name = _parted(touch.ref)
    return {kind: name, "turns": [touch.first, touch.last] if touch.last else None}
