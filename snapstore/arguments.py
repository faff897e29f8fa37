"""What callers give, looked at where it comes in: an error then names it, and not what came of it
further down."""

from __future__ import annotations

import operator
import os
import reprlib
from typing import SupportsIndex

from snapstore.errors import InvalidInput


def text(given: object, what: str) -> str:
    """What was given, if it is text. Raises InvalidInput."""
    if not isinstance(given, str):
        raise InvalidInput(f"{what} is text, not {_shown(given)}")
    return given


def whole(given: object, what: str) -> int:
    """What was given, if it is a whole number, of whatever type. Raises InvalidInput."""
    if isinstance(given, bool) or not isinstance(given, SupportsIndex):
        raise InvalidInput(f"{what} is a whole number, not {_shown(given)}")
    return operator.index(given)


def number(given: object, what: str) -> float:
    """What was given, if it is a number. Raises InvalidInput."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidInput(f"{what} is a number, not {_shown(given)}")
    return given


def place(given: object, what: str) -> str:
    """What was given, if it can be a path. Raises InvalidInput."""
    found = os.fspath(given) if isinstance(given, (str, os.PathLike)) else None
    if not isinstance(found, str):
        raise InvalidInput(f"{what} is a path, not {_shown(given)}")
    if not found or "\0" in found:
        raise InvalidInput(f"{what} is a path, which {found!r} is not")
    return found


def raw_id(given: object) -> bytes:
    """The bytes of an id, given as they are or in hex. Raises InvalidInput."""
    if isinstance(given, bytes):
        return given
    try:
        return bytes.fromhex(text(given, "an id"))
    except ValueError:
        raise InvalidInput(f"{given!r} is no id: it is not hex") from None


def _shown(given: object) -> str:
    return reprlib.repr(given)  # cut where it is long
