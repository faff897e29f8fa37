"""JSON texts as programs write them, and a value written again as the same text.

Most programs write JSON in one of a few ways, so the value and the *style* of a text are enough to
make its bytes again. A style is a small number::

    bit 0       all but ASCII is escaped
    bit 1       there is a space behind each comma and each colon
    bits 2..5   the width by which nested lines are indented; 0: everything is on one line

Lone surrogates are always escaped, in lower case, as JavaScript does. Texts that are written in
another way (numbers like ``1E2``, keys that repeat, odd spaces) have no style.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from snapstore.deepjson import encode

_ASCII, _SPACED = 1, 2
_INDENT_SHIFT = 2
_WIDEST = 8

STYLES = (_WIDEST + 1) << _INDENT_SHIFT
"""Styles are numbers below this one."""


def style_of(value: Any, raw: bytes) -> int | None:
    """The style in which writing the value gives exactly these bytes; None for none."""
    style = _guess(raw)
    try:
        text = _encoder(style).encode(value)
        return style if _bytes(text) == raw else None
    except (ValueError, RecursionError):
        return None


def write(value: Any, style: int) -> bytes:
    """The text of a value in a style; where it is nested very deeply, not indented all the way."""
    return _bytes(encode(value, _encoder(style)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _guess(raw: bytes) -> int:
    """The style that the first bytes of a text speak for."""
    style = _ASCII if raw.isascii() else 0
    if raw[1:2] == b"\n":
        width = len(raw) - 2 - len(raw[2:].lstrip(b" "))
        return style | _SPACED | min(width, _WIDEST) << _INDENT_SHIFT
    colon, comma = raw.find(b'":'), raw.find(b",")
    spaced = raw[colon + 2 : colon + 3] if colon >= 0 else raw[comma + 1 : comma + 2]
    return style | (_SPACED if spaced == b" " else 0)


@cache
def _encoder(style: int) -> json.JSONEncoder:
    indent = style >> _INDENT_SHIFT or None
    spaced = bool(style & _SPACED)
    separators = ("," if indent or not spaced else ", ", ": " if spaced else ":")
    return json.JSONEncoder(
        ensure_ascii=bool(style & _ASCII),
        check_circular=False,  # a value that was read holds no circle
        indent=indent,
        separators=separators,
    )
