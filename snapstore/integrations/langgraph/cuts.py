"""Where serialised values are cut, so that what two of them have in common is kept once.

A value that LangGraph's serialiser packed as msgpack is cut between the members of its lists and
maps. Only places are found: no member is decoded, nothing is packed again, and the pieces joined
are the bytes that came in. Bytes that are no msgpack make one piece.

The header of the outermost container is its *head* and stands apart from the rest, the *body*: it
holds the number of members, and would else make the first piece of a list differ whenever it grows.
Places are offsets in the body.

    a member of 128 bytes or more                 is a piece of its own
    smaller ones                                  are taken together until they make 128 bytes
    a list that is a value in the outermost map,
    and what is longer than 16 KiB                is cut inside
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import msgpack

SMALL = 128
LARGE = 16 << 10
_DEEPEST = 32

_LIST, _MAP, _EXT, _OTHER = range(4)


@dataclass(frozen=True, slots=True)
class Cut:
    """The places of one value."""

    head: int
    """Length of the head."""
    ends: list[int]
    """Where each piece of the body ends."""
    members: list[int] | None
    """Where each member of the outermost list ends; None when it is no list."""


class _Header(NamedTuple):
    kind: int
    members: int
    size: int


def cut(data: bytes, before: tuple[bytes, Cut] | None = None) -> Cut:
    """Where to cut packed data.

    Before is another value as it was cut. Where both are lists that begin alike, that part need not
    be looked at again.
    """
    if len(data) < SMALL:
        return Cut(0, [len(data)] if data else [], None)
    try:
        header = _header(data, 0)
        if header.kind == _LIST:
            return _cut_list(data, header, before)
        pieces = _Pieces(data[header.size :] if header.kind == _MAP else data)
        if header.kind == _MAP:
            pieces.map(0, len(pieces.data), header.members)
            return Cut(header.size, pieces.done(), None)
        pieces.member(0, len(data), depth=0)
        return Cut(0, pieces.done(), None)
    except (ValueError, IndexError, msgpack.UnpackException):
        return Cut(0, [len(data)], None)


def _cut_list(data: bytes, header: _Header, before: tuple[bytes, Cut] | None) -> Cut:
    body = data[header.size :]
    ends: list[int] = []
    members: list[int] = []
    if before is not None and before[1].members is not None:
        ends, members = _in_common(body, before[0], before[1])
    start = members[-1] if members else 0
    pieces = _Pieces(body, ends)
    for end in _ends(body, start, len(body), header.members - len(members)):
        pieces.member(start, end, depth=0)
        members.append(end)
        start = end
    return Cut(header.size, pieces.done(), members)


def _in_common(body: bytes, other: bytes, cut: Cut) -> tuple[list[int], list[int]]:
    """The pieces and the members of another list that this one begins with.

    Only as many as end where a piece and a member do, and a piece that would have grown had more
    come behind it is not among them.
    """
    assert cut.members is not None
    shared = common_prefix(body, other)
    places = bisect_right(cut.ends, shared)
    while places:
        end = cut.ends[places - 1]
        start = cut.ends[places - 2] if places > 1 else 0
        at = bisect_right(cut.members, end)
        if end - start >= SMALL and at and cut.members[at - 1] == end:
            return cut.ends[:places], cut.members[:at]
        places -= 1
    return [], []


def common_prefix(one: bytes, other: bytes) -> int:
    """How many bytes two byte strings have in common from their beginning."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def map_members(data: bytes, start: int, end: int) -> dict[str, tuple[int, int]]:
    """The packed map at a place: where the value of each key begins and ends.

    Raises ValueError when there is none, or a key that is no text.
    """
    header = _header(data, start)
    if header.kind != _MAP:
        raise ValueError("it is no packed map")
    at = start + header.size
    places = _ends(data, at, end, 2 * header.members)
    members: dict[str, tuple[int, int]] = {}
    for key_end, value_end in zip(places[::2], places[1::2], strict=True):
        key = msgpack.unpackb(data[at:key_end], unicode_errors="surrogatepass")
        if not isinstance(key, str):
            raise ValueError("a key of a packed map is no text")
        members[key] = (key_end, value_end)
        at = value_end
    return members


