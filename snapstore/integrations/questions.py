"""The turns of a conversation, as the items of a session tell them: each begins with a question.

A question is an item of the user that carries no output of a tool. (Some APIs send those as the
user's, too.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from snapstore import arguments
from snapstore.errors import Corrupt, NotFound, ObjectMissing
from snapstore.frozen import thaw

DAMAGE = (Corrupt, ObjectMissing)
"""What reading an item raises that is not there as it was."""

_TOOL_OUTPUTS = ("tool_result", "function_call_output")


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """What one question of the user led to."""

    number: int
    """The first is 1."""
    content: Any
    """The content of the user's item."""
    items: int
    """How many items the turn has, the user's included."""


def starts(items: Sequence[Any]) -> list[int]:
    """Where the turns of a conversation begin."""
    return [at for at, item in enumerate(items) if is_question(item)]


def is_question(item: Any) -> bool:
    """Whether an item is the user's, and no output of a tool."""
    if not isinstance(item, dict) or item.get("role") != "user":
        return False
    content = item.get("content")
    blocks = content if isinstance(content, list) else ()
    return not any(isinstance(b, dict) and b.get("type") in _TOOL_OUTPUTS for b in blocks)


def turns(items: Sequence[Any]) -> list[ConversationTurn]:
    """The turns of a conversation, the first one first."""
    borders = [*starts(items), len(items)]
    return [
        ConversationTurn(number, thaw(items[start].get("content")), end - start)
        for number, (start, end) in enumerate(pairwise(borders), 1)
    ]


def end_of(items: Sequence[Any], turn: int) -> int:
    """How many items there are up to the end of a turn; 0 is before the first. Raises NotFound."""
    turn = arguments.whole(turn, "a turn")
    borders = [*starts(items), len(items)]
    if not 0 <= turn < len(borders):
        raise NotFound(f"there is no turn {turn}: the conversation has {len(borders) - 1}")
    return borders[turn]


def label(items: Sequence[Any]) -> str | None:
    """The first words of the last question; None when there is none. Damaged items are passed over.

    Items are looked at one by one from the end: it is among the last, and each may cost a read.
    """
    for at in range(len(items) - 1, -1, -1):
        with contextlib.suppress(*DAMAGE):
            item = items[at]
            if is_question(item):
                content = item.get("content")
                text = content if isinstance(content, str) else ""
                return " ".join(text.split())[:60]
    return None
