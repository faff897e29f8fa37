"""The create-only log of each ref: moving a ref is writing the next key of its log.

The one promise of the server that this rests on: of those who create the same key at the same time,
exactly one succeeds. A ref has no other state, so there is nothing to compare and swap, a ref that
went away and came back is not mistaken for one that stayed, and a lost answer can be settled: the
key is read back. Is it our txn that stands there, the move was made; is it another's, he was first;
is nothing there, it is sent again, byte for byte. Only when that read fails too, nobody knows.

What a handle knows of a ref counts for a limited time. After that it is looked up again: so a
process that slept for days does not write behind a collection that it knows nothing of.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

from snapstore.engine import Move, Obj
from snapstore.engines.objectstore.client import PAGE, Bucket
from snapstore.engines.objectstore.failures import Absent, Answer, Taken, Unclear
from snapstore.engines.objectstore.layout import (
    REFS,
    log_prefix,
    record_key,
    record_place,
    ref_dir,
)
from snapstore.engines.objectstore.records import Record, decode
from snapstore.errors import Corrupt, SnapstoreError, UnknownOutcome

TRIES = 5
FIRST_PAUSE = 0.2
_REMEMBERED = 8192
_INLINE_OBJECTS = 16384
_STEPS = 4
_AT_ONCE = 32


class Overtaken(Answer):
    """Another writer has made the move of this number."""


class Withdrawn(Answer):
    """A move was made and undone at once: what it rests on may have gone meanwhile."""

    def __init__(self, needed: Collection[bytes]) -> None:
        super().__init__()
        self.needed = needed
        """The objects in question."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What was seen of a ref: its last record, None for a ref that never was; and when."""

    last: Record | None
    seen: float


