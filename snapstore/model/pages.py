"""Pages: rows of a file that was imported, as they stood there, taken apart so that they share.

A row is a JSON value. What is large in it is a *part*, an object of its own: the message, which the
history holds too, the output of a tool, an attachment. What is small, and differs between copies of
a session (ids, times, places), stays in the page. So a fork that says another session id in every
row shares all parts with what it was forked from.

A page is a msgpack array

    [flags, shape of, shapes, columns, places, gaps]
    flags     a byte for each row: bits 0..6 the style of its text (see formats.jsontext), or RAW;
              bit 7: it stands beside the turn and is no part of its conversation
    shape of  for each row the index of its shape
    shapes    the keys of an object, in their order; nil for a row that is not taken apart
    columns   for each shape and each of its keys, the values of the rows that have it, in order;
              one column for the shape nil
    places    where in the file each row stands: how many rows further on than the row before
    gaps      [index of a row, what stands between it and the row before it in the file] for those
              where that is not a line feed

Values are as in ``snapstore.values``; ext type 2 is a part, its id. A RAW row is its bytes, as a
byte string or a part; there the part is bytes, else an encoded value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgpack

from snapstore.ids import SIZE
from snapstore.model.wire import damaged
from snapstore.values import pack_wide, unpack_wide

PART = 2
"""Ext type of a part."""

RAW = 127
"""In place of a style: the row is kept as bytes."""

_BESIDE = 128
_LINE_FEED = b"\n"
_FIELDS = 6


class Part(NamedTuple):
    """A large value of a row, which is an object of its own."""

    id: bytes


class PageRow(NamedTuple):
    """A row of a page."""

    place: int
    """Where among the rows of its file it stands; the first is 0."""
    gap: bytes
    """What stands in the file between the row before and this one."""
    style: int
    """The style of its text, or RAW."""
    beside: bool
    """Whether it is no part of the conversation of the page's turn."""
    value: Any
    """Its value with a Part in place of what is large; of a RAW row its bytes, or a Part."""


def encode_page(rows: Sequence[PageRow]) -> bytes:
    """Rows in the order of their places, as an object's content."""
    shapes: dict[tuple[str, ...] | None, int] = {}
    members: list[list[tuple[Any, ...]]] = []
    shape_of, places, gaps = [], [], []
    before = 0
    for index, (place, gap, _, _, value) in enumerate(rows):
        is_object = type(value) is dict
        shape = tuple(value) if is_object else None
        number = shapes.setdefault(shape, len(shapes))
        if number == len(members):
            members.append([])
        members[number].append(tuple(value.values()) if is_object else (value,))
        shape_of.append(number)
        places.append(place - before)
        before = place
        if gap != _LINE_FEED:
            gaps.append([index, gap])
    flags = bytes(row.style | (_BESIDE if row.beside else 0) for row in rows)
    columns = [list(map(list, zip(*member, strict=True))) for member in members]
    keys = [shape if shape is None else list(shape) for shape in shapes]
    return _pack([flags, shape_of, keys, columns, places, gaps])


def decode_page(content: bytes, page_id: bytes) -> list[PageRow]:
    """The rows of a page. Raises Corrupt when the content is none."""
    try:
        flags, shape_of, shapes, columns, places, gap_list = _unpack(content)
        waiting = [
            iter([()] * shape_of.count(number) if shape == [] else list(zip(*held, strict=True)))
            for number, (shape, held) in enumerate(zip(shapes, columns, strict=True))
        ]
        gaps = dict(gap_list)
        rows = []
        place = 0
        for index, (flag, number, step) in enumerate(zip(flags, shape_of, places, strict=True)):
            shape, values = shapes[number], next(waiting[number])
            value = values[0] if shape is None else dict(zip(shape, values, strict=True))
            place += step
            gap = gaps.get(index, _LINE_FEED)
            rows.append(PageRow(place, gap, flag & ~_BESIDE, flag >= _BESIDE, value))
    except (ValueError, TypeError, IndexError, AttributeError, StopIteration) as error:
        raise damaged(page_id, f"no page of rows ({error})") from error
    if not all(type(row.gap) is bytes for row in rows):
        raise damaged(page_id, "a page of rows has gaps that are no bytes")
    return rows


def parts_of(rows: Sequence[PageRow]) -> Iterator[bytes]:
    """The ids of all parts of these rows."""
    waiting = [row.value for row in rows]
    while waiting:
        value = waiting.pop()
        if type(value) is Part:
            yield value.id
        elif type(value) is dict:
            waiting += value.values()
        elif type(value) is list:
            waiting += value


def _pack(fields: list[Any]) -> bytes:
    packed: bytes = msgpack.packb(
        fields, default=_pack_odd, strict_types=True, unicode_errors="surrogatepass"
    )
    return packed


def _pack_odd(value: object) -> msgpack.ExtType:
    if type(value) is Part:
        return msgpack.ExtType(PART, value.id)
    return pack_wide(value)


def _unpack(content: bytes) -> tuple[Any, ...]:
    fields = msgpack.unpackb(content, ext_hook=_unpack_ext, unicode_errors="surrogatepass")
    if type(fields) is not list or len(fields) != _FIELDS:
        raise ValueError(f"it has not {_FIELDS} fields")
    return tuple(fields)


def _unpack_ext(code: int, data: bytes) -> Any:
    if code != PART:
        return unpack_wide(code, data)
    if len(data) != SIZE:
        raise ValueError("a part that is no id")
    return Part(data)
