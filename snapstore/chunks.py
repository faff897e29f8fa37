"""Large content in pieces, cut where the content says, so that an edit costs its neighbourhood.

Content above 64 KiB is cut by FastCDC (Xia et al., "The Design of Fast Content-Defined Chunking for
Data Deduplication Based Storage Systems", 2020) into chunks of about 16 KiB. The object then is a
chunk list: the ids of its pieces, joined. A piece is a chunk or, where there are many chunks, again
a chunk list: groups end after a chunk whose id ends in a byte below 4, so the lists are cut by
content too and a change in a large file costs a short path of them. Whatever the cutting, an id is
always the hash of the content that it stands for, and the content of a list is that of its pieces.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from blake3 import blake3

from snapstore.engine import Kind, Obj
from snapstore.errors import Corrupt
from snapstore.ids import SIZE, object_id

if TYPE_CHECKING:
    from pyfastcdc import FastCDC

WHOLE = 64 << 10
"""Content up to this size is one object."""

_SMALLEST, _AVERAGE, _LARGEST = 4 << 10, 16 << 10, 64 << 10
_GROUP_END = 4
_GROUP_MOST = 256
_DEEPEST = 32


_mine = threading.local()


def _cutter() -> FastCDC:
    """The cutter of this thread: one must not be used by two at a time."""
    if not hasattr(_mine, "cutter"):
        from pyfastcdc import FastCDC  # needed for large content only

        _mine.cutter = FastCDC(avg_size=_AVERAGE, min_size=_SMALLEST, max_size=_LARGEST)
    cutter: FastCDC = _mine.cutter
    return cutter


def objects_of(content: bytes, content_id: bytes | None = None) -> list[Obj]:
    """The objects that keep this content; the one with the content's own id is the last."""
    whole_id = object_id(content) if content_id is None else content_id
    if len(content) <= WHOLE:
        return [Obj(whole_id, Kind.CONTENT, content)]
    view = memoryview(content)
    kept: list[Obj] = []
    pieces: list[tuple[bytes, int]] = []
    for chunk in _cutter().cut_buf(content):
        data = bytes(view[chunk.offset : chunk.offset + chunk.length])
        chunk_id = object_id(data)
        kept.append(Obj(chunk_id, Kind.CONTENT, data))
        pieces.append((chunk_id, len(data)))
    while len(pieces) > _GROUP_MOST:
        pieces = _group(pieces, view, kept)
    kept.append(Obj(whole_id, Kind.CHUNKED, b"".join(piece for piece, _ in pieces)))
    return kept


def _group(
    pieces: list[tuple[bytes, int]], content: memoryview, kept: list[Obj]
) -> list[tuple[bytes, int]]:
    """One level of chunk lists above these pieces: (id, length) of each list."""
    lists: list[tuple[bytes, int]] = []
    at = first = 0
    for n, (piece, length) in enumerate(pieces):
        at += length
        members = pieces[first : n + 1]
        if piece[-1] < _GROUP_END or len(members) == _GROUP_MOST or n == len(pieces) - 1:
            size = sum(length for _, length in members)
            list_id = object_id(content[at - size : at])
            if len(members) > 1:
                kept.append(Obj(list_id, Kind.CHUNKED, b"".join(piece for piece, _ in members)))
            lists.append((list_id, size))
            first = n + 1
    return lists


def objects_of_stream(
    pieces: Iterable[bytes], size: int, whole_id: Callable[[], bytes]
) -> Iterator[Obj]:
    """The objects that keep content which comes in pieces and is never whole in memory.

    As many levels of chunk lists are made as about ``size`` bytes need. The id of the content is
    asked for when the last piece has been taken.
    """
    levels = [_Level() for _ in range(_levels(size))]
    top: list[bytes] = []
    for chunk in _cutter().cut_stream(_Reader(iter(pieces))):
        data = bytes(chunk.data)
        carried: bytes | None = object_id(data)
        assert carried is not None
        yield Obj(carried, Kind.CONTENT, data)
        for level in levels:
            level.hash.update(data)
        for level in levels:
            carried, made = level.add(carried)
            yield from made
            if carried is None:
                break
        else:
            top.append(carried)
    yield from _last_lists(levels, top)
    content_id = whole_id()
    if not top:
        yield Obj(content_id, Kind.CONTENT, b"")
    elif top != [content_id]:
        yield Obj(content_id, Kind.CHUNKED, b"".join(top))


def _levels(size: int) -> int:
    chunks, levels = size // _AVERAGE, 0
    while chunks > _GROUP_MOST:
        chunks, levels = chunks // (256 // _GROUP_END), levels + 1
    return levels


def _last_lists(levels: list[_Level], top: list[bytes]) -> Iterator[Obj]:
    """End the list of each level, the lowest first."""
    carried: bytes | None = None
    for level in levels:
        if carried is not None:
            level.members.append(carried)
        carried, made = level.end() if level.members else (None, [])
        yield from made
    if carried is not None:
        top.append(carried)


class _Level:
    """A chunk list in the making, and the hash of its content so far."""

    __slots__ = ("hash", "members")

    def __init__(self) -> None:
        self.members: list[bytes] = []
        self.hash = blake3()

    def add(self, piece: bytes) -> tuple[bytes | None, list[Obj]]:
        """Take a piece whose content was hashed already; as end where the list ends with it."""
        self.members.append(piece)
        if piece[-1] < _GROUP_END or len(self.members) == _GROUP_MOST:
            return self.end()
        return None, []

    def end(self) -> tuple[bytes, list[Obj]]:
        """The id of the list, and the list itself unless it is a single piece."""
        members, list_id = self.members, self.hash.digest()
        self.__init__()  # type: ignore[misc]
        if len(members) == 1:
            return members[0], []
        return list_id, [Obj(list_id, Kind.CHUNKED, b"".join(members))]


class _Reader:
    """Pieces as the file that the cutter wants to read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def read(self, n: int) -> bytes:
        """Up to n bytes; none at the end."""
        if not self._rest:
            self._rest = next(self._pieces, b"")
        found, self._rest = self._rest[:n], self._rest[n:]
        return found


def pieces_of(chunk_list: bytes, list_id: bytes) -> list[bytes]:
    """The ids in a chunk list. Raises Corrupt when it is none."""
    if not chunk_list or len(chunk_list) % SIZE:
        raise Corrupt(f"object {list_id.hex()} is no chunk list")
    return [chunk_list[at : at + SIZE] for at in range(0, len(chunk_list), SIZE)]


def stream(o: Obj, read: Callable[[bytes], Obj], depth: int = 0) -> Iterator[bytes]:
    """The content of an object in pieces of at most 64 KiB, each verified by the engine.

    Whoever joins them compares the hash of the whole with the id: only that proves the list.
    """
    if o.kind != Kind.CHUNKED:
        yield o.payload
        return
    if depth > _DEEPEST:
        raise Corrupt(f"object {o.id.hex()} is a chunk list that contains itself")
    for piece in pieces_of(o.payload, o.id):
        yield from stream(read(piece), read, depth + 1)
