"""Shortening and mending a history without ever cutting a tool call from its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from snapstore import arguments, pairs
from snapstore.errors import InvalidInput, UnsupportedValue
from snapstore.history import History


def trim(history: History, keep: int) -> int:
    """Keep the last messages, and as many more as it takes to cut no pair; the number removed."""
    border = _border(history, keep)
    del history[:border]
    return border


def compact(history: History, summary: str | dict[str, Any], keep: int) -> int:
    """As trim, with a summary message put in front; the number of messages that it replaces."""
    if not isinstance(summary, str | Mapping):
        kind = type(summary).__name__
        raise UnsupportedValue("summary", f"is a {kind}, neither text nor a message")
    border = _border(history, keep)
    message = {"role": "user", "content": summary} if isinstance(summary, str) else summary
    history[:border] = [message]
    return border


def _border(history: History, keep: int) -> int:
    if arguments.whole(keep, "what to keep") < 0:
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
