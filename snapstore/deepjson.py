"""JSON text of values of any depth. The json module writes it, but recurses once a level."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_DEEP = 200
"""Levels beyond which the json module takes the square of the depth to indent, or gives up."""
_DEEPEST_INDENT = 40
"""Levels that are indented: thousands of them would take the square of that in blanks."""


def dumps(value: Any, *, indent: int | None = None) -> str:
    """As json.dumps, with all characters as they are. Raises TypeError for what is not JSON."""
    return encode(value, json.JSONEncoder(ensure_ascii=False, check_circular=False, indent=indent))


def encode(value: Any, encoder: json.JSONEncoder) -> str:
    """What the encoder makes of a value that holds no circle; beyond some depth lines are indented
    no further."""
    if encoder.indent is None or not _is_deep(value):
        try:
            return encoder.encode(value)
        except RecursionError:
            pass
    return "".join(_pieces(value, encoder))


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEP):
        level = [member for container in level for member in _members(container)]
        if not level:
            return False
    return True


def _members(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def _pieces(value: Any, encoder: json.JSONEncoder) -> Iterator[str]:
    trail: list[tuple[Iterator[tuple[str, Any]], str]] = [(iter([("", value)]), "")]
    while trail:
        entries, end = trail[-1]
        entry = next(entries, None)
        if entry is None:
            trail.pop()
            yield end
            continue
        before, member = entry
        yield before
        if not _members(member):
            yield encoder.encode(member)
            continue
        brackets = "{}" if isinstance(member, dict) else "[]"
        yield brackets[0]
        depth = len(trail)
        trail.append((_entries(member, encoder, depth), _margin(encoder, depth - 1) + brackets[1]))


def _entries(container: Any, encoder: json.JSONEncoder, depth: int) -> Iterator[tuple[str, Any]]:
    """The members of a container, each with what stands before it."""
    named = isinstance(container, dict)
    before = margin = _margin(encoder, depth)
    for entry in container.items() if named else container:
        if named:
            key, member = entry
            yield f"{before}{encoder.encode(key)}{encoder.key_separator}", member
        else:
            yield before, entry
        before = encoder.item_separator + margin


def _margin(encoder: json.JSONEncoder, depth: int) -> str:
    if encoder.indent is None:
        return ""
    blanks = encoder.indent if isinstance(encoder.indent, str) else " " * encoder.indent
    return "\n" + blanks * min(depth, _DEEPEST_INDENT)
