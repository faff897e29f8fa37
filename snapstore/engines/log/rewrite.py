"""Rewriting: a new generation of segments that holds what stays, beside any number of writers.

    1. take the lock of collections, so that there is one rewriting at a time
    2. ask what stays; copy it to packed segments, while others save and read
    3. take in what was committed since, until little is left
    4. take the store's lock; ask again what stays; write what is new to a new active segment
    5. put the new segments in place, seal the old active one, let the manifest name the new ones
    6. set the old ones aside, give the lock back

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
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from snapstore.disk import Disk
from snapstore.engine import Move, Obj, check_tips
from snapstore.engines.log import batch as fmt
from snapstore.engines.log import trash
from snapstore.engines.log.append import Appender
from snapstore.engines.log.batch import Batch, Writer, slot_order
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.engines.log.log import Log
from snapstore.engines.log.pack import Packed, Packer
from snapstore.engines.log.records import encode_move, encode_pages, moves_in
from snapstore.engines.log.segment import ZERO_DIGEST, Segment
from snapstore.errors import DiskError, Locked

SETTLED = 8 << 20
"""A packed segment of this size, nothing of which goes, is left as it is."""
WORTHWHILE = 1 << 20
"""Bytes of segments that are not packed from which on packing is worth it on its own."""
LITTLE = 16 << 10
"""Bytes of the log that may be left to be copied while writers wait."""
_ROUNDS = 10
_NEVER = 1 << 62


class Selection(Protocol):
    """Says what stays."""

    def renew(self) -> Collection[bytes]:
        """Take in what was committed since it was last asked; the ids that stay from now on and
        would not have before. Called again with the store's lock held, and must be quick then."""

    def keeps(self, object_id: bytes) -> bool:
        """Whether an object stays."""

    def becomes(self, move: Move) -> Move | None:
        """What becomes of a move: the same, one that says less, or None for nothing."""

    def confirm(self, tips: Sequence[Move]) -> None:
        """Called last, with the lock held and the last moves of all refs: what it raises gives the
        rewriting up, and nothing has happened."""


class AllBut:
    """Everything stays but some objects, and of some refs the moves before a certain one."""

    def __init__(
        self,
        objects: Collection[bytes],
        before: Mapping[str, int],
        tips: Mapping[str, int] | None,
    ) -> None:
        """With tips, the gen of each ref's last move, only if none has moved since."""
        self._objects = frozenset(objects)
        self._before = before
        self._tips = tips

    def renew(self) -> Collection[bytes]:
        """See ``Selection``."""
        return ()

    def keeps(self, object_id: bytes) -> bool:
        """See ``Selection``."""
        return object_id not in self._objects

    def becomes(self, move: Move) -> Move | None:
        """See ``Selection``."""
        return move if move.gen >= self._before.get(move.ref, 0) else None

    def confirm(self, tips: Sequence[Move]) -> None:
        """See ``Selection``. Raises RefMoved."""
        if self._tips is not None:
            check_tips(self._tips, tips)


@dataclass(slots=True)
class Dropped:
    """What a rewriting leaves out, or would: distinct objects, and bytes of their contents."""

    sizes: dict[bytes, int] = field(default_factory=dict)

    @property
    def objects(self) -> int:
        """How many."""
        return len(self.sizes)

    @property
    def bytes(self) -> int:
        """How much they held, before compression."""
        return sum(self.sizes.values())


