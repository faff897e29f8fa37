"""One segment: a file of batches, read through its indexes.

A segment knows its verified end. Behind that, batches that another process has written are taken
in by ``follow``; bytes that do not verify are never read, whatever they look like.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from snapstore.disk import Disk
from snapstore.engine import Obj
from snapstore.engines.log import batch as fmt
from snapstore.engines.log.batch import Batch
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
from snapstore.engines.log.records import decode_move, decode_page
from snapstore.errors import Corrupt, UnsupportedFormat

_READ = 4096
_WINDOW = 256 << 10
_OPEN_BATCHES = 256
_OPEN_BYTES = 8 << 20
ZERO_DIGEST = bytes(16)


class Segment:
    """A segment file and what is known of it. Guarded by the engine's mutex."""

    def __init__(self, number: int, path: Path, disk: Disk):
        self.number = number
        self.path = path
        self.fd = disk.open(path, writable=False)
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
        self.fresh_moves: dict[int, int] = {}
        self.fresh_tips: dict[int, int] = {}
        self._open: OrderedDict[int, Batch] = OrderedDict()
        self._open_bytes = 0
        self._window = b""
        self._window_at = 0
        self._last = 0

    def close(self) -> None:
        """Give the descriptors back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self.indexes.clear()
        self._open.clear()

    def size(self) -> int:
        """Bytes in the file now."""
        return os.fstat(self.fd).st_size

    # --- batches --------------------------------------------------------------------------------

    def batch(self, offset: int) -> Batch:
        """The batch at an offset, verified. Raises Corrupt."""
        known = self._open.get(offset)
        if known is not None:
            return known
        opened = Batch(self._bytes_of(offset), (str(self.path), offset))
        self._open[offset] = opened
        self._open_bytes += len(opened.data)
        while len(self._open) > _OPEN_BATCHES or self._open_bytes > _OPEN_BYTES:
            if len(self._open) == 1:
                break
            _, old = self._open.popitem(last=False)
            self._open_bytes -= len(old.data)
        return opened

    def _bytes_of(self, offset: int) -> bytes:
        data = self._in_window(offset)
        if len(data) < fmt.HEADER_SIZE:
            data = os.pread(self.fd, _READ, offset)
        size = fmt.Header(data, (str(self.path), offset)).size
        if size > len(data):
            data = os.pread(self.fd, size, offset)
        return data[:size] if len(data) > size else data

    def _in_window(self, offset: int) -> bytes:
        """Bytes from offset on, from one larger read where neighbours are read one by one."""
        near = abs(offset - self._last) < _WINDOW
        forward = offset > self._last
        self._last = offset
        at = offset - self._window_at
        if 0 <= at < len(self._window):
            found = self._window[at : at + _READ]
            if len(found) == _READ or self._window_at + len(self._window) == self.end:
                return found
        if not near or self.end - offset < _READ:
            return b""
        self._window_at = offset if forward else max(0, offset + _READ - _WINDOW)
        stop = min(self.end, self._window_at + _WINDOW)
        self._window = os.pread(self.fd, stop - self._window_at, self._window_at)
        at = offset - self._window_at
        return self._window[at : at + _READ]

    def scan(self, start: int, stop: int | None = None) -> Iterator[tuple[int, Batch]]:
        """Batches from start on, in order, until one does not verify (Corrupt) or stop."""
        stop = self.size() if stop is None else stop
        while start < stop:
            opened = Batch(self._bytes_of(start), (str(self.path), start))
            yield start, opened
            start += opened.header.size

    def whole_batches(self, start: int) -> Iterator[int]:
        """Offsets of the batches that verify from start on, whatever lies between them."""
        size = self.size()
        data = os.pread(self.fd, size - start, start)
        at = data.find(fmt.MAGIC)
        while at >= 0:
            try:
                length = self.batch(start + at).header.size
            except (Corrupt, UnsupportedFormat):
                at = data.find(fmt.MAGIC, at + 1)
                continue
            yield start + at
            at = data.find(fmt.MAGIC, at + length)

    def backwards(self) -> Iterator[Batch]:
        """Batches from the verified end to the start."""
        end = self.end
        while end > 0:
            trailer = os.pread(self.fd, fmt.TRAILER_SIZE, end - fmt.TRAILER_SIZE)
            length = int.from_bytes(trailer[16:20], "little")
            if not fmt.HEADER_SIZE < length <= end:
                raise Corrupt("a batch trailer makes no sense", path=str(self.path), offset=end)
            end -= length
            yield self.batch(end)

    # --- growing --------------------------------------------------------------------------------

    def follow(self) -> Iterator[Batch]:
        """Take in the batches behind the verified end, as far as they verify."""
        size = self.size()
        while self.end < size and not self.sealed:
            try:
                opened = self.batch(self.end)
            except Corrupt:
                self._open.pop(self.end, None)
                return
            if not self._comes_next(opened.header):
                return
            self.take(self.end, opened)
            yield opened

    def _comes_next(self, header: fmt.Header) -> bool:
        # A batch of an earlier life of the file verifies too, but does not follow on this one.
        linked = header.number == 0 or header.previous == self.chain()
        return linked and header.number == self.next_number

    def chain(self) -> bytes:
        """What the next batch names as its predecessor."""
        return self.digest[: fmt.CHAIN_SIZE]

    def take(self, offset: int, opened: Batch) -> None:
        """Count a verified batch at the end as part of the segment."""
        objects = [opened.id_at(slot) for slot in range(opened.objects())]
        moves = [decode_move(p) for p in opened.payloads(fmt.MOVE)]
        names = [(m.ref, m.gen) for m in moves]
        self.grow(offset, opened.header.size, opened.digest, objects, names)
        for page in opened.payloads(fmt.REFS):
            for move in decode_page(page):
                self.fresh_tips[ref_key(move.ref)] = offset
        self.durable_end = max(self.durable_end, opened.header.durable_end)
        self.sealed = bool(opened.header.flags & fmt.SEAL)

    def grow(
        self, offset: int, size: int, digest: bytes, ids: list[bytes], moves: list[tuple[str, int]]
    ) -> None:
        """Note what a batch at the end holds."""
        base = place(offset, 0)
        for slot, object_id in enumerate(ids):
            self.fresh[object_id] = base | slot
        for name, gen in moves:
            self.fresh_moves[ref_key(name, gen)] = offset
            self.fresh_tips[ref_key(name)] = offset
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
        key = object_key(object_id)
        for index in reversed(self.indexes):
            for where in index.candidates(key):
                offset, slot = placed(where)
                opened = self.batch(offset)
                if opened.id_at(slot) == object_id:
                    return opened, slot
        return None

    def tip_offset(self, key: int) -> int | None:
        """The batch with the last move of a ref in this segment."""
        offset = self.fresh_tips.get(key)
        for index in reversed(self.indexes):
            if offset is not None:
                break
            offset = index.tip(key)
        return offset

    def move_offset(self, key: int) -> int | None:
        """The batch with a certain move."""
        offset = self.fresh_moves.get(key)
        for index in reversed(self.indexes):
            if offset is not None:
                break
            offset = index.move(key)
        return offset

    def tip_offsets(self) -> set[int]:
        """The batches that hold the last move of some ref in this segment."""
        offsets = set(self.fresh_tips.values())
        for index in self.indexes:
            offsets.update(index.tip_places)
        return offsets

    def between(self, low: int, high: int) -> Iterator[Obj]:
        """The objects whose keys lie from low to high, both included."""
        for object_id in list(self.fresh):
            if low <= object_key(object_id) <= high:
                found = self.find(object_id)
                if found:
                    yield found[0].object(found[1])
        for index in list(self.indexes):
            for where in list(index.between(low, high)):
                offset, slot = placed(where)
                yield self.batch(offset).object(slot)

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
        return True

    def fresh_index(self, merge: int = 0) -> tuple[Cover, bytes]:
        """The bytes of an index of the fresh batches, with the last ``merge`` indexes merged in."""
        merged = self.indexes[len(self.indexes) - merge :]
        first = merged[0].cover.first if merged else self.fresh_from
        entries = Entries()
        for index in merged:
            entries.add(index.entries())
        fresh = [(object_key(i), where) for i, where in self.fresh.items()]
        entries.add(Entries(fresh, self.fresh_moves, self.fresh_tips))
        covered = os.pread(self.fd, self.end - first, first)
        cover = Cover(self.number, first, self.end, self.next_number, self.digest,
                      range_digest(covered))  # fmt: skip
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
        self._window = b""
        self.fresh, self.fresh_moves, self.fresh_tips = {}, {}, {}
        self.end = self.next_number = self.durable_end = 0
        self.fresh_from = self.fresh_batches = 0
        self.digest, self.sealed = ZERO_DIGEST, False

    def covered_is_intact(self) -> bool:
        """Whether the bytes that the indexes cover are those that they were made from."""
        return all(
            range_digest(os.pread(self.fd, c.last - c.first, c.first)) == c.range_digest
            for c in (index.cover for index in self.indexes)
        )