class _Pieces:
    """Pieces in the making."""

    def __init__(self, data: bytes, ends: list[int] | None = None) -> None:
        self.data = data
        self._ends = ends or []
        self._start = self._ends[-1] if self._ends else 0
        self._at = self._start

    def member(self, start: int, end: int, depth: int) -> None:
        """Take the next member."""
        size = end - start
        if size > LARGE and depth < _DEEPEST and self._inside(start, end, depth):
            return
        if size < SMALL:
            self._at = end
            if end - self._start >= SMALL:
                self._close()
            return
        self._at = start
        self._close()
        self._at = end
        self._close()

    def map(self, start: int, end: int, count: int) -> None:
        """Take the members of the outermost map."""
        ends = _ends(self.data, start, end, 2 * count)
        for key_end, value_end in zip(ends[::2], ends[1::2], strict=True):
            if _header(self.data, key_end).kind == _LIST:
                self._inside(key_end, value_end, 0)
            else:
                self.member(start, value_end, 0)
            start = value_end

    def _inside(self, start: int, end: int, depth: int) -> bool:
        """Take the members of a member; False when it has none."""
        header = _header(self.data, start)
        if header.kind == _EXT:
            # What an extension holds is packed too, as LangGraph makes them. If this one is not,
            # the ends do not meet.
            header = _within(header, _header(self.data, start + header.size))
        if header.kind == _OTHER:
            return False
        many = header.members * (2 if header.kind == _MAP else 1)
        try:
            ends = _ends(self.data, start + header.size, end, many)
        except (ValueError, msgpack.UnpackException):
            return False
        at = start + header.size
        for place in ends[1::2] if header.kind == _MAP else ends:
            self.member(at, place, depth + 1)
            at = place
        return True

    def _close(self) -> None:
        if self._at > self._start:
            self._ends.append(self._at)
            self._start = self._at

    def done(self) -> list[int]:
        """The ends of all pieces."""
        self._at = len(self.data)
        self._close()
        return self._ends


def _within(outer: _Header, inner: _Header) -> _Header:
    if inner.kind not in (_LIST, _MAP):
        return _Header(_OTHER, 0, 0)
    return _Header(inner.kind, inner.members, outer.size + inner.size)


def _ends(data: bytes, start: int, end: int, count: int) -> list[int]:
    """Where each of the values between two places ends; ValueError unless it is that many."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(memoryview(data)[start:end])
    skip, tell = unpacker.skip, unpacker.tell
    ends: list[int] = []
    for _ in range(count):
        skip()
        ends.append(start + tell())
    if (ends[-1] if ends else start) != end:
        raise ValueError("there is more after the value")
    return ends


def _header(data: bytes, at: int) -> _Header:
    """The header of the value at a place. Its size is that of the header alone."""
    form = data[at]
    if 0x90 <= form <= 0x9F:
        return _Header(_LIST, form & 15, 1)
    if 0x80 <= form <= 0x8F:
        return _Header(_MAP, form & 15, 1)
    if form in _SIZED:
        kind, width = _SIZED[form]
        count = int.from_bytes(data[at + 1 : at + 1 + width], "big")
        return _Header(kind, count, 1 + width + (1 if kind == _EXT else 0))
    return _Header(_OTHER, 0, 0)


_SIZED = {
    0xDC: (_LIST, 2),
    0xDD: (_LIST, 4),
    0xDE: (_MAP, 2),
    0xDF: (_MAP, 4),
    0xC7: (_EXT, 1),
    0xC8: (_EXT, 2),
    0xC9: (_EXT, 4),
}
"""The kind and the bytes of the count, by the first byte of a value."""
