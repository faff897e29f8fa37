"""Numbered values in compressed chunks: what a page reads only when it is looked at.

A chunk is a JSON array, compressed as RFC 1950 (zlib) says. Values count on from chunk to chunk, so
the number of each chunk's first value is all that is needed to find one.
"""

from __future__ import annotations

import zlib
from typing import Any

from snapstore.formats.jsontext import write

CHUNK = 384 << 10
"""Bytes of JSON after which a chunk is closed."""

_COMPACT = 0
_LEVEL = 9


def compressed(value: Any) -> bytes:
    """A JSON value of a page's own making (never deep) as the page inflates it."""
    return zlib.compress(write(value, _COMPACT), _LEVEL)


class Blobs:
    """Values on their way into chunks."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        """For each closed chunk the number of its first value."""
        self._open: list[bytes] = []
        self._size = 0
        self._next = 0

    def add(self, value: Any) -> int:
        """Take in a value; its number."""
        text = write(value, _COMPACT)
        self._open.append(text)
        self._size += len(text)
        self._next += 1
        return self._next - 1

    @property
    def full(self) -> bool:
        """Whether it is time to close the open chunk."""
        return self._size >= CHUNK

    @property
    def empty(self) -> bool:
        """Whether nothing is in the open chunk."""
        return not self._open

    def close(self) -> bytes:
        """The open chunk, closed and compressed."""
        self.starts.append(self._next - len(self._open))
        chunk = zlib.compress(b"[" + b",".join(self._open) + b"]", _LEVEL)
        self._open, self._size = [], 0
        return chunk
