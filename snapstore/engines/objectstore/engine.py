"""The object-store engine: packs that never change, and a create-only log for each ref.

How a commit goes:

    1. compare the ref, as this handle knows it, with what the caller expects; only where that does
       not fit is it looked up again, and then RefMoved raised
    2. leave out objects that the ref's last record is known to reach
    3. put the rest in a pack, merged with older ones where it is their turn, and upload it
    4. create the record of the move, which names the packs: the commit point. RefMoved when
       another writer was first

So a save is two writes and no read, and a move without objects is one write. A machine that dies
between 3 and 4 leaves a pack that nothing names, for a collection to find.

A move that leads to what another ref reaches (a fork, a tag) names that ref's packs, and asks after
step 4 whether a purge has begun since it looked at that ref: it may not have seen this record. Then
the record is withdrawn and the move made again from what is left, or refused when that is gone.

A record is not written when its pack is older than half the grace time of collections: until then
no collection can have condemned the pack, however long this process was stopped in between.

After UnknownOutcome a handle goes on: it looks the ref up anew.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

from snapstore.engine import Move, Obj, Problem, Progress, Stats, Update, check_update
from snapstore.engines.objectstore import format, gc
from snapstore.engines.objectstore.cache import PackCache
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.discard import Discarding
from snapstore.engines.objectstore.gc import KEEP_DELETED, Collected
from snapstore.engines.objectstore.layout import PACKS, REFS
from snapstore.engines.objectstore.lookup import Cover, Links, Lookup, ids_in, no_links
from snapstore.engines.objectstore.packs import Packed
from snapstore.engines.objectstore.records import Record, inlined
from snapstore.engines.objectstore.reflog import Overtaken, RefLog, Withdrawn
from snapstore.engines.objectstore.shelf import Shelf
from snapstore.engines.objectstore.uploads import Uploads
from snapstore.engines.objectstore.verify import Verification
from snapstore.errors import Corrupt, ObjectMissing, RefMoved, SnapstoreError, Unreachable

GRACE = 24 * 3600.0
"""Seconds that a pack is safe from collection although nothing names it."""
LEASE_TIME = 60.0
"""Seconds after which a runner of a task that shows no sign of life is taken for dead. One renewal
may take half as long, when the server does not answer."""
_PURGED = (
    "something was purged since this store was opened, and this may have been of it: open the "
    "session anew, and if it is missing still, run `snapstore verify`"
)
WORKERS = 16
"""Requests that are under way at the same time."""


class ObjectStoreEngine:
    """Objects and refs below a prefix of a bucket. See ``snapstore.engine.Engine``."""

    warnings: tuple[str, ...] = ()
    cut_off: Corrupt | None = None

    def __init__(
        self,
        bucket: Bucket,
        *,
        links: Links = no_links,
        cache: Path | None = None,
        grace: float = GRACE,
        lease_time: float = LEASE_TIME,
    ) -> None:
        """Open the store in a bucket; one that is not there yet is made by the first commit.

        ``links`` says what an object refers to, ``cache`` is a directory for what was fetched of
        any store, ``lease_time`` how many seconds a lease of a task lasts without being renewed.
        Raises UnsupportedFormat, Unreachable, AccessDenied; StoreNotFound when there is no such
        bucket.
        """
        self.bucket = bucket
        self.grace = grace
        self.lease_time = lease_time
        self._cache_folder = cache
        self._mutex = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._ref_locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self._writer = f"{platform.node()}:{os.getpid()}"
        self._closed = False
        self._identity: format.Identity | None = None
        self._shelf = Shelf(bucket, self._workers)
        self._uploads = Uploads(bucket, self._workers, self._shelf)
        self.log = RefLog(bucket, self._workers, grace / 2)
        self.lookup = Lookup(self._shelf, self.log, links, grace / 2, self._last_purge)
        self._found(format.identity(bucket))

    def _workers(self) -> Executor:
        with self._mutex:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="snapstore")
            return self._pool

    # --- opening and closing ----------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether the store has been made."""
        if self._identity is None:
            self._found(format.identity(self.bucket))
        return self._identity is not None

    def create(self) -> None:
        """Make the store now, if it is not there yet. Raises UnsuitableServer."""
        self._usable()
        if not self.exists():
            self._found(format.make(self.bucket, self._workers()))

    def _found(self, identity: format.Identity | None) -> None:
        self._identity = identity
        if identity is not None and self._cache_folder is not None:
            cache = PackCache(self._cache_folder, identity.store)
            cache.keep_since(identity.purged)
            self._shelf.use_cache(cache)

    def close(self) -> None:
        """Let the connections go."""
        self._closed = True
        with self._mutex:
            if self._pool is not None:
                self._pool.shutdown()

    def _usable(self) -> None:
        if self._closed:
            raise SnapstoreError("this store handle is closed", hint="open the store again")

    # --- reading ----------------------------------------------------------------------------------

    def read(self, object_id: bytes) -> Obj:
        """See ``snapstore.engine.Engine.read``."""
        self._usable()
        try:
            return self.lookup.read_one(object_id)
        except ObjectMissing as missing:
            raise self._explained(missing) from None

    def read_many(self, object_ids: Sequence[bytes]) -> list[Obj]:
        """See ``snapstore.engine.Engine.read_many``."""
        self._usable()
        try:
            return self.lookup.read(object_ids)
        except ObjectMissing as missing:
            raise self._explained(missing) from None

    def _explained(self, missing: ObjectMissing) -> ObjectMissing:
        """What a handle still leads to may have been purged by another since, and is no damage."""
        known = self._identity.purged if self._identity else ""
        with contextlib.suppress(SnapstoreError):
            if self._last_purge() != known:
                missing.hint = _PURGED
        return missing

    def contains(self, object_id: bytes) -> bool:
        """See ``snapstore.engine.Engine.contains``.

        What another handle committed in the last second may be said not to be there.
        """
        self._usable()
        return self.lookup.contains(object_id)

    def ids(self, prefix: bytes, digits: int) -> Iterator[tuple[bytes, int]]:
        """See ``snapstore.engine.Engine.ids``. Objects that no ref needs are not among them."""
        self._usable()
        yield from sorted(self.lookup.ids(prefix.hex()[:digits]))

    # --- refs -------------------------------------------------------------------------------------

    def tip(self, ref: str) -> Move | None:
        """See ``snapstore.engine.Engine.tip``."""
        self._usable()
        record = self.log.last(ref) if self.exists() else None
        return record.move if record else None

    def move(self, ref: str, gen: int) -> Move | None:
        """See ``snapstore.engine.Engine.move``."""
        self._usable()
        return self.log.move(ref, gen) if self.exists() else None

    def tips(self, prefix: str = "") -> Iterator[Move]:
        """See ``snapstore.engine.Engine.tips``."""
        self._usable()
        records = self.log.every_last() if self.exists() else []
        yield from (r.move for r in records if r.move.ref.startswith(prefix))

    def reflog(self) -> Iterator[Move]:
        """See ``snapstore.engine.Engine.reflog``.

        Moves of different refs are in the order of their writers' clocks.
        """
        self._usable()
        if self.exists():
            yield from (record.move for record in self.log.history())

    # --- committing -------------------------------------------------------------------------------

    def commit(self, objects: Sequence[Obj], update: Update | None = None) -> Move | None:
        """See ``snapstore.engine.Engine.commit``."""
        self._usable()
        new = list({o.id: o for o in objects}.values())
        if update is None:
            self._commit_loose(new)
            return None
        self.create()
        # Two threads that move one ref would only overtake each other, with a pack for nothing.
        with self._ref_locks[update.ref]:
            return self._commit_move(new, update)

    def _commit_loose(self, new: list[Obj]) -> None:
        new = [o for o in new if self._shelf.holder(o.id) is None]
        if not new:
            return
        self.create()
        uploaded = time.time()
        for packed in self._uploads.upload(new):
            self._shelf.add(packed)
            self.lookup.note_loose(packed.ref, uploaded)

    def _commit_move(self, new: list[Obj], update: Update) -> Move:
        known = self.log.known(update.ref)
        last = known[0] if known else self.log.last(update.ref)
        try:
            move = check_update(update, last.move if last else None)
        except RefMoved:
            last, move = self._look_again(update)
        needed: Collection[bytes] = ()
        while True:
            try:
                return self._append(new, move, last, needed)
            except Overtaken:
                # It is no conflict when the ref has gone on and come back to what was expected.
                last, move = self._look_again(update)
            except Withdrawn as withdrawn:
                needed = withdrawn.needed
                self._notice_purge()
                last, move = self._look_again(update)

    def _look_again(self, update: Update) -> tuple[Record | None, Move]:
        """The last record of a ref that has gone on, and the move to make. Raises RefMoved."""
        last = self.log.last(update.ref)
        try:
            return last, check_update(update, last.move if last else None)
        except RefMoved:
            self._notice_purge()
            raise

    def _notice_purge(self) -> None:
        """Where something was dropped for good since this handle was opened, what it holds open
        does not say what is there."""
        now = format.identity(self.bucket)
        if now != self._identity:
            self._found(now)
            self.log.clear()
            self._shelf.close()

    def _last_purge(self) -> str:
        now = format.identity(self.bucket)
        return now.purged if now is not None else ""

    def _append(
        self, new: list[Obj], move: Move, last: Record | None, needed: Collection[bytes]
    ) -> Move:
        begun = time.time(), time.monotonic()
        heads = [] if move.new is None else [move.new]
        cover = self.lookup.cover(last, new, {*heads, *ids_in(move.info)}, needed)
        fresh = [o for o in new if not self.lookup.holds(cover.refs, o.id)]
        named = list(cover.refs.values())
        uploaded: list[Packed] = []
        if fresh:
            named, uploaded = self._uploads.save(fresh, named)
        record = Record(
            move,
            tuple(named),
            txn=secrets.token_bytes(16),
            writer=self._writer,
            written=self.log.now(),
            inline=inlined([*new, *(self.lookup.standing(move.new, new) if move.new else ())]),
            origin=self._origin(move, last),
        )
        if max(time.time() - begun[0], time.monotonic() - begun[1]) > self.grace / 2:
            raise Unreachable("the upload took too long to be counted on; nothing was changed")
        try:
            self.log.append(record)
            self._confirm(record, last, cover)
        except (Overtaken, Withdrawn):
            self._uploads.take_back(uploaded)
            raise
        for packed in uploaded:
            self._shelf.add(packed)
        self.lookup.named(named)
        return move

    def _confirm(self, record: Record, last: Record | None, cover: Cover) -> None:
        """A purge that began before the record was made may not have seen that it needs packs of
        another ref, and delete them."""
        if cover.purged is not None and not self.log.confirm(
            record, last, lambda: self._last_purge() == cover.purged
        ):
            raise Withdrawn(cover.taken)

    def _origin(self, move: Move, last: Record | None) -> Move | None:
        if move.born == move.gen or last is None:
            return None
        before = last.origin or last.move
        return before if before.gen == move.born else self.log.move(move.ref, move.born)

    # --- care -------------------------------------------------------------------------------------

    def verify(self, progress: Progress | None = None) -> Iterator[Problem]:
        """See ``snapstore.engine.Engine.verify``. Everything is read from the bucket again."""
        self._usable()
        if self.exists():
            yield from Verification(self.bucket, self._workers()).problems(progress)

    def purged(self) -> str:
        """What the last purge of the store is called, "" when there was none. What this handle
        holds open from before it is forgotten."""
        self._usable()
        self._notice_purge()
        return self._identity.purged if self._identity else ""

    def collect(
        self,
        *,
        apply: bool = False,
        grace: float | None = None,
        keep_deleted: float | None = None,
        progress: Progress | None = None,
    ) -> Collected:
        """Delete packs that no ref needs, or only say which those are; see gc for the rules.

        Times are in seconds; a deleted ref can be brought back for 90 days unless said otherwise.
        A grace time of 0 lets go of all that at once, and asks that nobody else writes meanwhile.
        """
        self._usable()
        if not self.exists():
            return Collected(0, 0, 0, apply)
        if keep_deleted is None:
            keep_deleted = 0 if grace == 0 else KEEP_DELETED
        grace = self.grace if grace is None else grace
        collection = gc.Collection(
            self.bucket, self._workers(), grace=grace, keep_deleted=keep_deleted
        )
        return collection.run(self.lookup.ids_in, apply=apply, progress=progress)

    def discard(
        self,
        objects: Collection[bytes],
        before: Mapping[str, int],
        tips: Mapping[str, int] | None = None,
    ) -> int:
        """See ``snapstore.engine.Discarding``, and discard for others who are saving.

        What this machine keeps of the store is forgotten at once, what others keep when they open
        it the next time.
        """
        self._usable()
        return self._discarding().run(objects, before, tips) if self.exists() else 0

    def strays(self) -> Iterator[list[Obj]]:
        """Objects in packs that no ref needs, pack by pack: they were merged into others, or are
        to be collected, or are of a save that is under way or was cut off."""
        self._usable()
        yield from self._discarding().strays() if self.exists() else ()

    def _discarding(self) -> Discarding:
        settled = self.grace / 2
        return Discarding(self.bucket, self._workers(), self.log, self._shelf, settled)

    def stats(self) -> Stats:
        """See ``snapstore.engine.Engine.stats``. Bytes are those in the bucket, of all packs and
        records; objects are those that refs need."""
        self._usable()
        size = sum(found.size for folder in (PACKS, REFS) for found in self.bucket.every(folder))
        return Stats(len(self.lookup.ids("")), size)
