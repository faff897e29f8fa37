"""The bytes of a file that is read: in memory, or, where it is large, where it lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from snapstore.errors import InvalidInput

_WINDOW = 1 << 20
"""So much is read at once: rows are looked at again in their order, mostly."""


class Content(Protocol):
    """A file's bytes."""

    @property
    def size(self) -> int:
        """How many there are."""

    def read(self, start: int, end: int) -> bytes:
        """Those from one offset up to another."""

    def lines(self) -> Iterator[bytes]:
        """The file split at its line feeds, which are left out: one line more than there are."""


class InMemory:
    """A file that was read whole."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size(self) -> int:
        return len(self._data)

    def read(self, start: int, end: int) -> bytes:
        return self._data[start:end]

    def lines(self) -> Iterator[bytes]:
        return iter(self._data.split(b"\n"))


class OnDisk:
    """A file that is read again where need be. What is appended to it meanwhile is not seen."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises OSError."""
        self._path = path
        self._file: BinaryIO = path.open("rb")
        self._size = path.stat().st_size
        self._start, self._window = 0, b""

    @property
    def size(self) -> int:
        return self._size

    def read(self, start: int, end: int) -> bytes:
        at = start - self._start
        if not 0 <= at <= at + end - start <= len(self._window):
            self._file.seek(start)
            self._window = self._file.read(max(end - start, min(_WINDOW, self._size - start)))
            self._start, at = start, 0
            if len(self._window) < end - start:
                raise InvalidInput(f"{self._path} was cut shorter while it was read")
        return self._window[at : at + end - start]

    def lines(self) -> Iterator[bytes]:
        self._file.seek(0)
        left = self._size
        line = b"\n"
        while left and line.endswith(b"\n"):
            line = self._file.readline(left)
            left -= len(line)
            yield line.removesuffix(b"\n")
            if not line:
                raise InvalidInput(f"{self._path} was cut shorter while it was read")
        if line.endswith(b"\n"):
            yield b""
