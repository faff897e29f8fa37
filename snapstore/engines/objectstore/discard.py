"""Dropping objects for good from a bucket that others may be saving to.

    1. find every pack that holds one of them, whoever names it
    2. of these packs, write those that a ref needs once more, without the objects
    3. append to the log of each such ref a record that repeats its last move and names the new
       packs. Whoever knew the ref as it was before is overtaken by it: a save that merged what is
       to go is refused and taken back, and made again from the new packs
    4. note in format.json that this takes place. Who takes over packs of another ref, for a fork
       or a tag, reads it before he looks at that ref and after he made his record: when it changed
       he withdraws the record, for it may name what is to go and have come too late to be seen
    5. look again: when a ref has come to need one of the old packs since, or one that came since
       and holds one of the objects, start over
    6. delete the records before the first that counts, then the old packs, which they name. The
       numbers of young ones stay taken: who knows the ref from before would else make one of these
       moves anew, behind those that count, and be told that it was saved. Note once more that this
       took place: each machine forgets, when it opens the store the next time, what it has cached
       of it. Write those records again that repeat one of the objects

Nothing is deleted before every ref can do without it, so who dies on the way has lost nothing, and
doing it again does the rest. A pack that no record has ever named may belong to a save that is
under way: its record may yet come, until half the grace time has passed. Until then it is left.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from snapstore.engine import Obj
from snapstore.engines.objectstore import format, packs, stored
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.failures import Absent
from snapstore.engines.objectstore.layout import log_prefix, pack_key, record_key, record_place
from snapstore.engines.objectstore.layout import ref_dir as directory_of
from snapstore.engines.objectstore.packs import Ref
from snapstore.engines.objectstore.records import Record, decode, in_place_of
from snapstore.engines.objectstore.reflog import Overtaken, RefLog
from snapstore.engines.objectstore.shelf import Shelf
from snapstore.engines.objectstore.stored import Listing
from snapstore.errors import Corrupt, RefMoved, Refused, Unreachable

_AT_ONCE = 4
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Discarding:
    """Drops objects and moves of one store."""

    def __init__(
        self, bucket: Bucket, workers: Executor, log: RefLog, shelf: Shelf, settled: float
    ) -> None:
        """No record names a pack for the first time when it is older than settled, in seconds."""
        self._bucket = bucket
        self._workers = workers
        self._log = log
        self._shelf = shelf
        self._settled = timedelta(seconds=settled)

    def strays(self) -> Iterator[list[Obj]]:
        """What lies in packs that no ref needs, pack by pack."""
        listed = stored.listing(self._bucket)
        needed = {ref.id for record in self._log.every_last() for ref in record.packs}
        needless = list(listed.packs.keys() - needed)
        for at in range(0, len(needless), _AT_ONCE):
            group = needless[at : at + _AT_ONCE]
            yield from self._workers.map(lambda i: stored.objects_in(self._bucket, i), group)

    def run(
        self, doomed: Collection[bytes], before: Mapping[str, int], tips: Mapping[str, int] | None
    ) -> int:
        """See ``snapstore.engine.Discarding``. A ref that has moved matters only if it
        needs a pack with one of the objects. Raises Refused when packs had to be left."""
        gone = frozenset(doomed)
        listed = stored.listing(self._bucket) if gone else Listing({}, {})
        held = self._holding(gone, listed)
        needing = self._needing(held)
        if tips is not None:
            _refuse([r for r in needing if tips.get(r.move.ref) != r.move.gen])
        self._write_again(needing, held, gone)
        if held:
            format.note_purge(self._bucket)
        _refuse(self._needing({*held, *self._uploaded_since(listed, gone)}))
        young = self._maybe_under_way(held, listed)
        self._drop_records(before)
        if held:
            self._bucket.delete(pack_key(i) for i in held if i not in young)
            format.note_purge(self._bucket)  # for who has opened the store in between
        for record in needing:
            self._mend_records(record, before, gone)
        self._forget(before, everything=bool(held) or tips is not None)
        if young:
            raise _left(len(young), self._settled)
        return len(set().union(*held.values()))

    def _forget(self, before: Mapping[str, int], *, everything: bool) -> None:
        if everything:
            self._log.clear()
            self._shelf.clear()  # it may keep what was deleted from the bucket long ago, too
        for ref in before:
            self._log.forget(ref)

    # --- what holds the objects -------------------------------------------------------------------

    def _holding(self, doomed: frozenset[bytes], listed: Listing) -> dict[bytes, set[bytes]]:
        """The stored packs that hold some of the objects, and which."""

        def held_in(pack: bytes) -> set[bytes]:
            opened = self._shelf.opened(pack)
            size = listed.packs[pack].size
            ids = opened.ids() if opened else stored.ids_in(self._bucket, pack, size)
            return set(doomed.intersection(ids))

        found = zip(listed.packs, self._workers.map(held_in, listed.packs), strict=True)
        return {pack: ids for pack, ids in found if ids}

    def _uploaded_since(self, listed: Listing, doomed: frozenset[bytes]) -> Collection[bytes]:
        """The packs that have come since and hold some of the objects: a save may have merged one
        of the old packs into them."""
        if not doomed:
            return ()
        now = stored.packs_in(self._bucket)
        late = {pack: found for pack, found in now.items() if pack not in listed.packs}
        return self._holding(doomed, Listing(late, {}))

    def _needing(self, held: Collection[bytes]) -> list[Record]:
        """The last record of each ref that needs one of these packs, as it is now."""
        if not held:
            return []
        return [r for r in self._log.every_last() if any(ref.id in held for ref in r.packs)]

    def _named_ever(self) -> set[bytes]:
        return {ref.id for record in self._log.history() for ref in record.packs}

    def _maybe_under_way(self, held: Collection[bytes], listed: Listing) -> set[bytes]:
        settled = listed.now - self._settled
        young = {i for i in held if listed.packs[i].modified > settled}
        return young - self._named_ever() if young else young

    # --- without them -----------------------------------------------------------------------------

    def _write_again(
        self, needing: list[Record], held: Collection[bytes], doomed: frozenset[bytes]
    ) -> None:
        """Let these refs name packs without the objects. Raises RefMoved when one was moved, and
        Unreachable when a collection may have come by in between."""
        begun = time.time()
        instead: dict[bytes, list[Ref]] = {}
        for ref in {ref.id: ref for record in needing for ref in record.packs}.values():
            instead[ref.id] = self._without(ref, doomed) if ref.id in held else [ref]
        for record in needing:
            again = replace(
                record.again(record.move.gen + 1),
                packs=tuple(new for ref in record.packs for new in instead[ref.id]),
                inline=_without(record.inline, doomed),
            )
            if not 0 <= time.time() - begun < self._settled.total_seconds():
                raise Unreachable("this took too long to be counted on", hint="do it again")
            try:
                self._log.append(again)
            except Overtaken:
                _refuse([record])

    def _without(self, ref: Ref, doomed: frozenset[bytes]) -> list[Ref]:
        (pack,) = self._shelf.whole([ref])
        kept = [o for o in pack.all() if o.id not in doomed]
        if not kept:
            return []
        made = packs.make(kept, ref.tier)
        self._bucket.put(pack_key(made.ref.id), made.data)
        return [made.ref]

    def _drop_records(self, before: Mapping[str, int]) -> None:
        for ref, first in before.items():
            directory = directory_of(ref)
            found = [
                (place[1], entry.modified)
                for entry in self._bucket.every(log_prefix(directory))
                if (place := record_place(entry.key))
            ]
            # What a handle knows of a ref counts for half the grace time, and its save takes at
            # most as long again.
            since = max((modified for _, modified in found), default=_LONG_AGO) - 2 * self._settled
            places = [(ref, gen) for gen, modified in found if gen < first and modified > since]
            list(self._workers.map(self._blank, places))
            self._bucket.delete(
                record_key(directory, gen)
                for gen, modified in found
                if gen < first and modified <= since
            )

    def _blank(self, place: tuple[str, int]) -> None:
        ref, gen = place
        key = record_key(directory_of(ref), gen)
        try:
            if decode(self._bucket.get(key), key).dropped:
                return
        except Absent:
            return
        except Corrupt:
            pass
        self._bucket.put(key, in_place_of(ref, gen).encode())

    def _mend_records(
        self, record: Record, before: Mapping[str, int], doomed: frozenset[bytes]
    ) -> None:
        """Write the older records of a ref again that repeat one of the objects. Nobody goes by
        what an older record repeats."""
        directory = directory_of(record.move.ref)
        for old in self._log.line(record):
            kept = _without(old.inline, doomed)
            if kept != old.inline and old.move.gen >= before.get(old.move.ref, 0):
                self._bucket.put(
                    record_key(directory, old.move.gen), replace(old, inline=kept).encode()
                )


def _without(objects: tuple[Obj, ...], doomed: frozenset[bytes]) -> tuple[Obj, ...]:
    return tuple(o for o in objects if o.id not in doomed)


def _refuse(moved: list[Record]) -> None:
    if moved:
        raise RefMoved(moved[0].move.ref, None, moved[0].move.new)


def _left(count: int, settled: timedelta) -> Refused:
    held = f"{count} pack{'s' if count > 1 else ''} of saves that may be under way"
    return Refused(
        f"{held} hold what is to go; all else was dropped",
        hint=f"do it again in {settled}, when they cannot be any more; or, when nobody is saving, "
        "`snapstore gc --apply --grace 0` drops them now, and what only undo reaches with them",
    )
