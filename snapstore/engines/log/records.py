"""Ref moves and pages of refs, as they stand in batches.

A move is a msgpack array, empty fields at its end cut off:

    [ref, gen, op, new, time, base, redo, born, info]

    ref   the name, utf-8 (lone surrogates pass)
    new   32 bytes, nil, or the slot of an object in the same batch: a saved turn's snapshot
    time  microseconds since the epoch, as uint 64
    base  nil when it is gen - 1, the usual case
    born  nil when it is gen
    info  a map

A segment starts with pages of the last moves of all refs, at most 64 a page, sorted by name:
a page is a msgpack array of moves. So the refs are known from the newest segment alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgpack

from snapstore.engine import Move
from snapstore.engines.log.batch import MOVE, Batch
from snapstore.errors import Corrupt

PAGE = 64


def encode_move(move: Move, slot: int | None = None) -> bytes:
    """The payload of a MOVE record; slot is that of the object it points at, if in the batch."""
    fields = _fields(move)
    if slot is not None:
        fields[3] = slot
    packed: bytes = msgpack.packb(fields, unicode_errors="surrogatepass")
    return packed


def moves_in(opened: Batch) -> list[Move]:
    """The moves in a batch, in order. Raises Corrupt."""
    found: list[Move] = []
    for payload in opened.payloads(MOVE):
        fields = _unpack(payload)
        if isinstance(fields, list) and len(fields) > 3 and isinstance(fields[3], int):
            if not 0 <= fields[3] < opened.objects:
                raise Corrupt("a ref move points at no object", path=opened.where[0])
            fields[3] = opened.id_at(fields[3])
        found.append(_move(fields))
    return found


def encode_pages(moves: Iterable[Move]) -> Iterator[bytes]:
    """The payloads of the REFS records that hold these moves, which come sorted by name."""
    page: list[list[Any]] = []
    for move in moves:
        page.append(_fields(move))
        if len(page) == PAGE:
            yield _pack(page)
            page = []
    if page:
        yield _pack(page)


def decode_page(payload: bytes) -> list[Move]:
    """The moves in a page. Raises Corrupt."""
    return [_move(fields) for fields in _page(payload)]


@lru_cache(maxsize=16)
def _page(payload: bytes) -> list[Any]:
    # Whoever goes through all sessions comes back to the same page for each of them.
    page = _unpack(payload)
    if not isinstance(page, list):
        raise Corrupt("a page of refs is not of the form it must have")
    return page


def find_in_page(payload: bytes, ref: str) -> Move | None:
    """The move of a ref in a page, without making anything of the others. Raises Corrupt."""
    page = _page(payload)
    found = (fields for fields in page if isinstance(fields, list) and fields[:1] == [ref])
    return next(map(_move, found), None)


def first_in_page(payload: bytes) -> str:
    """The name of the first ref in a page, without decoding the rest."""
    unpacker = msgpack.Unpacker(unicode_errors="surrogatepass")
    unpacker.feed(payload)
    try:
        unpacker.read_array_header()
        unpacker.read_array_header()
        return str(unpacker.unpack())
    except (ValueError, msgpack.OutOfData) as error:
        raise Corrupt(f"a page of refs does not decode ({error})") from error


def _fields(move: Move) -> list[Any]:
    fields: list[Any] = [
        move.ref,
        move.gen,
        move.op,
        move.new,
        move.time,
        None if move.base == move.gen - 1 else move.base,
        move.redo or None,
        None if move.born == move.gen else move.born,
        dict(move.info) or None,
    ]
    while fields[-1] is None:
        fields.pop()
    return fields


def _move(fields: Any) -> Move:
    if not isinstance(fields, list) or len(fields) < 5:
        raise Corrupt("a ref move is not of the form it must have")
    ref, gen, op, new, time, *rest = fields
    base, redo, born, info = (rest + [None] * 4)[:4]
    if not isinstance(ref, str) or not isinstance(gen, int) or not isinstance(time, int):
        raise Corrupt("a ref move is not of the form it must have")
    if not (new is None or (isinstance(new, bytes) and len(new) == 32)):
        raise Corrupt("a ref move points at no object id")
    return Move(
        ref=ref,
        gen=gen,
        new=new,
        op=op,
        time=time,
        base=gen - 1 if base is None else base,
        redo=redo or 0,
        born=gen if born is None else born,
        info=info or {},
    )


def _pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, unicode_errors="surrogatepass")
    return packed


def _unpack(payload: bytes) -> Any:
    try:
        return msgpack.unpackb(payload, unicode_errors="surrogatepass", strict_map_key=False)
    except (ValueError, TypeError) as error:
        raise Corrupt(f"a ref record does not decode ({error})") from error
