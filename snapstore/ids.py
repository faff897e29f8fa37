"""Object ids: the BLAKE3-256 of an object's content, 32 bytes, written as 64 hex digits.

``b3sum FILE`` prints the id of a blob that holds FILE.
"""

from __future__ import annotations

from blake3 import blake3

SIZE = 32
"""Bytes in an id."""

MIN_PREFIX = 4
"""Fewest hex digits that are accepted as an abbreviation."""


def object_id(content: bytes | bytearray | memoryview) -> bytes:
    """The id of an object with this content."""
    return blake3(content).digest()


def is_hex_prefix(text: str) -> bool:
    """Whether text can abbreviate an id: at least MIN_PREFIX lower-case hex digits, at most all."""
    return MIN_PREFIX <= len(text) <= 2 * SIZE and all(c in "0123456789abcdef" for c in text)
