"""Reading files into objects: small ones whole, larger ones in chunks, the largest as a stream.

While the caller reads and hashes, another thread compresses and writes what was read before, so a
first capture keeps two processors busy and holds a few megabytes, whatever the size of the tree.
What it writes is content that nothing refers to yet: the commit that moves the ref comes after.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from blake3 import blake3

from snapstore.chunks import WHOLE, objects_of, objects_of_stream
from snapstore.engine import Engine, Kind, Obj
from snapstore.ids import object_id

PORTION = 4 << 20
"""Content is handed to the engine in portions of about this size."""
IN_MEMORY = 32 << 20
"""Larger files are read as a stream."""
_PIECE = 1 << 20
_WAITING = 2


class Outbox:
    """Content on its way into the store. Belongs to one thread, and works in another."""

    def __init__(self, engine: Engine | None) -> None:
        """Without an engine what is put is counted and dropped: for looking without saving."""
        self._engine = engine
        self._portion: list[Obj] = []
        self._size = 0
        self._thread: ThreadPoolExecutor | None = None
        self._sent: list[Future[object]] = []

    def put(self, o: Obj) -> None:
        """Take an object."""
        if self._engine is None:
            return
        self._portion.append(o)
        self._size += len(o.payload)
        if self._size >= PORTION:
            self._send()

    def _send(self) -> None:
        assert self._engine is not None
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "snapstore-write")
        while len(self._sent) >= _WAITING:
            self._sent.pop(0).result()
        self._sent.append(self._thread.submit(self._engine.commit, self._portion))
        self._portion, self._size = [], 0

    def finish(self) -> list[Obj]:
        """Wait for what was sent; the objects that are left for the caller's own commit."""
        try:
            while self._sent:
                self._sent.pop(0).result()
        finally:
            self.close()
        left, self._portion, self._size = self._portion, [], 0
        return left

    def close(self) -> None:
        """Stop the thread."""
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
            self._thread = None


def read_small(fd: int) -> bytes:
    """The content of an open file that is not large, and close it. Raises OSError."""
    try:
        return _whole(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def store_file(fd: int, size: int, outbox: Outbox) -> tuple[bytes, int]:
    """Put the content of an open file; its id, and how many bytes it was.

    Size is what it is expected to be: a file may grow or shrink while it is read. Raises OSError.
    """
    if size > IN_MEMORY:
        return _store_stream(fd, size, outbox)
    content = _whole(fd, size)
    if len(content) <= WHOLE:
        content_id = object_id(content)
        outbox.put(Obj(content_id, Kind.CONTENT, content))
        return content_id, len(content)
    kept = objects_of(content)
    for o in kept:
        outbox.put(o)
    return kept[-1].id, len(content)


def _whole(fd: int, size: int) -> bytes:
    content = os.read(fd, size + 1)
    if len(content) == size:
        return content
    pieces = [content]
    while content:
        content = os.read(fd, _PIECE)
        pieces.append(content)
    return b"".join(pieces)


def _store_stream(fd: int, size: int, outbox: Outbox) -> tuple[bytes, int]:
    whole = blake3(max_threads=blake3.AUTO)
    length = 0

    def pieces() -> Iterator[bytes]:
        nonlocal length
        while piece := os.read(fd, _PIECE):
            whole.update(piece)
            length += len(piece)
            yield piece

    for o in objects_of_stream(pieces(), size, whole.digest):
        outbox.put(o)
    return whole.digest(), length
