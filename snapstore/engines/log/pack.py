"""Packing: segments written anew from objects and moves that stay, small and in one go.

A packed segment is a segment like any other, so reading one needs nothing further:

    first batch    START and PACKED; the dictionary of the segment, if it has one
    batches        about 1 MiB of objects each, in the order they come in, with the moves among them
    last batch     SEAL; the dictionary again

Its messages are compressed in larger blocks, at a higher level and with a dictionary. Neighbours in
the log are neighbours in their sessions, so what is read together still lies together.

A segment is written under an unfinished name and synced, and its index beside it. Whoever packs
then renames both and lets the manifest name the segment: until that is done nothing of it counts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from blake3 import blake3

from snapstore.disk import Disk
from snapstore.engine import Kind, Move, Obj
from snapstore.engines.log import batch as fmt
from snapstore.engines.log.batch import Writer, slot_order
from snapstore.engines.log.codec import PACKED, Dictionary, train
from snapstore.engines.log.index import (
    HEADER_SIZE,
    Cover,
    Entries,
    build,
    object_key,
    place,
    ref_key,
    renumbered,
)
from snapstore.engines.log.layout import Layout
from snapstore.engines.log.records import encode_move
from snapstore.engines.log.segment import ZERO_DIGEST
from snapstore.errors import DiskError

BATCH = 1 << 20
"""Raw bytes in a batch; all of it is read and hashed to read one message."""
BATCH_RECORDS = 1024
LEARN = 8 << 20
"""Raw bytes of a segment from which its dictionary is trained."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A segment that was written and waits under its unfinished name."""

    number: int
    size: int

    def put_in_place(self, layout: Layout, disk: Disk, number: int) -> None:
        """Give it its name and its number, which may be another one. The index goes with it, but is
        throw-away: what fails there only costs time."""
        disk.rename(layout.unfinished(self.number), layout.segment(number))
        with contextlib.suppress(DiskError):
            waiting = layout.unfinished_index(self.number)
            if number != self.number:
                _renumber(waiting, disk, number)
            disk.rename(waiting, layout.index(number))


@dataclass(slots=True)
class _Open:
    """The segment that is being written."""

    number: int
    fd: int
    writer: Writer
    dictionary: Dictionary | None
    end: int = 0
    batches: int = 0
    digest: bytes = ZERO_DIGEST
    entries: Entries = field(default_factory=Entries)
    hash: blake3 = field(default_factory=blake3)

    def close(self) -> None:
        """Give the descriptor back, once."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class Packer:
    """Takes objects and moves in order, and makes packed segments of them."""

    def __init__(self, layout: Layout, disk: Disk, first: int, *, seal_at: int) -> None:
        """The segments are numbered from first on, and end at about seal_at bytes."""
        self.done: list[Packed] = []
        self._layout = layout
        self._disk = disk
        self._next = first
        self._seal_at = seal_at
        self._open: _Open | None = None
        self._waiting: list[tuple[list[Obj], list[Move]]] = []
        """Batches that are held back until there is enough to learn from."""
        self._held_back = 0
        self._objects: list[Obj] = []
        self._moves: list[Move] = []
        self._size = 0

    def add(self, objects: Iterable[Obj], moves: Iterable[Move]) -> None:
        """Take what one batch of the log held. The moves come after these objects."""
        for o in objects:
            self._objects.append(o)
            self._size += len(o.payload)
        self._moves += moves
        if self._size >= BATCH or len(self._objects) + len(self._moves) >= BATCH_RECORDS:
            self._end_batch()

    def _end_batch(self) -> None:
        if not self._objects and not self._moves:
            return
        self._waiting.append((self._objects, self._moves))
        self._held_back += self._size
        self._objects, self._moves, self._size = [], [], 0
        if self._open is not None or self._held_back >= LEARN:
            self._write_waiting()

    def _write_waiting(self) -> None:
        for objects, moves in self._waiting:
            into = self._open or self._begin()
            self._write(into, objects, moves)
            if into.end >= self._seal_at:
                self._finish(into)
        self._waiting, self._held_back = [], 0

    def _begin(self) -> _Open:
        contents = [
            o.payload for objects, _ in self._waiting for o in objects if o.kind == Kind.CONTENT
        ]
        dictionary = train(contents)
        number, self._next = self._next, self._next + 1
        fd = self._disk.create(self._layout.unfinished(number))
        into = self._open = _Open(number, fd, Writer(PACKED, dictionary), dictionary)
        self._put(into, [], _records_of(dictionary), fmt.START | fmt.PACKED)
        return into

    def _write(self, into: _Open, objects: list[Obj], moves: list[Move]) -> None:
        objects.sort(key=slot_order)
        slots = {o.id: slot for slot, o in enumerate(objects)}
        extra = [
            (fmt.MOVE, encode_move(move, slots.get(move.new) if move.new else None))
            for move in moves
        ]
        entries, base = into.entries, place(into.end, 0)
        entries.objects += [(object_key(o.id), base | slot) for slot, o in enumerate(objects)]
        for move in moves:
            entries.moves[ref_key(move.ref, move.gen)] = into.end
            entries.tips[ref_key(move.ref)] = into.end
        self._put(into, objects, extra, 0)

    def _put(
        self, into: _Open, objects: list[Obj], extra: list[tuple[int, bytes]], flags: int
    ) -> None:
        data, into.digest = into.writer.pack(
            objects,
            extra,
            flags=flags,
            number=into.batches,
            durable_end=0,
            previous=into.digest[: fmt.CHAIN_SIZE],
        )
        self._disk.write_at(into.fd, data, into.end)
        into.hash.update(data)
        into.end += len(data)
        into.batches += 1

    def _finish(self, into: _Open) -> None:
        self._put(into, [], _records_of(into.dictionary), fmt.SEAL)
        self._disk.sync(into.fd)
        into.close()
        self._open = None
        cover = Cover(
            into.number, 0, into.end, into.batches, into.digest, into.hash.digest(length=8)
        )
        index = self._layout.unfinished_index(into.number)
        self._disk.write_cache(index, build(cover, into.entries))
        self.done.append(Packed(into.number, into.end))

    def finish(self) -> list[Packed]:
        """Write what was added and is not written yet; the segments that were made since the
        last time."""
        self._end_batch()
        self._write_waiting()
        if self._open is not None:
            self._finish(self._open)
        made, self.done = self.done, []
        return made

    def give_up(self) -> None:
        """Leave no file behind."""
        if self._open is not None:
            self._open.close()
            self._disk.remove(self._layout.unfinished(self._open.number))
            self._open = None


def _renumber(index: Path, disk: Disk, number: int) -> None:
    fd = disk.open(index, writable=True)
    try:
        disk.write_at(fd, renumbered(os.pread(fd, HEADER_SIZE, 0), number), 0)
    finally:
        os.close(fd)


def _records_of(dictionary: Dictionary | None) -> list[tuple[int, bytes]]:
    return [] if dictionary is None else [(fmt.DICT, dictionary.data)]
