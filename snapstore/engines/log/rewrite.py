"""Rewriting: a new generation of segments that holds what stays, beside any number of writers.

    1. take the lock of collections, so that there is one rewriting at a time
    2. take the store's lock; let the log go on in a new segment; give the lock back
    3. ask what stays
    4. copy what stays of the segments before that one to packed segments, while others save and
       read; what they commit meanwhile lies in the segments from that one on, and stays
    5. meet what was committed meanwhile: what it leads to stays too
    6. take the store's lock; meet the rest of it; put the new segments in place, seal the active
       one, let the manifest name the packed ones, those since step 2, and a new active one
    7. set the old ones aside, give the lock back

So the second time that the lock is held there is little to do, however large the store is, and
however much was committed in between. Where writers are as fast as step 5, the lock is held for a
part of the time: each of them waits a little then, and none of them long. Where there may be
nothing to do, step 3 comes before step 2, and what was committed in between is copied.

Until the manifest is replaced nothing has happened; once it is, everything has. What is left of a
rewriting that was cut off is removed by the next one, or by the next writer.

Other processes notice: the seal makes them read the manifest before they do anything else, and a
manifest that does not name what they know of makes them open everything anew. A reader goes on with
the files that it has open. That nothing a save builds on can vanish under it is checked by the
save, which compares and links under the lock (see append).

Nothing that was committed after step 2 began is dropped, whatever was asked for: a save whose
program still stands on it may be one of an instant ago.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from snapstore.disk import Disk
from snapstore.engine import Move, Obj, Progress
from snapstore.engines.log import batch as fmt
from snapstore.engines.log import trash
from snapstore.engines.log.append import Appender
from snapstore.engines.log.batch import Batch, Writer, slot_order
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.engines.log.log import Log
from snapstore.engines.log.pack import Packed, Packer
from snapstore.engines.log.records import encode_pages, moves_in
from snapstore.engines.log.segment import ZERO_DIGEST, Segment
from snapstore.engines.log.selection import Dropped, Selection
from snapstore.errors import DiskError, Locked

SETTLED = 8 << 20
"""A packed segment of this size, nothing of which goes, is left as it is."""
WORTHWHILE = 1 << 20
"""Bytes of segments that are not packed from which on packing is worth it on its own."""
LITTLE = 16 << 10
"""Bytes of the log that may be left to be met while writers wait."""
HOLD, PAUSE = 0.02, 0.01
"""Seconds for which writers are held up, and are let go on, while they are as fast as we are. They
are held up for longer where that does not help."""
_STALLED = 5
_NEVER = 1 << 62
_ALL_OF_IT = float("inf")


class Rewrite:
    """One rewriting of a store's segments."""

    def __init__(
        self,
        layout: Layout,
        disk: Disk,
        selection: Selection,
        *,
        durable: bool,
        seal_at: int,
        lock_timeout: float,
        now: int,
        progress: Progress | None = None,
    ) -> None:
        """now: microseconds since the epoch, under which what is replaced is set aside.

        progress is told of the bytes that were looked through or copied.
        """
        self.dropped = Dropped()
        self._layout = layout
        self._disk = disk
        self._selection = selection
        self._now = now
        self._seal_at = seal_at
        # Files of its own: the engine's handle goes on serving other threads meanwhile.
        self._log = Log(layout, disk)
        self._appender = Appender(
            self._log, disk, durable=durable, seal_at=_NEVER, lock_timeout=lock_timeout
        )
        self._copied: set[bytes] = set()
        self._ends: dict[int, int] = {}
        self._names: list[int | Packed] = []
        self._old: list[Segment] = []
        self._revived: list[bytes] = []
        self._progress = progress or (lambda done, total: None)
        self._done = self._total = 0
        self.at_the_end: Callable[[], None] = lambda: None
        """Called when all is done, while no other rewriting and no repair can be under way."""

    def run(self) -> bool:
        """Rewrite what has to be; whether there was anything to do.

        Raises Corrupt when the store is damaged, DiskError when there is too little space for the
        new segments beside the old ones, Locked when another rewriting is under way.
        """
        with self._alone():
            done = self._rewrite()
            self.at_the_end()
            return done

    def _rewrite(self) -> bool:
        self._log.load()
        if self._log.refusal is not None:
            raise self._log.refusal
        packed = {s.number for s in self._log.segments if s.is_packed()}
        if self._loose(packed) >= WORTHWHILE:
            self._require_space(packed)
            self._go_on_in_new_segment()
        for segment in self._old or self._log.segments:
            self._ends[segment.number] = segment.end
        self._selection.begin()
        left_alone = self._left_alone(packed)
        if left_alone is None:
            return False
        self._require_space(left_alone)
        if not self._old:
            self._go_on_in_new_segment()
        self._make_new_generation(left_alone)
        return True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        fd = self._disk.open_lock(self._layout.collect)
        try:
            if not self._disk.try_lock(fd):
                raise Locked("the segments of the store are being rewritten by another process")
            for path in trash.unfinished(self._layout):
                self._disk.remove(path)
            yield
        finally:
            os.close(fd)
            self._appender.close()
            self._log.close()

    # --- what is to be done -----------------------------------------------------------------------

    def _loose(self, packed: set[int]) -> int:
        """Bytes of segments that are not packed."""
        return sum(s.end for s in self._log.segments if s.number not in packed)

    def _left_alone(self, packed: set[int]) -> set[int] | None:
        """The segments that stay as they are; None when all may."""
        segments = self._old or self._log.segments
        candidates = segments
        if self._old:
            candidates = [s for s in segments if s.number in packed and s.end >= SETTLED]
        self._total = sum(s.end for s in segments) + sum(s.end for s in candidates)
        whole = {s.number for s in candidates if self._stays_whole(s)}
        return None if len(whole) == len(segments) else whole

    def _stays_whole(self, segment: Segment) -> bool:
        """Whether nothing of a segment goes."""
        return all(
            all(map(self._selection.keeps, opened.ids()))
            and all(self._selection.becomes(move) == move for move in moves_in(opened))
            for _, opened in self._told(self._batches(segment))
        )

    def _told(self, batches: Iterator[tuple[int, Batch]]) -> Iterator[tuple[int, Batch]]:
        """These batches; that each was dealt with is told."""
        for offset, opened in batches:
            yield offset, opened
            self._done += opened.header.size
            self._progress(min(self._done, self._total), self._total)

    def _batches(self, segment: Segment) -> Iterator[tuple[int, Batch]]:
        """The batches of a segment about which it was asked what stays."""
        return segment.scan(0, self._ends.get(segment.number, 0))

    def _require_space(self, left_alone: set[int]) -> None:
        """Before anything is written: what stays may be as large as all that is rewritten."""
        segments = self._old or self._log.segments
        rewritten = [s for s in segments if s.number not in left_alone]
        needed = sum(segment.size() for segment in rewritten)
        free = self._disk.free(self._layout.root)
        if free < needed:
            raise DiskError(
                f"rewriting needs up to {needed} bytes beside the present ones; {free} are free",
                errno.ENOSPC,
                hint="make room on the disk, then repeat; nothing was changed",
            )

    # --- copying ----------------------------------------------------------------------------------

    def _make_new_generation(self, left_alone: set[int]) -> None:
        first = max(self._layout.segments_on_disk()) + 1
        packer = Packer(self._layout, self._disk, first, seal_at=self._seal_at)
        try:
            for segment in self._old:
                if segment.number in left_alone:
                    self._names += packer.finish()
                    self._leave_alone(segment)
                    self._copied.update(i for b in self._met(segment) for i in b.ids())
                else:
                    self._pack(packer, segment)
                    self._pack_later(packer, segment)
            self._names += packer.finish()
            self._catch_up()
            self._pack_revived(packer)
            self._swap_in_time(left_alone)
        except BaseException:
            packer.give_up()
            for path in trash.unfinished(self._layout):
                self._disk.remove(path)
            raise
        for segment in self._later():
            if self._layout.segment(segment.number).exists():
                self._log.cache.store_sealed(segment)

    def _go_on_in_new_segment(self) -> None:
        """From now on what is committed lies apart from what is to be copied."""
        self._appender.check_beforehand()
        self._log.follow()
        try:
            self._appender.lock()
            self._appender.prepare()
            self._old = list(self._log.segments)
            self._appender.begin_segment()
        finally:
            self._appender.unlock()

    def _leave_alone(self, segment: Segment) -> None:
        self._names.append(segment.number)
        for _, opened in self._batches(segment):
            self._copied.update(opened.ids())

    def _pack(self, packer: Packer, segment: Segment) -> None:
        for _, opened in self._told(self._batches(segment)):
            moves = [m for m in map(self._selection.becomes, moves_in(opened)) if m is not None]
            packer.add(self._staying(opened), moves)

    def _pack_later(self, packer: Packer, segment: Segment) -> None:
        """Copy what was committed since it was asked what stays: all of it."""
        for opened in self._met(segment):
            objects = [o for o in _objects(opened) if o.id not in self._copied]
            self._copied.update(o.id for o in objects)
            packer.add(objects, moves_in(opened))

    def _staying(self, opened: Batch) -> list[Obj]:
        found: list[Obj] = []
        for slot, object_id in enumerate(opened.ids()):
            if object_id in self._copied:
                continue
            if self._selection.keeps(object_id):
                self._copied.add(object_id)
                found.append(Obj(object_id, opened.kinds[slot], opened.payload(slot)))
            else:
                self.dropped.sizes[object_id] = opened.lengths[slot]
        return found

    # --- what was committed meanwhile -------------------------------------------------------------

    def _catch_up(self) -> None:
        """Meet what was committed, until little is left or writers are nearly as fast."""
        before = _ALL_OF_IT
        while True:
            self._log.follow()
            behind = self._behind()
            if behind <= LITTLE or behind > before / 2:
                return
            self._meet()
            before = behind

    def _behind(self) -> int:
        """Bytes that were committed and not met yet, as far as can be told."""
        active = self._log.active
        known = sum(s.end - self._ends.get(s.number, 0) for s in self._later())
        return known + max(0, active.size() - active.end)

    def _later(self) -> list[Segment]:
        """The segments that were begun since."""
        return self._log.segments[len(self._old) :]

    def _meet(self, until: float = _ALL_OF_IT) -> None:
        """Meet what was committed, as far as can be done until then, by the monotonic clock."""
        for segment in self._later():
            for _ in self._met(segment, until):
                pass

    def _met(self, segment: Segment, until: float = _ALL_OF_IT) -> Iterator[Batch]:
        """The batches of a segment that were not met yet; met as they are handed out."""
        while (start := self._ends.get(segment.number, 0)) < segment.end:
            if time.monotonic() > until:
                return
            opened = segment.batch(start)
            revived = self._selection.meet(_objects(opened), moves_in(opened))
            self._revived += (i for i in revived if self.dropped.sizes.pop(i, None) is not None)
            self._ends[segment.number] = start + opened.header.size
            yield opened

    def _pack_revived(self, packer: Packer) -> None:
        """What was passed over and stays after all."""
        for object_id in self._revived:
            opened, slot = self._log.locate(object_id)
            packer.add([opened.object(slot)], [])
        self._revived = []
        self._names += packer.finish()

    # --- the swap, with the lock held -------------------------------------------------------------

    def _swap_in_time(self, left_alone: set[int]) -> None:
        """Swap as soon as all that was committed can be met in little time."""
        self._disk.make_dir(self._layout.trash)
        least, hold, stalled = _ALL_OF_IT, HOLD, 0
        while (behind := self._held(hold, left_alone)) > 0:
            stalled = 0 if behind < least else stalled + 1
            if stalled == _STALLED:
                hold, stalled = 2 * hold, 0
            least = min(behind, least)
            time.sleep(PAUSE)
        trash.settle(self._layout, self._disk, self._layout.trash)

    def _held(self, hold: float, left_alone: set[int]) -> int:
        """Meet what was committed, and swap if that was all of it; how much is left."""
        try:
            self._appender.lock()
            start = time.monotonic()
            knows_all = self._log.follow_until(start + hold / 2)
            if knows_all:
                self._appender.prepare()
            self._meet(start + hold)
            behind = self._behind()
            if knows_all and not behind:
                self._swap(left_alone)
                return 0
            return max(behind, 1)
        finally:
            self._appender.unlock()

    def _swap(self, left_alone: set[int]) -> None:
        log, layout, disk = self._log, self._layout, self._disk
        tips = log.tips()
        self._selection.confirm(tips)
        later = self._later()
        # A segment is made with one batch; with no other in it, it need not be kept.
        kept = [s.number for s in later if s.next_number > 1]
        last = log.active.number
        shift = max(0, last + 1 - self._first_new(last + 1))
        names = [*(self._put_in_place(name, shift) for name in self._names), *kept]
        active = max([*names, last]) + 1
        again = [log.locate(object_id) for object_id in self._revived]
        pieces = self._active_pieces(tips, [opened.object(slot) for opened, slot in again])
        disk.write_pieces(layout.segment(active), pieces)
        self._appender.write_seal()
        generation = Manifest.read(layout.manifest).generation + 1
        disk.write_file(layout.manifest, Manifest(generation, (*names, active)).encode())
        for segment in later:
            if segment.number not in kept:
                disk.remove(layout.segment(segment.number))
        old = [s.number for s in self._old if s.number not in left_alone]
        trash.move_aside(layout, disk, old, layout.trash, self._now)

    def _first_new(self, default: int) -> int:
        return next((n.number for n in self._names if isinstance(n, Packed)), default)

    def _put_in_place(self, name: int | Packed, shift: int) -> int:
        """The number of a segment; one that was made gets it now, past those made by others."""
        if isinstance(name, int):
            return name
        number = name.number + shift
        name.put_in_place(self._layout, self._disk, number)
        return number

    def _active_pieces(self, tips: Sequence[Move], objects: Sequence[Obj]) -> Iterator[bytes]:
        """The new active segment: the refs as they are, then what stays after all."""
        kept = [self._selection.becomes(tip) or tip for tip in tips]
        pages = [(fmt.REFS, page) for page in encode_pages(kept)]
        data, digest = Writer().pack(
            [], pages, flags=fmt.START, number=0, durable_end=0,
            previous=ZERO_DIGEST[: fmt.CHAIN_SIZE])  # fmt: skip
        yield data
        if objects:
            data, _ = Writer().pack(
                sorted(objects, key=slot_order), [], flags=0, number=1, durable_end=0,
                previous=digest[: fmt.CHAIN_SIZE])  # fmt: skip
            yield data


def _objects(opened: Batch) -> list[Obj]:
    return [opened.object(slot) for slot in range(opened.objects)]
