"""Indexes: where in a segment an object or a ref move lies. Throw-away: the log remakes them.

An index covers a range of whole batches of one segment. Its file is

    header  76 bytes, little-endian
        magic    4s   b"snpX"
        version  I    1
        segment  I    number of the segment
        first    I    offset of the first batch that is covered
        last     I    offset just behind the last one
        number   I    number of the batch that would come next
        digest   16s  digest of the last batch covered: a log that was cut and went on otherwise
                      has another there, and the index no longer counts
        objects  I    entries in the first two columns
        moves    I    entries in the next two
        tips     I    entries in the last two
        check    16s  first bytes of the BLAKE3 of the columns
        range    8s   first bytes of the BLAKE3 of the segment's bytes from first to last
    columns, each sorted by key
        object keys   Q   the first 8 bytes of an id, big-endian, as a number
        object places Q   offset of the batch << 24 | slot in it
        move keys     Q   the first 8 bytes of the BLAKE3 of a ref's name, NUL and the move's gen
        move places   Q   offset of the batch that holds the move
        tip keys      Q   the first 8 bytes of the BLAKE3 of a ref's name, once for each ref
        tip places    Q   offset of the batch with its last move in the range

Keys are cut short, so an entry is a candidate: the batch's own directory decides. A column is
searched by bisection where it lies in the file, so opening costs the same at any size.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from blake3 import blake3

from snapstore.errors import Corrupt
from snapstore.plainfile import open_plain

MAGIC = b"snpX"
VERSION = 1
_HEAD = struct.Struct("<4sIIIII16sIII16s8s")
HEADER_SIZE = _HEAD.size
SLOT_BITS = 24
_PIECE = 4 << 20
_SLOT_MASK = (1 << SLOT_BITS) - 1


def object_key(object_id: bytes) -> int:
    """The key of an object's entry."""
    return int.from_bytes(object_id[:8], "big")


def ref_key(name: str, gen: int | None = None) -> int:
    """The key of a ref's last move, or of its move number gen."""
    text = name.encode("utf-8", "surrogatepass")
    if gen is not None:
        text += b"\0%d" % gen
    return int.from_bytes(blake3(text).digest(length=8), "big")


def place(offset: int, slot: int) -> int:
    """Where an object lies, as one number."""
    return offset << SLOT_BITS | slot


def placed(where: int) -> tuple[int, int]:
    """(offset of the batch, slot) of a place."""
    return where >> SLOT_BITS, where & _SLOT_MASK


@dataclass(frozen=True, slots=True)
class Cover:
    """The batches that an index covers."""

    segment: int
    first: int
    last: int
    number: int
    digest: bytes
    range_digest: bytes


