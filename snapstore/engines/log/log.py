"""The log as this process knows it: its segments, where objects lie, where refs point.

Other processes append to the same files. What they have written is taken in by ``follow``, which
every look at a ref and every commit begins with; objects never change, so reading one needs none.
All of it is guarded by the engine's mutex.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

from snapstore.disk import Disk
from snapstore.engine import Kind, Move, Obj, Problem
from snapstore.engines.log import damage, lookup
from snapstore.engines.log.batch import Batch
from snapstore.engines.log.caches import IndexCache
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.engines.log.records import moves_in
from snapstore.engines.log.segment import Segment
from snapstore.engines.log.tail import Tail, examine
from snapstore.engines.log.torn import R, may_tear
from snapstore.engines.log.walk import Walk
from snapstore.engines.log.witness import Durable, Witness
from snapstore.errors import Corrupt, ObjectMissing


class Log:
    """The segments that the manifest names, oldest first; none when there is no store yet."""

    def __init__(self, layout: Layout, disk: Disk) -> None:
        self.layout = layout
        self.cache = IndexCache(layout, disk)
        self.witness = Witness(layout, disk)
        self.segments: list[Segment] = []
        self.damaged: Corrupt | None = None
        """Why nothing may be written, when the manifest or what it names is not there."""
        self.cut_short: Corrupt | None = None
        """That the log once reached further, as far as that is known; as of the last look."""
        self.hurt: Corrupt | None = None
        """Damage in what can be read around, from when this process knows of it."""
        self.rewrites = 0
        """How often this handle has found that a collection had replaced its segments."""
        self._disk = disk
        self._tail: Tail | None = None
        self._durable: Durable | None = None
        self._tips: dict[str, Move | None] = {}
        self._walk = Walk()
        self.torn = False
        """Whether a change of what is known was cut off: ``forget`` is due, and ``load``."""

    @property
    def active(self) -> Segment:
        """The segment that is written to."""
        return self.segments[-1]

    @may_tear
    def load(self) -> None:
        """Open the segments that the manifest names and take in the active one."""
        self.hurt = None
        # Asked first: whatever it tells of was in the manifest and in the log before.
        self._durable = self.witness.durable()
        while not self._open_named():
            self.close()
        for segment in self.segments[:-1]:
            self._attach_sealed(segment)
        if self.segments:
            self.cache.attach_active(self.active)
            self.follow()
            self._look_again_where_damage_was()

    def _attach_sealed(self, segment: Segment) -> None:
        offset = self.cache.attach_sealed(segment)
        if offset is not None:
            self._note(segment, offset)

    def _open_named(self) -> bool:
        """Open what the manifest names; False when that was rewritten at the same time."""
        try:
            manifest = Manifest.read(self.layout.manifest)
        except Corrupt as met:
            # The log says the same as the manifest does, only less surely: read, but do not write.
            self.damaged = met
            manifest = Manifest(0, self.layout.segments_on_disk())
        for number in manifest.segments:
            try:
                self.open_segment(number)
            except Corrupt as met:
                if self._is_rewritten(manifest):
                    return False
                self.damaged = met
        if self.damaged is not None and not self.segments:
            raise self.damaged
        return True

    def _is_rewritten(self, before: Manifest) -> bool:
        try:
            return Manifest.read(self.layout.manifest) != before
        except Corrupt:
            return False

    @may_tear
    def load_rewritten(self) -> None:
        """The segments were replaced: open them anew."""
        self.forget()
        self.load()

    @may_tear
    def forget(self) -> None:
        """Know nothing any more; load opens the segments anew.

        They are not closed: somebody may be walking them.
        """
        self.segments = []
        self._walk.forget()
        self.damaged = self.cut_short = self._tail = None
        self._tips.clear()
        self.rewrites += 1
        self.torn = False

    def open_segment(self, number: int) -> None:
        """Add a segment behind the others."""
        self.segments.append(Segment(number, self.layout.segment(number), self._disk))

    def close(self) -> None:
        """Give the files back; load opens them again."""
        self._walk.forget()
        self._tips.clear()
        segments, self.segments = self.segments, []
        for segment in segments:
            segment.close()

    @may_tear
    def follow(self) -> None:
        """Take in what other processes have appended since the last look."""
        self._take_in()
        if self.active.sealed:
            self._tail = None  # what was judged was the seal while it was being written
            self._follow_to_successor()
        elif self._tail_is_damage() and self._take_in():
            self.follow()  # it was being written while it was judged
            return
        self.cut_short = self._cut_short()
        self.cache.store_when_worthwhile(self.active)

    @may_tear
    def follow_until(self, until: float) -> bool:
        """As follow, but stop at that time of the monotonic clock; whether all was taken in."""
        self._take_in(until)
        whole = time.monotonic() <= until
        if whole:
            self.follow()
        return whole

    def _take_in(self, until: float = float("inf")) -> bool:
        """Take in the batches behind the verified end; whether there were any."""
        before = self.active.end
        for opened in self.active.follow():
            for move in moves_in(opened):
                self._tips[move.ref] = move
            if time.monotonic() > until:
                break
        return self.active.end > before

    def _tail_is_damage(self) -> bool:
        """Judge what lies behind the verified end, once for each state of it."""
        active = self.active
        length = active.size() - active.end
        if length <= 0 < active.end:
            self._tail = None
            return False
        tail = self._tail
        if tail is None or tail.place != (active.name, active.end, length):
            data = os.pread(active.fd, length, active.end)
            tail = self._tail = examine(data, active.name, active.end, active.next_number)
        return tail.acknowledged

    @property
    def cut_off(self) -> Corrupt | None:
        """See ``snapstore.engine.Engine.cut_off``; as of the last look."""
        if self.damaged is None and self._tail is not None and self._tail.acknowledged:
            return self._tail.as_error()
        return self.damaged or self.cut_short

    @property
    def refusal(self) -> Corrupt | None:
        """Why nothing may be written, as far as this process knows; a tail is judged by who writes
        behind it."""
        return self.damaged or self.cut_short or self.hurt

    def _cut_short(self) -> Corrupt | None:
        active, durable = self.active, self._durable
        size = active.size()
        if self._tail is not None and self._tail.acknowledged:
            return None  # it says the same, and where
        if size < active.end:
            return damage.shorter(active, size, active.end)
        if durable is None or durable.number < active.number:
            return None
        if durable.number > active.number:
            return damage.ends_before(self.layout, durable)
        if active.end < durable.end:
            return damage.shorter(active, active.end, durable.end)
        return None

    def known_problems(self) -> list[Problem]:
        """What hides the end of the log, and so is not met by who reads it."""
        named = (("manifest", self.damaged), ("cut_short", self.cut_short))
        return [Problem(k, met.path, met.offset, None, str(met)) for k, met in named if met]

    @may_tear
    def change(self, work: Callable[[], R]) -> R:
        """Do what changes the log and what is known of it."""
        return work()

    # --- damage that can be read around -----------------------------------------------------------

    @contextlib.contextmanager
    def noting_damage(self) -> Iterator[None]:
        """What is met in here is noted."""
        try:
            yield
        except Corrupt as met:
            self.note_damage(met)
            raise

    def note_damage(self, met: Corrupt) -> None:
        """Damage was met in reading: write nothing any more, if a second look says the same."""
        segment = next((s for s in self.segments if s.name == met.path), None)
        if segment is not None and met.offset is not None:
            self._look_at(segment, met.offset)
        if self.hurt is not None:
            met.hint = self.hurt.hint

    def look_again(self) -> None:
        """Damage is known: see whether it was mended since."""
        before, self.hurt = self.hurt, None
        try:
            self.follow()
        except BaseException:
            self.hurt = before
            raise
        if before is not None:
            self.note_damage(before)

    def _look_again_where_damage_was(self) -> None:
        places = self.witness.damage()
        for number, offset in places:
            segment = next((s for s in self.segments if s.number == number), None)
            if segment is not None:
                self._look_at(segment, offset)
        if places and self.hurt is None:
            self.witness.forget_damage()

    def _look_at(self, segment: Segment, offset: int) -> None:
        # What lies behind the end of the active segment is a tail, and judged as such.
        counts = segment is not self.active or offset < segment.end
        if counts and not damage.verifies_at(segment, offset):
            self._note(segment, offset)

    def _note(self, segment: Segment, offset: int) -> None:
        self.hurt = self.hurt or damage.refusal(segment.name, offset)
        self.witness.note_damage(segment.number, offset)

    def _follow_to_successor(self) -> None:
        """The active segment was sealed: open what the manifest names by now, if it is more."""
        known = tuple(segment.number for segment in self.segments)
        try:
            named = Manifest.read(self.layout.manifest).segments
        except Corrupt as met:
            self.damaged = met
            return
        if self.damaged is None and named[: len(known)] != known:
            self.load_rewritten()
            return
        later = named[len(known) :]
        for number in later:
            self._attach_sealed(self.active)
            self.open_segment(number)
        if later:
            self.follow()

    @may_tear
    def start_over(self) -> None:
        """Believe nothing that is known of the active segment, and read it again."""
        self.active.forget()
        self._walk.forget()
        self._tips.clear()
        self.follow()

    # --- objects ----------------------------------------------------------------------------------

    def has(self, object_id: bytes) -> bool:
        """Whether the object is there and its batch verifies."""
        try:
            return self._locate(object_id) is not None
        except Corrupt:
            return False  # what cannot be read again is stored again

    def locate(self, object_id: bytes) -> tuple[Batch, int]:
        """The batch and slot of an object. Raises ObjectMissing or Corrupt."""
        try:
            return self._found(object_id)
        except Corrupt as met:
            self.note_damage(met)
            raise

    def _found(self, object_id: bytes) -> tuple[Batch, int]:
        try:
            found = self._locate(object_id)
        except Corrupt:
            if not self.doubt_indexes():
                raise
            found = self._locate(object_id)
        if found is None and self.segments:
            self.follow()
            found = self._locate(object_id)
        if found is None and self.doubt_indexes():
            found = self._locate(object_id)
        if found is None:
            raise ObjectMissing(object_id)
        return found

    def _locate(self, object_id: bytes) -> tuple[Batch, int] | None:
        stepped = self._walk.step(object_id)
        if stepped is not None:
            return stepped
        met = None
        for segment in reversed(self.segments):
            try:
                found = segment.find(object_id)
            except Corrupt as error:
                met = error  # an older segment may hold it too
                continue
            if found is not None:
                self._walk.found(segment, *found)
                return found
        if met is not None:
            raise met
        return None

    @may_tear
    def doubt_indexes(self) -> bool:
        """Make damaged indexes again; True if there were any.

        Opening takes the indexes of sealed segments on trust. No miss is believed, and no damage
        reported, before they have been checked; once for each handle.
        """
        return self.cache.replace_unsound(self.segments)

    def read_many(self, object_ids: Sequence[bytes]) -> list[Obj]:
        """The objects, in the order asked for; runs of neighbours are picked out together."""
        found: list[Obj] = []
        near: Batch | None = None
        while len(found) < len(object_ids):
            at = len(found)
            near, slot = self._locate_near(object_ids[at], near)
            if slot >= near.contents:
                found.append(near.object(slot))
                continue
            wanted = object_ids[at : at + near.in_one_block(slot)]
            payloads = near.run(slot, b"".join(wanted))
            found += map(Obj, wanted, repeat(Kind.CONTENT), payloads)
        return found

    def _locate_near(self, object_id: bytes, near: Batch | None) -> tuple[Batch, int]:
        """As locate, but look first where the object before was, and just behind it."""
        if near is not None:
            slot = near.find_content(object_id)
            if slot >= 0:
                return near, slot
            after = self._opened_after(near)
            slot = after.find_content(object_id) if after is not None else -1
            if after is not None and slot >= 0:
                return after, slot
        return self.locate(object_id)

    def _opened_after(self, near: Batch) -> Batch | None:
        segment = next((s for s in reversed(self.segments) if s.name == near.where[0]), None)
        return segment.opened_after(near) if segment is not None else None

    # --- refs -------------------------------------------------------------------------------------

    def tip(self, ref: str) -> Move | None:
        """The last move of a ref."""
        if ref not in self._tips and self.segments:
            self._tips[ref] = lookup.tip(self.active, ref)
        return self._tips.get(ref)

    def note(self, move: Move) -> None:
        """A move was appended by this process."""
        self._tips[move.ref] = move

    def tips(self, prefix: str = "") -> list[Move]:
        """The last moves of the refs whose names start with prefix, by name."""
        found = lookup.tips(self.active, prefix) if self.segments else []
        return sorted(found, key=lambda move: move.ref)
