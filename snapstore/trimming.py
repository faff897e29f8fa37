"""Shortening and mending a history without ever cutting a tool call from its results."""

from __future__ import annotations

from typing import Any, Literal

from snapstore import pairs
from snapstore.errors import InvalidInput
from snapstore.history import History


def trim(history: History, keep: int) -> int:
    """Keep the last messages, and as many more as it takes to cut no pair; the number removed."""
    border = _border(history, keep)
    del history[:border]
    return border


def compact(history: History, summary: str | dict[str, Any], keep: int) -> int:
    """As trim, with a summary message put in front; the number of messages that it replaces."""
    border = _border(history, keep)
    message = {"role": "user", "content": summary} if isinstance(summary, str) else summary
    history[:border] = [message]
    return border


def _border(history: History, keep: int) -> int:
    if keep < 0:
        raise InvalidInput(f"cannot keep {keep} messages")
    length = len(history)
    return pairs.border_before(length, history.__getitem__, max(0, length - keep))


def repair(history: History, how: Literal["drop", "answer"]) -> int:
    """Drop the calls that have no result, or answer them as interrupted; the number there was.

    ``drop`` also takes out the results that have no call, and counts them.
    """
    messages = list(history)
    lonely = len(pairs.pending(messages))
    if how == "drop":
        lonely += len(pairs.orphans(messages))
    start, mended = pairs.repair(messages, how)
    history[start:] = mended
    return lonely
