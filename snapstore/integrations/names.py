"""What frameworks call their threads, as names of sessions and back.

An id that can name a session is its name. Any other stands under ``thread/``, its UTF-8 bytes that
are no ASCII letter, digit, ``-`` or ``_`` written as ``+`` and two hex digits; so every name leads
back to one id. One that would be too long is named by its hash, and can only be told from what the
move that made the ref says (``ID`` in its info).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from snapstore import arguments
from snapstore.engine import Engine, Move
from snapstore.errors import InvalidInput
from snapstore.ids import object_id
from snapstore.names import MAX_LENGTH, valid_name

FOLDER = "thread/"
ID = "id"
"""In the info of a move: the id that the name of the ref is the hash of."""

_HASHED = "+-"
_HASH_DIGITS = 32
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_ESCAPE = re.compile(rb"\+([0-9A-F]{2})")


def session_name(outside: str) -> str:
    """The name of the session that a framework knows by this id."""
    arguments.text(outside, "the id of a conversation")
    if not outside.startswith(FOLDER) and _is_name(outside):
        return outside
    raw = outside.encode("utf-8", "surrogatepass")
    escaped = "".join(chr(b) if b in _PLAIN else f"+{b:02X}" for b in raw)
    if escaped and len(FOLDER) + len(escaped) <= MAX_LENGTH:
        return FOLDER + escaped
    return FOLDER + _HASHED + object_id(raw).hex()[:_HASH_DIGITS]


def outside_id(engine: Engine, tip: Move, name: str) -> str:
    """The id that a framework knows a session by; tip is the last move of its ref."""
    if not name.startswith(FOLDER):
        return name
    escaped = name.removeprefix(FOLDER)
    if escaped.startswith(_HASHED):
        born = engine.move(tip.ref, tip.born)
        return str(born.info.get(ID, name)) if born is not None else name
    raw = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), escaped.encode())
    return raw.decode("utf-8", "surrogatepass")


def facts(outside: str, name: str) -> Mapping[str, Any]:
    """What the move that makes a ref of this name must say, so that the id can be told again."""
    return {ID: outside} if name.startswith(FOLDER + _HASHED) else {}


def _is_name(text: str) -> bool:
    try:
        valid_name(text)
    except InvalidInput:
        return False
    return True
