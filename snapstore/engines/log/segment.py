"""One segment: a file of batches, read through its indexes.

A segment knows its verified end. Behind that, batches that another process has written are taken
in by ``follow``; bytes that do not verify are never read, whatever they look like.
"""

from __future__ import annotations

import contextlib
import errno
import os
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import zstandard

from snapstore.disk import Disk
from snapstore.engines.log import batch as fmt
from snapstore.engines.log.batch import Batch
from snapstore.engines.log.codec import Dictionary
from snapstore.engines.log.index import (
    Cover,
    Entries,
    Index,
    build,
    object_key,
    place,
    placed,
    range_digest,
    ref_key,
)
from snapstore.engines.log.records import decode_page, moves_in
from snapstore.errors import Corrupt, DiskError, UnsupportedFormat

_READ = 4096
_WINDOW = 256 << 10
_OPEN_BATCHES = 2048
_OPEN_BYTES = 8 << 20
ZERO_DIGEST = bytes(16)


class Segment:
    """A segment file and what is known of it. Guarded by the engine's mutex."""

    def __init__(self, number: int, path: Path, disk: Disk):
        self.number = number
        self.path = path
        self.name = str(path)
        try:
            self.fd = disk.open(path, writable=False)
        except DiskError as error:
            if error.errno != errno.ENOENT:
                raise
            raise Corrupt("a segment that the manifest names is missing", path=str(path)) from error
        # A segment that was replaced is still read by who walks it; nobody else is to close it.
        self._let_go = weakref.finalize(self, os.close, self.fd)
        self.end = 0
        """Everything before it verified, or is covered by an index."""
        self.next_number = 0
        self.digest = ZERO_DIGEST
        self.durable_end = 0
        self.sealed = False
        self.indexes: list[Index] = []
        self.fresh_from = 0
        self.fresh_batches = 0
        self.fresh: dict[bytes, int] = {}
        self.fresh_moves: dict[tuple[str, int], int] = {}
        self.fresh_tips: dict[str, int] = {}
        self._open: OrderedDict[int, Batch] = OrderedDict()
        self._open_bytes = 0
        self._window = (0, b"")
        self._last = 0
        self._dictionary: Dictionary | None = None

    def close(self) -> None:
        """Give the descriptors back."""
        self._let_go()
        self.fd = -1
        self.indexes.clear()
        self._open.clear()

    def size(self) -> int:
        """Bytes in the file now."""
        return os.lseek(self.fd, 0, os.SEEK_END)

    # --- batches --------------------------------------------------------------------------------

    def batch(self, offset: int) -> Batch:
        """The batch at an offset, verified. Raises Corrupt."""
        known = self._open.get(offset)
        if known is not None:
            return known
        opened = self._opened(offset)
        self._remember(offset, opened)
        return opened

    def _remember(self, offset: int, opened: Batch) -> None:
        self._open[offset] = opened
        self._open_bytes += len(opened.data)
        while len(self._open) > _OPEN_BATCHES or self._open_bytes > _OPEN_BYTES:
            if len(self._open) == 1:
                break
            _, old = self._open.popitem(last=False)
            self._open_bytes -= len(old.data)

    def opened_after(self, opened: Batch) -> Batch | None:
        """The batch behind one of this segment, if it is at hand."""
        name, offset = opened.where
        return self._open.get(offset + opened.header.size) if name == self.name else None

    def _opened(self, offset: int) -> Batch:
        where = (self.name, offset)
        data = self._in_window(offset)
        if len(data) < fmt.HEADER_SIZE:
            data = os.pread(self.fd, _READ, offset)
        header = fmt.Header(data, where)
        size = header.size
        if size > len(data):
            data = self._whole(offset, size)
        whole = data[:size] if len(data) > size else data
        return Batch(whole, where, header, self.dictionary)

    def dictionary(self) -> Dictionary:
        """The dictionary that the messages of a packed segment need. Raises Corrupt."""
        if self._dictionary is None:
            self._dictionary = self._read_dictionary()
        return self._dictionary

    def _read_dictionary(self) -> Dictionary:
        # It stands in the first batch and again in the last: one damaged batch must not cost all.
        for is_last in (False, True):
            with contextlib.suppress(Corrupt, ValueError, zstandard.ZstdError):
                opened = self.batch_before(self.size()) if is_last else self._opened(0)
                for payload in opened.payloads(fmt.DICT):
                    return Dictionary(payload)
        raise Corrupt("the dictionary of a packed segment is gone", path=self.name, offset=0)

    def is_packed(self) -> bool:
        """Whether it was written by a packer, so that packing it again gains nothing."""
        try:
            return bool(self._opened(0).header.flags & fmt.PACKED)
        except (Corrupt, UnsupportedFormat):
            return False

    def _whole(self, offset: int, size: int) -> bytes:
        begin, window = self._window
        if begin <= offset and offset + size <= begin + len(window):
            return window[offset - begin : offset - begin + size]
        if offset + size > self.size():
            raise Corrupt("a batch is cut short", path=self.name, offset=offset)
        return os.pread(self.fd, size, offset)

    def _in_window(self, offset: int) -> bytes:
        """Bytes from offset on, from one larger read where neighbours are read one by one."""
        near = abs(offset - self._last) < _WINDOW
        forward = offset > self._last
        self._last = offset
        begin, window = self._window
        at = offset - begin
        if 0 <= at < len(window):
            found = window[at : at + _READ]
            if len(found) == _READ or begin + len(window) == self.end:
                return found
        if not near or self.end - offset < _READ:
            return b""
        begin = offset if forward else max(0, offset + _READ - _WINDOW)
        window = os.pread(self.fd, min(self.end, begin + _WINDOW) - begin, begin)
        self._window = (begin, window)
        return window[offset - begin : offset - begin + _READ]

    def scan(self, start: int, stop: int | None = None) -> Iterator[tuple[int, Batch]]:
        """Batches from start on, in order, until one does not verify (Corrupt) or stop."""
        stop = self.size() if stop is None else stop
        while start < stop:
            opened = self._opened(start)
            yield start, opened
            start += opened.header.size

    def whole_batches(self, start: int) -> Iterator[int]:
        """Offsets of the batches that verify from start on, whatever lies between them."""
        size = self.size()
        data = os.pread(self.fd, size - start, start)
        at = data.find(fmt.MAGIC)
        while at >= 0:
            try:
                length = self._opened(start + at).header.size
            except (Corrupt, UnsupportedFormat):
                at = data.find(fmt.MAGIC, at + 1)
                continue
            yield start + at
            at = data.find(fmt.MAGIC, at + length)

    def batch_before(self, end: int) -> Batch:
        """The batch that ends at an offset, for walking backwards. Raises Corrupt."""
        trailer = os.pread(self.fd, fmt.TRAILER_SIZE, max(0, end - fmt.TRAILER_SIZE))
        length = int.from_bytes(trailer[16:20], "little")
        with contextlib.suppress(Corrupt):
            opened = self.batch(end - length) if fmt.HEADER_SIZE < length <= end else None
            if opened is not None and opened.header.size == length:
                return opened
        # Where the batch begins stands in its trailer, which may be what is damaged.
        start = self._start_of_batch_before(end)
        raise Corrupt("a batch does not verify", path=self.name, offset=start)

    def _start_of_batch_before(self, end: int) -> int:
        """Where the batch that ends at an offset begins, or an earlier one that is damaged."""
        at = 0
        while at < end:
            try:
                header = fmt.Header(os.pread(self.fd, fmt.HEADER_SIZE, at), (self.name, at))
            except (Corrupt, UnsupportedFormat):
                break
            if at + header.size >= end:
                break
            at += int(header.size)
        return at

    # --- growing --------------------------------------------------------------------------------

    def follow(self) -> Iterator[Batch]:
        """Take in the batches behind the verified end, as far as they verify."""
        size = self.size()
        while self.end < size and not self.sealed:
            try:
                opened = self._opened(self.end)
            except Corrupt:
                return
            if not self._comes_next(opened.header):
                return
            self._remember(self.end, opened)
            # Handed out first: one that is interrupted between the two hands it out again.
            yield opened
            self.take(self.end, opened)

    def _comes_next(self, header: fmt.Header) -> bool:
        # A batch of an earlier life of the file verifies too, but does not follow on this one.
        linked = header.number == 0 or header.previous == self.chain()
        return bool(linked and header.number == self.next_number)

    def chain(self) -> bytes:
        """What the next batch names as its predecessor."""
        return self.digest[: fmt.CHAIN_SIZE]

    def take(self, offset: int, opened: Batch) -> None:
        """Count a verified batch at the end as part of the segment."""
        names = [(move.ref, move.gen) for move in moves_in(opened)]
        self.grow(offset, opened.header.size, opened.digest, opened.ids(), names)
        for page in opened.payloads(fmt.REFS):
            for move in decode_page(page):
                self.fresh_tips[move.ref] = offset
        self.durable_end = max(self.durable_end, opened.header.durable_end)
        self.sealed = bool(opened.header.flags & fmt.SEAL)

    def grow(
        self, offset: int, size: int, digest: bytes, ids: list[bytes], moves: list[tuple[str, int]]
    ) -> None:
        """Note what a batch at the end holds."""
        base = place(offset, 0)
        for slot, object_id in enumerate(ids):
            self.fresh[object_id] = base | slot
        for move in moves:
            self.fresh_moves[move] = offset
            self.fresh_tips[move[0]] = offset
        self.end = offset + size
        self.next_number += 1
        self.digest = digest
        self.fresh_batches += 1

    # --- looking up -----------------------------------------------------------------------------

    def find(self, object_id: bytes) -> tuple[Batch, int] | None:
        """The batch and slot of an object. Raises Corrupt where the batch does not verify."""
        where = self.fresh.get(object_id)
        if where is not None:
            offset, slot = placed(where)
            return self.batch(offset), slot
        key, damage = object_key(object_id), None
        for index in self.indexes:
            for where in index.candidates(key):
                offset, slot = placed(where)
                try:
                    opened = self.batch(offset)
                except Corrupt as error:
                    damage = error  # what was found damaged may have been stored again since
                    continue
                if slot < opened.objects and opened.id_at(slot) == object_id:
                    return opened, slot
        if damage is not None:
            raise damage
        return None

    def tip_offset(self, ref: str) -> int | None:
        """The batch with the last move of a ref in this segment."""
        offset = self.fresh_tips.get(ref)
        for index in reversed(self.indexes):
            if offset is not None:
                break
            offset = index.tip(ref_key(ref))
        return offset

    def move_offset(self, ref: str, gen: int) -> int | None:
        """The batch with a certain move of a ref."""
        offset = self.fresh_moves.get((ref, gen))
        for index in reversed(self.indexes):
            if offset is not None:
                break
            offset = index.move(ref_key(ref, gen))
        return offset

    def tip_offsets(self) -> set[int]:
        """The batches that hold the last move of some ref in this segment."""
        offsets = set(self.fresh_tips.values())
        for index in self.indexes:
            offsets.update(index.tips())
        return offsets

    def between(self, low: int, high: int) -> Iterator[tuple[bytes, int]]:
        """(id, kind) of the objects whose keys lie from low to high, both included."""
        places = [p for i, p in self.fresh.items() if low <= object_key(i) <= high]
        for index in self.indexes:
            places += index.between(low, high)
        for where in places:
            offset, slot = placed(where)
            opened = self.batch(offset)
            yield opened.id_at(slot), opened.kinds[slot]

    def objects(self) -> int:
        """How many objects there are, a repeated one counted each time."""
        return len(self.fresh) + sum(len(index.keys) for index in self.indexes)

    # --- indexes --------------------------------------------------------------------------------

    def adopt(self, index: Index) -> bool:
        """Rely on an index that goes on where what is known ends; False if it does not fit."""
        cover = index.cover
        if cover.segment != self.number or cover.first != self.end or cover.last > self.size():
            return False
        last = os.pread(self.fd, fmt.TRAILER_SIZE, cover.last - fmt.TRAILER_SIZE)
        if last[:16] != cover.digest:
            return False
        self.indexes.append(index)
        self.end = self.fresh_from = cover.last
        self.next_number, self.digest = cover.number, cover.digest
        self.sealed = self.is_sealed_before(cover.last)
        return True

    def is_sealed_before(self, end: int) -> bool:
        """Whether the batch that ends there says that writing goes on in another segment."""
        try:
            return bool(self.batch_before(end).header.flags & fmt.SEAL)
        except (Corrupt, UnsupportedFormat):
            return False

    def fresh_index(self, merge: int = 0) -> tuple[Cover, bytes]:
        """The bytes of an index of the fresh batches, with the last ``merge`` indexes merged in."""
        merged = self.indexes[len(self.indexes) - merge :]
        first = merged[0].cover.first if merged else self.fresh_from
        entries = Entries()
        for index in merged:
            entries.add(index.entries())
        entries.add(
            Entries(
                [(object_key(i), where) for i, where in self.fresh.items()],
                {ref_key(*move): offset for move, offset in self.fresh_moves.items()},
                {ref_key(ref): offset for ref, offset in self.fresh_tips.items()},
            )
        )
        cover = Cover(self.number, first, self.end, self.next_number, self.digest,
                      range_digest(self.fd, first, self.end))  # fmt: skip
        return cover, build(cover, entries)

    def use_fresh_index(self, index: Index, merge: int) -> None:
        """Put an index made by fresh_index in the place of what it covers."""
        del self.indexes[len(self.indexes) - merge :]
        self.indexes.append(index)
        self.fresh, self.fresh_moves, self.fresh_tips = {}, {}, {}
        self.fresh_from, self.fresh_batches = self.end, 0

    def forget(self) -> None:
        """Rely on nothing that was known; the next follow starts from the first byte."""
        self.indexes.clear()
        self._open.clear()
        self._open_bytes = 0
        self._window = (0, b"")
        self.fresh, self.fresh_moves, self.fresh_tips = {}, {}, {}
        self.end = self.next_number = self.durable_end = 0
        self.fresh_from = self.fresh_batches = 0
        self.digest, self.sealed = ZERO_DIGEST, False

    def covered_is_intact(self) -> bool:
        """Whether the bytes that the indexes cover are those that they were made from."""
        return all(
            range_digest(self.fd, c.first, c.last) == c.range_digest
            for c in (index.cover for index in self.indexes)
        )
