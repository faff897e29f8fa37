"""Garbage collection in a bucket that others are writing to: grace, and two marks.

There is no lock. What makes it safe is time, by the server's clock: the newest time in a listing is
taken for now, so a clock of this machine that is wrong does no harm.

    1. list the packs, and only then the records
    2. read those records that count: the last of each ref, and those that were the last a grace
       time ago or later, for handles may still go by them
    3. what none of them names and what is older than the grace time is condemned, in a key of its
       own; nothing is deleted
    4. a later run, a grace time after that at the earliest, marks again, and deletes what was
       condemned and still is named by none

A pack that is being saved is younger than the grace time, since its save gives up after half of it.
A pack that is being shared (a fork) was found in a record that its writer read less than half the
grace time before, so it was named when it was condemned, or is when it is marked again.

A ref that was deleted long ago lets go of its packs: its last record is replaced by one that names
none and leads nowhere back, and a grace time after that the older ones are deleted. The last one
stays, so that the moves of a later ref of this name count on. Records of a living ref are never
deleted, and what it once reached stays with it: rewinding it loses nothing.

With a grace time of nothing, both marks are made in one run. That is for a store that nobody else
writes to.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from snapstore.engine import Progress
from snapstore.engines.objectstore import stored
from snapstore.engines.objectstore.client import Bucket, Found
from snapstore.engines.objectstore.failures import Absent
from snapstore.engines.objectstore.layout import CONDEMNED, REFS, pack_key, record_key
from snapstore.engines.objectstore.packs import Ref
from snapstore.engines.objectstore.records import Record, decode
from snapstore.engines.objectstore.reflog import TRIES
from snapstore.errors import Corrupt

KEEP_DELETED = 90 * 24 * 3600.0
"""Seconds that a deleted ref can be brought back."""


class Collected(NamedTuple):
    """What a collection deletes, or would."""

    objects: int
    """Objects that are nowhere afterwards."""
    bytes: int
    """Bytes of the packs that go."""
    condemned: int
    """Packs that a later run may delete."""
    applied: bool


@dataclass
class _Mark:
    """What one look at the bucket found."""

    stored: dict[bytes, Found]
    now: datetime
    named: dict[bytes, Ref] = field(default_factory=dict)
    expired: list[tuple[str, Record]] = field(default_factory=list)
    leftover: list[str] = field(default_factory=list)

    def unnamed(self, grace: timedelta) -> set[bytes]:
        """The packs that no record that counts names, and that are old enough."""
        old = self.now - grace
        return {i for i, f in self.stored.items() if f.modified <= old and i not in self.named}


class Collection:
    """One collection of a store."""

    def __init__(
        self, bucket: Bucket, workers: Executor, *, grace: float, keep_deleted: float
    ) -> None:
        """Times are in seconds: how long a pack without a name is safe, and a deleted ref."""
        self._bucket = bucket
        self._workers = workers
        self._grace = timedelta(seconds=grace)
        self._keep_deleted = timedelta(seconds=keep_deleted)

    def run(
        self,
        ids_in: Callable[[Iterable[Ref]], set[bytes]],
        *,
        apply: bool,
        progress: Progress | None = None,
    ) -> Collected:
        """Collect, or only say what that would do; ids_in tells what is in packs that stay.

        progress is told of records, for each of which a request is made.
        """
        mark = self._mark(progress)
        unnamed = mark.unnamed(self._grace)
        ripe, waiting = self._condemned(mark.now)
        doomed = unnamed if not self._grace else unnamed & {i for ids in ripe.values() for i in ids}
        objects = self._objects_in(doomed, mark)
        if objects:
            objects -= ids_in(mark.named.values())
        size = sum(mark.stored[i].size for i in doomed)
        condemned = unnamed - doomed - {i for ids in waiting.values() for i in ids}
        if apply:
            self._expire(mark)
            if condemned:
                self._condemn(condemned)
            if doomed and not self._grace:
                doomed -= self._mark().named.keys()
            self._bucket.delete(pack_key(i) for i in doomed)
            self._bucket.delete(ripe)
        return Collected(len(objects), size, len(condemned), apply)

    # --- marking --------------------------------------------------------------------------------

    def _mark(self, progress: Progress | None = None) -> _Mark:
        for _ in range(TRIES):
            mark = self._marked(progress)
            if mark is not None:
                return mark
        raise Corrupt("the last record of a ref is of a move that was dropped", path=REFS)

    def _marked(self, progress: Progress | None) -> _Mark | None:
        """What one look finds; None when a purge came by before the last record of a ref was read,
        so that nobody knows what the ref names."""
        listed = stored.listing(self._bucket)
        logs = listed.logs
        mark = _Mark(listed.packs, listed.now)
        counting = [
            place
            for directory, log in logs.items()
            for place in self._counting(directory, log, mark.now)
        ]
        records = self._workers.map(self._record, counting)
        for done, ((directory, gen, modified), record) in enumerate(
            zip(counting, records, strict=True), 1
        ):
            if progress is not None:
                progress(done, len(counting))
            is_last = gen == logs[directory][0][0]
            if is_last and (record is None or record.dropped):
                return None
            if record is None:
                continue
            if is_last and record.move.new is None and modified <= mark.now - self._keep_deleted:
                self._note_expired(mark, directory, record, logs[directory])
            else:
                mark.named.update((ref.id, ref) for ref in record.packs)
        return mark

    def _counting(
        self, directory: str, log: list[tuple[int, datetime]], now: datetime
    ) -> Iterator[tuple[str, int, datetime]]:
        """The records of a log that count, which lists the newest first."""
        recent = now - self._grace
        after: datetime | None = None
        for gen, modified in log:
            if after is not None and after <= recent:
                return
            yield directory, gen, modified
            after = modified

    def _record(self, place: tuple[str, int, datetime]) -> Record | None:
        key = record_key(place[0], place[1])
        try:
            return decode(self._bucket.get(key), key)
        except Absent:  # of a ref that another collection let go of this moment
            return None

    def _note_expired(
        self, mark: _Mark, directory: str, last: Record, log: list[tuple[int, datetime]]
    ) -> None:
        if not last.expired:
            mark.expired.append((directory, last))
        # Nobody goes any more by what stood in place of the bare record.
        if not self._grace or (last.expired and log[0][1] <= mark.now - self._grace):
            mark.leftover += [record_key(directory, gen) for gen, _ in log[1:]]

    # --- sentences ------------------------------------------------------------------------------

    def _condemned(self, now: datetime) -> tuple[dict[str, set[bytes]], dict[str, set[bytes]]]:
        """What former runs have condemned, by key: long enough ago, and not yet."""
        ripe: dict[str, set[bytes]] = {}
        waiting: dict[str, set[bytes]] = {}
        for found in self._bucket.every(CONDEMNED):
            named = {bytes.fromhex(i) for i in json.loads(self._bucket.get(found.key))["packs"]}
            (ripe if found.modified <= now - self._grace else waiting)[found.key] = named
        return ripe, waiting

    def _condemn(self, pack_ids: Iterable[bytes]) -> None:
        key = f"{CONDEMNED}/condemned-{secrets.token_hex(8)}"
        self._bucket.put(key, json.dumps({"packs": sorted(i.hex() for i in pack_ids)}).encode())

    def _expire(self, mark: _Mark) -> None:
        for directory, last in mark.expired:
            bare = last.move._replace(base=0, redo=0, info={})
            record = Record(bare, (), last.txn, last.writer, last.written)
            self._bucket.put(record_key(directory, bare.gen), record.encode())
        self._bucket.delete(mark.leftover)

    def _objects_in(self, pack_ids: set[bytes], mark: _Mark) -> set[bytes]:
        found = self._workers.map(
            lambda i: stored.ids_in(self._bucket, i, mark.stored[i].size), pack_ids
        )
        return {object_id for ids in found for object_id in ids}
