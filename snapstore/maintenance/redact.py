"""Secrets taken out of texts and values, which else stay as they are.

``sk-ant-...`` becomes ``[redacted:anthropic-key]``: it is plain text without quotes or backslashes,
so JSON that holds it stays JSON, and it names the rule, so a reader knows what stood there.

A thinking block is signed by the model that wrote it. A secret is taken out of one too, and the
signature then no longer fits: a provider may refuse such a history. ``signed_thinking`` tells
whether that happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from snapstore import values
from snapstore.maintenance.secrets import Secret, find, find_given, may_hold

Change = Callable[[bytes, bytes], bytes]
"""Given the name that a text stands under and the text itself: what is to stand there instead."""


def mark(rule: str) -> bytes:
    """What stands in the place of a secret."""
    return f"[redacted:{rule}]".encode()


def redact_bytes(text: bytes) -> bytes:
    """A text, UTF-8 or what contains it, without its secrets; what is binary is left alone."""
    return text if b"\0" in text[:8192] else _without(text, find(text))


def redact_text(text: str) -> str:
    """A text without its secrets."""
    return change_text(text, "", _without_given)


def redact(value: Any) -> Any:
    """A JSON value with the secrets taken out of its strings. Keys and structure stay."""
    return change_strings(value, _without_given)


def _without_given(name: bytes, text: bytes) -> bytes:
    if not may_hold(text) and not may_hold(name):
        return text
    return _without(text, find_given(name, text))


def _without(text: bytes, secrets: list[Secret]) -> bytes:
    if not secrets:
        return text
    pieces: list[bytes] = []
    at = 0
    for secret in secrets:
        pieces += [text[at : secret.start], mark(secret.rule)]
        at = secret.end
    return b"".join((*pieces, text[at:]))


# --- changing the texts in values ------------------------------------------------------------


def change_text(text: str, name: str, change: Change) -> str:
    """A text after a change of its bytes; the very same text when there was none."""
    before = text.encode("utf-8", "surrogatepass")
    after = change(name.encode("utf-8", "surrogatepass"), before)
    return text if after == before else after.decode("utf-8", "surrogatepass")


def change_strings(value: Any, change: Change, *, keys: bool = False) -> Any:
    """A copy of a value with each string (bytes too) changed; with keys=True those of objects too.

    Depth is bounded by memory, not by Python's stack. A key that comes to be the same as another
    gets a number at its end, so that nothing is lost.
    """
    root: list[Any] = [None]
    todo: list[tuple[Any, Any, str, Any]] = [(root, 0, "", value)]
    while todo:
        parent, place, name, old = todo.pop()
        new: Any
        if isinstance(old, str):
            new = change_text(old, name, change)
        elif isinstance(old, bytes):
            new = change(name.encode("utf-8", "surrogatepass"), old)
        elif isinstance(old, Mapping):
            named = [(_renamed(key, change) if keys else key, v) for key, v in old.items()]
            new = {}
            members = []
            for key, member in named:
                unique = _unique(key, new) if keys else key
                new[unique] = None  # keeps the order, which the stack below turns around
                members.append((new, unique, unique if isinstance(unique, str) else "", member))
            todo += reversed(members)
        elif isinstance(old, (list, tuple)):
            new = [None] * len(old)
            todo += reversed([(new, at, name, member) for at, member in enumerate(old)])
        else:
            new = old
        parent[place] = new
    return root[0]


def _renamed(key: Any, change: Change) -> Any:
    return change_text(key, "", change) if isinstance(key, str) else key


def _unique(key: Any, taken: Mapping[Any, Any]) -> Any:
    n, found = 1, key
    while found in taken:
        n, found = n + 1, f"{key}+{n}"
    return found


def signed_thinking(before: Any, after: Any) -> bool:
    """Whether a message's thinking, which is signed, differs between two copies of it."""
    # Compared as they are encoded: what is nested deeply cannot be compared in Python.
    return _signed(before) != _signed(after)


def _signed(message: Any) -> list[bytes]:
    content = message.get("content") if isinstance(message, Mapping) else None
    blocks = content if isinstance(content, (list, tuple)) else ()
    thinking = (b for b in blocks if isinstance(b, Mapping) and b.get("type") == "thinking")
    return [values.encode(block, allow_bytes=True) for block in thinking]
