"""Large content in pieces, cut where the content says, so that an edit costs its neighbourhood.

Content above 64 KiB is cut by FastCDC (Xia et al., "The Design of Fast Content-Defined Chunking for
Data Deduplication Based Storage Systems", 2020) into chunks of about 16 KiB. The object then is a
chunk list: the ids of its pieces, joined. A piece is a chunk or, where there are many chunks, again
a chunk list: groups end after a chunk whose id ends in a byte below 4, so the lists are cut by
content too and a change in a large file costs a short path of them. Whatever the cutting, an id is
always the hash of the content that it stands for, and the content of a list is that of its pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

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


@lru_cache(maxsize=1)
def _cutter() -> FastCDC:
    from pyfastcdc import FastCDC  # needed for large content only

    return FastCDC(avg_size=_AVERAGE, min_size=_SMALLEST, max_size=_LARGEST)


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