class RefLog:
    """The logs of all refs of a store. Several threads may use it."""

    def __init__(self, bucket: Bucket, workers: Callable[[], Executor], good_for: float) -> None:
        """What is known of a ref is good for so many seconds."""
        self._bucket = bucket
        self._workers = workers
        self._good_for = good_for
        self._mutex = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._records: dict[tuple[str, int], Record] = {}
        self._inline: dict[bytes, Obj] = {}
        self._last_written = 0

    # --- one ref --------------------------------------------------------------------------------

    def known(self, ref: str) -> tuple[Record | None] | None:
        """The last record of a ref as this handle knows it, in a tuple; None when it does not."""
        known = self._fresh(ref_dir(ref))
        return None if known is None else (known.last,)

    def _fresh(self, directory: str) -> _Known | None:
        known = self._known.get(directory)
        return known if known and 0 <= time.time() - known.seen < self._good_for else None

    def forget(self, ref: str) -> None:
        """Look the ref up in full the next time."""
        self._known.pop(ref_dir(ref), None)

    def clear(self) -> None:
        """Forget all that is known."""
        with self._mutex:
            self._known.clear()
            self._records.clear()
            self._inline.clear()

    def last(self, ref: str) -> Record | None:
        """The last record of a ref as it is now; None for a ref that never was.

        One request for a ref that this handle knows and that did not move, else two or a few.
        """
        directory = ref_dir(ref)
        seen = time.time()
        known = self._fresh(directory)
        found = self._newest(directory) if known is None else self._onward(directory, known.last)
        return self._note(directory, found, seen)

    def _onward(self, directory: str, last: Record | None) -> Record | None:
        """The newest record, given an older one: by steps, for the log has no gaps."""
        for _ in range(_STEPS):
            try:
                last = self._read(directory, last.move.gen + 1 if last else 1)
            except Absent:
                return last
        return self._newest(directory)

    def _newest(self, directory: str) -> Record | None:
        for _ in range(TRIES):
            places = [record_place(found.key) for found in self._bucket.page(log_prefix(directory))]
            gens = [place[1] for place in places if place]
            if not gens:
                return None
            try:
                record = self._read(directory, max(gens))
            except Absent:  # collected between the two requests
                continue
            if not record.dropped:  # as the last of a ref never is, but it was that when listed
                return record
        raise Corrupt("a ref's log lists records that are not there", path=log_prefix(directory))

    def _note(self, directory: str, found: Record | None, seen: float) -> Record | None:
        with self._mutex:
            before = self._known.get(directory)
            if before and before.last and found and before.last.move.gen > found.move.gen:
                return before.last
            self._known.pop(directory, None)
            self._known[directory] = _Known(found, seen)
            if found is not None:
                if len(self._inline) >= _INLINE_OBJECTS:
                    self._inline.clear()
                self._inline.update((o.id, o) for o in found.inline)
            return found

    def inline(self, object_id: bytes) -> Obj | None:
        """An object that the last record of a ref repeats."""
        return self._inline.get(object_id)

    def seen(self) -> list[Record]:
        """The last records that this handle knows and that still count, latest looked at first."""
        with self._mutex:
            known = list(self._known)
        fresh = (self._fresh(directory) for directory in reversed(known))
        return [k.last for k in fresh if k is not None and k.last is not None]

    def move(self, ref: str, gen: int) -> Move | None:
        """Move number gen of a ref."""
        if gen < 1:
            return None
        directory = ref_dir(ref)
        known = self._known.get(directory)
        origin = known.last.origin if known and known.last else None
        if origin is not None and origin.gen == gen:
            return origin
        record = self._read_or_none((directory, gen))
        return record.move if record and not record.dropped else None

    def _read(self, directory: str, gen: int) -> Record:
        """Raises Absent or Corrupt."""
        record = self._records.get((directory, gen))
        if record is None:
            key = record_key(directory, gen)
            record = decode(self._bucket.get(key), key)
            if record.move.gen != gen or ref_dir(record.move.ref) != directory:
                raise Corrupt("a record stands under the key of another", path=key)
            self._remember(directory, record)
        return record

    def _remember(self, directory: str, record: Record) -> None:
        with self._mutex:
            if len(self._records) >= _REMEMBERED:
                self._records.clear()
            self._records[directory, record.move.gen] = record

    # --- all refs -------------------------------------------------------------------------------

    def places(self) -> dict[str, int]:
        """The number of the last move of every ref, by directory.

        Listings are in the order of keys, so the first of each directory is its newest; where a
        page ends within a directory the rest of that is passed over.
        """
        found: dict[str, int] = {}
        after: str | None = None
        while True:
            page = self._bucket.page(REFS, after)
            directory = None
            for entry in page:
                place = record_place(entry.key)
                if place is not None:
                    directory = place[0]
                    found.setdefault(*place)
            if len(page) < PAGE:
                return found
            after = f"{log_prefix(directory)}/~" if directory else page[-1].key

    def every_last(self) -> list[Record]:
        """The last record of every ref, by name."""
        seen = time.time()
        places = self.places()
        found = self._gather(places.items(), self._last_at)
        for record in found:
            self._note(ref_dir(record.move.ref), record, seen)
        return sorted(found, key=lambda record: record.move.ref)

    def _last_at(self, place: tuple[str, int]) -> Record | None:
        """The last record of a ref, which was at this place when it was listed. What moved the ref
        since may have dropped that one."""
        record = self._read_or_none(place)
        return self._newest(place[0]) if record is None or record.dropped else record

    def _gather(
        self,
        places: Iterable[tuple[str, int]],
        read: Callable[[tuple[str, int]], Record | None] | None = None,
    ) -> list[Record]:
        """The records at these places, read side by side; those that are gone are left out."""
        places, read = list(places), read or self._read_or_none
        found = map(read, places) if len(places) < 2 else self._workers().map(read, places)
        return [record for record in found if record is not None]

    def _read_or_none(self, place: tuple[str, int]) -> Record | None:
        try:
            return self._read(*place)
        except Absent:
            return None

    def history(self) -> Iterator[Record]:
        """All records of all refs, newest first. Older ones are read while they are asked for."""
        lines = [self._dated(record) for record in self.every_last()]
        for _, record in heapq.merge(*lines, key=lambda item: item[0], reverse=True):
            yield record

    def _dated(self, last: Record) -> Iterator[tuple[int, Record]]:
        """The records of a ref, newest first, with times that fall whatever its writers' clocks."""
        written = last.written
        for record in self.line(last):
            written = min(written, record.written)
            yield written, record

    def line(self, last: Record) -> Iterator[Record]:
        """A record and those before it, newest first. What was dropped ends it."""
        directory, gen, stride = ref_dir(last.move.ref), last.move.gen - 1, 1
        yield last
        while gen > 0:
            stride = min(4 * stride, _AT_ONCE, gen)
            found = self._gather((directory, gen - n) for n in range(stride))
            kept = [record for record in found if not record.dropped]
            if not kept:
                return
            yield from kept
            gen -= stride

    # --- moving a ref ---------------------------------------------------------------------------

    def now(self) -> int:
        """The time for a new record, microseconds since the epoch: later than all before it."""
        with self._mutex:
            self._last_written = max(time.time_ns() // 1000, self._last_written + 1)
            return self._last_written

    def append(self, record: Record) -> Move:
        """Make the move, durably. Raises Overtaken, UnknownOutcome, or why it was refused."""
        directory = ref_dir(record.move.ref)
        seen = time.time()
        try:
            self._settle(record_key(directory, record.move.gen), record)
        except (Overtaken, UnknownOutcome):
            self.forget(record.move.ref)
            raise
        self._remember(directory, record)
        self._note(directory, record, seen)
        return record.move

    def confirm(self, record: Record, last: Record | None, stands: Callable[[], bool]) -> bool:
        """Undo a move that was made a moment ago upon ``last`` if it does not stand, unless others
        have gone on from it; whether it was left. Raises UnknownOutcome.

        It is the one case in which a record is written over that others may have read: nobody was
        told yet that the move was made.
        """
        try:
            return stands() or not self._withdraw(record, last)
        except SnapstoreError as error:
            self.forget(record.move.ref)
            raise _unknown(error) from error

    def _withdraw(self, record: Record, last: Record | None) -> bool:
        directory, gen = ref_dir(record.move.ref), record.move.gen
        now = self.last(record.move.ref)
        if now is None or now.move.gen != gen:
            return False
        instead = last.again(gen) if last is not None else record.without_effect()
        self._bucket.put(record_key(directory, gen), instead.encode())
        self._remember(directory, instead)
        self.forget(record.move.ref)
        return True

    def _settle(self, key: str, record: Record) -> None:
        data, pause = record.encode(), FIRST_PAUSE
        unclear: SnapstoreError | None = None
        for _ in range(TRIES):
            try:
                self._bucket.create(key, data)
                return
            except Taken:
                pass
            except Unclear as lost:
                unclear = lost.error
            except SnapstoreError as error:
                # Refused this time; but an earlier try, which nobody answered, may still land.
                raise (_unknown(unclear) if unclear else error) from error
            if self._is_there(key, record):
                return
            time.sleep(pause)
            pause *= 2
        if unclear:
            raise _unknown(unclear)
        raise Corrupt("the server refuses to create a key under which nothing is", path=key)

    def _is_there(self, key: str, record: Record) -> bool:
        """Whether our record stands under its key. Raises Overtaken for another's."""
        try:
            there = decode(self._bucket.get(key), key)
        except Absent:
            return False
        except SnapstoreError as error:
            raise _unknown(error) from error
        if not there.is_of(record.txn):
            raise Overtaken()
        return True


def _unknown(error: SnapstoreError | None) -> UnknownOutcome:
    return UnknownOutcome(
        f"whether the save was carried out is unknown: {error}",
        hint="when the object store answers again the session is as before or after the save; "
        "saving the same once more is safe",
    )