class Index:
    """One index, searched in place."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        """Raises ValueError when the data is no index of this version or is cut short."""
        if sys.byteorder != "little":
            raise ValueError("indexes are read in place, which needs a little-endian machine")
        if len(data) < _HEAD.size:
            raise ValueError("cut short")
        (magic, version, segment, first, last, number, digest, objects, moves, tips, self._check,
         range_digest) = _HEAD.unpack_from(data)  # fmt: skip
        if magic != MAGIC or version != VERSION:
            raise ValueError("not an index of this version")
        sizes = (objects, objects, moves, moves, tips, tips)
        if len(data) != _HEAD.size + 8 * sum(sizes):
            raise ValueError("of another length than its header says")
        self.cover = Cover(segment, first, last, number, digest, range_digest)
        self.proven = False
        """Whether sound() has said yes; files that are in place do not change."""
        self._columns = memoryview(data)[_HEAD.size :]
        ends = list(accumulate(8 * size for size in sizes))
        (self.keys, self.places, self._move_keys, self._move_places, self._tip_keys,
         self._tip_places) = [
            self._columns[a:b].cast("Q") for a, b in zip([0, *ends], ends, strict=False)
        ]  # fmt: skip

    def sound(self) -> bool:
        """Whether the columns are what was written."""
        self.proven = blake3(self._columns).digest(length=16) == self._check
        return self.proven

    def candidates(self, key: int) -> Sequence[int]:
        """The places of the objects with this key: none, one, or a few that share it."""
        keys = self.keys
        first = bisect_left(keys, key)
        if first == len(keys) or keys[first] != key:
            return ()
        return self.places[first : bisect_right(keys, key, first)]

    def between(self, low: int, high: int) -> Iterator[int]:
        """The places of the objects with keys from low to high, both included."""
        at = bisect_left(self.keys, low)
        while at < len(self.keys) and self.keys[at] <= high:
            yield self.places[at]
            at += 1

    def move(self, key: int) -> int | None:
        """The offset of the batch with this move."""
        return self._within(_lookup(self._move_keys, self._move_places, key))

    def tip(self, key: int) -> int | None:
        """The offset of the batch with the last move of this ref in the range."""
        return self._within(_lookup(self._tip_keys, self._tip_places, key))

    def tips(self) -> Iterator[int]:
        """The offsets of the batches with the last move of some ref in the range."""
        return (offset for offset in self._tip_places if offset < self.cover.last)

    def _within(self, offset: int | None) -> int | None:
        """An offset, unless it is none in the range: whoever signs an index may write any."""
        return offset if offset is not None and offset < self.cover.last else None

    def entries(self) -> Entries:
        """All entries, to be merged into another index."""
        return Entries(
            list(zip(self.keys, self.places, strict=True)),
            dict(zip(self._move_keys, self._move_places, strict=True)),
            dict(zip(self._tip_keys, self._tip_places, strict=True)),
        )


def _lookup(keys: memoryview, places: memoryview, key: int) -> int | None:
    at = bisect_left(keys, key)
    return places[at] if at < len(keys) and keys[at] == key else None


@dataclass(slots=True)
class Entries:
    """What an index holds, not yet sorted."""

    objects: list[tuple[int, int]] = field(default_factory=list)
    moves: dict[int, int] = field(default_factory=dict)
    tips: dict[int, int] = field(default_factory=dict)

    def add(self, later: Entries) -> None:
        """Take in the entries of the batches that follow."""
        self.objects += later.objects
        self.moves |= later.moves
        self.tips |= later.tips


def build(cover: Cover, entries: Entries) -> bytes:
    """The bytes of an index."""
    found = sorted(entries.objects)
    tables = (found, sorted(entries.moves.items()), sorted(entries.tips.items()))
    columns = b"".join(
        struct.pack(f"<{len(table)}Q", *[entry[i] for entry in table])
        for table in tables
        for i in (0, 1)
    )
    check = blake3(columns).digest(length=16)
    head = _HEAD.pack(MAGIC, VERSION, cover.segment, cover.first, cover.last, cover.number,
                      cover.digest, *map(len, tables), check, cover.range_digest)  # fmt: skip
    return head + columns


def renumbered(header: bytes, number: int) -> bytes:
    """The header of an index for a segment that got another number; nothing else depends on it."""
    fields = list(_HEAD.unpack(header))
    fields[2] = number
    return _HEAD.pack(*fields)


def load(path: Path) -> Index | None:
    """The index in a file, mapped; None for one that is missing or no good."""
    try:
        fd = open_plain(path)
    except (OSError, Corrupt):
        return None
    try:
        return Index(mmap.mmap(fd, 0, access=mmap.ACCESS_READ))
    except (ValueError, OSError):
        return None
    finally:
        os.close(fd)


def range_digest(fd: int, first: int, last: int) -> bytes:
    """What Cover.range_digest holds for these bytes of an open segment, read piece by piece."""
    digest = blake3()
    for at in range(first, last, _PIECE):
        digest.update(os.pread(fd, min(_PIECE, last - at), at))
    return digest.digest(length=8)