@dataclass(frozen=True, slots=True)
class Part:
    """What of one batch stays."""

    objects: list[Obj]
    moves: list[Move]


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
    ) -> None:
        """now: microseconds since the epoch, under which what is replaced is set aside."""
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

    def run(self) -> bool:
        """Rewrite what has to be; whether there was anything to do.

        Raises Corrupt when the store is damaged, DiskError when there is too little space for the
        new segments beside the old ones, Locked when another rewriting is under way.
        """
        with self._alone():
            self._log.load()
            if self._log.damaged is not None:
                raise self._log.damaged
            for segment in self._log.segments:
                self._ends[segment.number] = segment.end
            self._selection.renew()
            left_alone = self._left_alone()
            if left_alone is None:
                return False
            self._require_space(left_alone)
            self._copy_to_new_generation(left_alone)
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

    def _left_alone(self) -> set[int] | None:
        """The segments that stay as they are; None when all may."""
        segments = self._log.segments
        whole = {s.number for s in segments if self._stays_whole(s)}
        packed = {s.number for s in segments if s.is_packed()}
        loose = sum(s.end for s in segments if s.number not in packed)
        if loose < WORTHWHILE:
            return None if len(whole) == len(segments) else whole
        settled = {s.number for s in segments if s.number in packed and s.end >= SETTLED}
        return whole & settled

    def _stays_whole(self, segment: Segment) -> bool:
        """Whether nothing of a segment goes."""
        return all(
            all(map(self._selection.keeps, opened.ids()))
            and all(self._selection.becomes(move) == move for move in moves_in(opened))
            for _, opened in self._batches(segment)
        )

    def _batches(self, segment: Segment, start: int = 0) -> Iterator[tuple[int, Batch]]:
        """The batches of a segment that are to be copied, from an offset on."""
        return segment.scan(start, self._ends.get(segment.number, segment.end))

    def _require_space(self, left_alone: set[int]) -> None:
        """Before anything is written: what stays may be as large as all that is rewritten."""
        rewritten = [s for s in self._log.segments if s.number not in left_alone]
        needed = sum(segment.size() for segment in rewritten)
        free = self._disk.free(self._layout.root)
        if free < needed:
            raise DiskError(
                f"rewriting needs up to {needed} bytes beside the present ones; {free} are free",
                errno.ENOSPC,
                hint="make room on the disk, then repeat; nothing was changed",
            )

    # --- copying ----------------------------------------------------------------------------------

    def _copy_to_new_generation(self, left_alone: set[int]) -> None:
        first = max(self._layout.segments_on_disk()) + 1
        packer = Packer(self._layout, self._disk, first, seal_at=self._seal_at)
        try:
            for segment in list(self._log.segments):
                if segment.number in left_alone:
                    self._names += packer.finish()
                    self._leave_alone(segment)
                else:
                    self._pack(packer, segment)
            self._names += packer.finish()
            self._catch_up(packer)
            self._appender.lock()
            try:
                self._swap(left_alone)
            finally:
                self._appender.unlock()
        except BaseException:
            packer.give_up()
            for path in trash.unfinished(self._layout):
                self._disk.remove(path)
            raise

    def _leave_alone(self, segment: Segment) -> None:
        self._names.append(segment.number)
        for _, opened in self._batches(segment):
            self._copied.update(opened.ids())

    def _pack(self, packer: Packer, segment: Segment) -> None:
        for _, opened in self._batches(segment):
            moves = [m for m in map(self._selection.becomes, moves_in(opened)) if m is not None]
            packer.add(self._staying(opened), moves)

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

    def _catch_up(self, packer: Packer) -> None:
        for _ in range(_ROUNDS):
            self._log.follow()
            if self._behind() <= LITTLE:
                return
            for part in self._news():
                packer.add(part.objects, part.moves)
            self._names += packer.finish()

    def _behind(self) -> int:
        return sum(s.end - self._ends.get(s.number, 0) for s in self._log.segments)

    def _news(self) -> Iterator[Part]:
        """What stays of what was committed since the last time, and what stays again."""
        revived = self._selection.renew()
        for segment in self._log.segments:
            start, end = self._ends.get(segment.number, 0), segment.end
            self._ends[segment.number] = end
            for _, opened in segment.scan(start, end):
                if segment.number in self._names:
                    self._copied.update(opened.ids())
                    continue
                # Moves made meanwhile are no business of the question that was asked before.
                yield Part(self._staying(opened), moves_in(opened))
        again = [i for i in revived if self.dropped.sizes.pop(i, None) is not None]
        for object_id in again:
            opened, slot = self._log.locate(object_id)
            self._copied.add(object_id)
            yield Part([opened.object(slot)], [])

    # --- the swap, with the lock held -------------------------------------------------------------

    def _swap(self, left_alone: set[int]) -> None:
        log, layout, disk = self._log, self._layout, self._disk
        self._appender.prepare()
        self._selection.confirm(log.tips())
        news = list(self._news())
        old = [s.number for s in log.segments if s.number not in left_alone]
        last = log.active.number
        shift = max(0, last + 1 - self._first_new(last + 1))
        names = [self._put_in_place(name, shift) for name in self._names]
        active = max([*names, last]) + 1
        disk.write_pieces(layout.segment(active), self._active_pieces(log.tips(), news))
        self._appender.write_seal()
        generation = Manifest.read(layout.manifest).generation + 1
        manifest = Manifest(generation, (*names, active))
        disk.write_file(layout.manifest, manifest.encode())
        trash.set_aside(layout, disk, old, layout.trash, self._now)

    def _first_new(self, default: int) -> int:
        return next((n.number for n in self._names if isinstance(n, Packed)), default)

    def _put_in_place(self, name: int | Packed, shift: int) -> int:
        """The number of a segment; one that was made gets it now, past those made by others."""
        if isinstance(name, int):
            return name
        number = name.number + shift
        self._disk.rename(self._layout.unfinished(name.number), self._layout.segment(number))
        self._disk.write_cache(self._layout.index(number), name.renumbered_index(number))
        return number

    def _active_pieces(self, tips: Sequence[Move], news: list[Part]) -> Iterator[bytes]:
        """The new active segment: the refs as they are, then what had not been copied before."""
        writer, digest = Writer(), ZERO_DIGEST
        kept = [self._selection.becomes(tip) or tip for tip in tips]
        records = [(fmt.REFS, page) for page in encode_pages(kept)]
        parts = [Part([], []), *(part for part in news if part.objects or part.moves)]
        for number, part in enumerate(parts):
            objects = sorted(part.objects, key=slot_order)
            moves = [(fmt.MOVE, encode_move(move)) for move in part.moves]
            data, digest = writer.pack(
                objects,
                moves or records,
                flags=0 if number else fmt.START,
                number=number,
                durable_end=0,
                previous=digest[: fmt.CHAIN_SIZE],
            )
            records = []
            yield data
