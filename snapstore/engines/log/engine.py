"""The local engine: one batch, one write and one fdatasync a commit.

How a commit goes, with the store's lock held from the second step to the last:

    1. objects and the wished ref move come in
    2. take in what other processes have appended (their batches are part of the log, synced or
       not: our sync will make them durable together with ours)
    3. compare the ref with what the caller expects: RefMoved, and nothing has happened
    4. drop objects that are there already: safe only here, under the lock
    5. pack one batch, write it at the end, fdatasync
    6. count the batch as part of the log, give the lock back

A write that fails is cut off again and leaves the log as it was. A sync that fails leaves this
handle dead: the kernel may have thrown the dirty pages away and reported it only once, so a later
sync that succeeds would prove nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings as python_warnings
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path

from snapstore.disk import DISK, Disk, network_filesystem
from snapstore.engine import (
    Kind,
    Move,
    Obj,
    Problem,
    Progress,
    Stats,
    Update,
    check_update,
)
from snapstore.engines.log import batch as fmt
from snapstore.engines.log import lookup
from snapstore.engines.log.batch import Batch, Writer, slot_order
from snapstore.engines.log.caches import IndexCache
from snapstore.engines.log.layout import FORMAT_LINE, Layout, Manifest
from snapstore.engines.log.records import encode_move, encode_pages, moves_in
from snapstore.engines.log.segment import ZERO_DIGEST, Segment
from snapstore.engines.log.tail import examine
from snapstore.errors import Corrupt, DiskError, ObjectMissing, SnapstoreError, UnknownOutcome

SEAL_AT = 64 << 20
"""A segment that has reached this size is sealed before the next commit."""
SPLIT_AT = 8 << 20
"""More new content than this is written as several batches; only the last moves the ref."""
LOCK_TIMEOUT = 30.0


class LogEngine:
    """Objects and refs in an append-only log under a directory. See ``snapstore.engine.Engine``."""

    def __init__(
        self,
        root: Path,
        *,
        durable: bool = True,
        disk: Disk = DISK,
        seal_at: int = SEAL_AT,
        lock_timeout: float = LOCK_TIMEOUT,
    ) -> None:
        """Open the store at root; one that is not there yet is made by the first commit.

        Opening reads and never creates or changes a file. Raises UnsupportedFormat.
        """
        self.root = root
        self._layout = Layout(root)
        self._disk = disk
        self._durable = durable
        self._seal_at = seal_at
        self._lock_timeout = lock_timeout
        self._mutex = threading.RLock()
        self._writer = Writer()
        self._cache = IndexCache(self._layout, disk)
        self._segments: list[Segment] = []
        self._tips: dict[str, Move | None] = {}
        self._lock_fd = self._write_fd = -1
        self._pid = os.getpid()
        self._checked = False
        self._dead: SnapstoreError | None = None
        self._damaged: Corrupt | None = None
        self.warnings: tuple[str, ...] = ()
        if self._layout.exists():
            self._warn_of_network()
            self._load()

    # --- opening and closing ----------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether the store has been made."""
        return bool(self._segments)

    def create(self) -> None:
        """Make the store now, if it is not there yet."""
        with self._mutex:
            self._usable()
            self._ensure_exists()

    def close(self) -> None:
        """Give all files back."""
        with self._mutex:
            if self._segments and not self._dead:
                self._cache.store_when_worthwhile(self._segments[-1], closing=True)
                if self._checked and self._durable:
                    self._cache.note_checked(self._segments[-1])
            self._drop_files()
            self._dead = SnapstoreError("this store handle is closed", hint="open the store again")

    def _drop_files(self) -> None:
        for segment in self._segments:
            segment.close()
        self._segments = []
        for fd in (self._lock_fd, self._write_fd):
            if fd >= 0:
                os.close(fd)
        self._lock_fd = self._write_fd = -1
        self._tips.clear()

    def _usable(self) -> None:
        if self._dead is not None:
            raise self._dead
        if self._pid != os.getpid():
            # A forked child shares its parent's open file, and with it the lock: it would believe
            # to hold what the parent holds. With files of its own it waits like any other process.
            self._drop_files()
            self._pid, self._checked = os.getpid(), False
        if not self._segments and self._layout.exists():
            self._load()

    def _warn_of_network(self) -> None:
        kind = network_filesystem(self.root.resolve())
        if kind:
            text = (f"{self.root} lies on a network file system ({kind}), whose locks and syncs "
                    "may not hold; keep the store on a local disk and carry it with push or a bundle")  # fmt: skip
            self.warnings = (text,)
            python_warnings.warn(text, stacklevel=4)

    def _load(self) -> None:
        """Open the segments that the manifest names and take in the active one."""
        try:
            names = Manifest.read(self._layout.manifest).segments
        except Corrupt as damage:
            # The log says the same as the manifest does, only less surely: read, but do not write.
            self._damaged = damage
            names = self._layout.segments_on_disk()
        for number in names:
            self._segments.append(self._open_segment(number))
        for segment in self._segments[:-1]:
            self._cache.attach_sealed(segment)
        if self._segments:
            self._cache.attach_active(self._segments[-1])
            self._follow()

    def _open_segment(self, number: int) -> Segment:
        return Segment(number, self._layout.segment(number), self._disk)

    def _follow(self) -> None:
        """Take in what other processes have appended since the last look."""
        active = self._segments[-1]
        for opened in active.follow():
            self._note_moves(opened)
        if active.sealed:
            self._after_seal()
        self._cache.store_when_worthwhile(self._segments[-1])

    def _note_moves(self, opened: Batch) -> None:
        for move in moves_in(opened):
            self._tips[move.ref] = move

    def _after_seal(self) -> None:
        """The active segment was sealed by another process: open its successor, if it is named."""
        last = self._segments[-1].number
        try:
            named = Manifest.read(self._layout.manifest).segments
        except Corrupt as damage:
            self._damaged = damage
            return
        later = [number for number in named if number > last]
        for number in later:
            self._cache.attach_sealed(self._segments[-1])
            self._segments.append(self._open_segment(number))
        if later:
            self._close_write_fd()
            self._checked = False
            self._follow()

    def _close_write_fd(self) -> None:
        if self._write_fd >= 0:
            os.close(self._write_fd)
            self._write_fd = -1

    # --- making a store ---------------------------------------------------------------------------

    def _ensure_exists(self) -> None:
        if self._segments:
            return
        self._layout.prepare(self._disk)
        self._open_lock()
        self._disk.lock(self._lock_fd, timeout=self._lock_timeout)
        try:
            if not self._layout.exists():  # another process may have made it meanwhile
                start = self._start_batch(1, ZERO_DIGEST, [])
                self._disk.write_file(self._layout.segment(1), start)
                self._disk.write_file(self._layout.manifest, Manifest(1, (1,)).encode())
                self._disk.write_file(self._layout.format, FORMAT_LINE)
                self._warn_of_network()
            self._load()
        finally:
            self._disk.unlock(self._lock_fd)

    def _open_lock(self) -> None:
        if self._lock_fd < 0:
            self._lock_fd = self._disk.open_lock(self._layout.lock)

    def _start_batch(self, number: int, previous: bytes, tips: Sequence[Move]) -> bytes:
        pages = [(fmt.REFS, page) for page in encode_pages(tips)]
        data, _ = self._writer.pack(
            [], pages, flags=fmt.START, number=0, durable_end=0, previous=previous[: fmt.CHAIN_SIZE]
        )
        return data

    # --- committing -------------------------------------------------------------------------------

    def commit(self, objects: Sequence[Obj], update: Update | None = None) -> Move | None:
        """See ``snapstore.engine.Engine.commit``."""
        with self._mutex:
            self._usable()
            if not self._segments:
                if update is not None:
                    check_update(update, None)  # a refused update must not make a store
                self._ensure_exists()
            self._open_lock()
            self._disk.lock(self._lock_fd, timeout=self._lock_timeout)
            try:
                self._prepare_to_write()
                move = check_update(update, self._tip(update.ref)) if update else None
                new = self._not_yet_there(objects)
                if new or move:
                    self._append(new, move)
            finally:
                self._disk.unlock(self._lock_fd)
            self._cache.store_when_worthwhile(self._segments[-1])
            return move

    def _prepare_to_write(self) -> None:
        """With the lock held: know the whole log, be sure of it, and stand at its end."""
        if self._damaged is not None:
            raise self._damaged
        active = self._segments[-1]
        # A sealed segment may have got its successor since, from a process that writes there now.
        if active.sealed or active.size() != active.end:
            self._follow()
        if not self._checked:
            self._check_active()
        active = self._segments[-1]
        self._open_to_write()
        if active.size() != active.end:
            self._settle_tail(active)
        if self._durable and active.durable_end < active.end:
            # Batches of others: one of them may have been killed before its sync, and neither a
            # successor nor a claim of ours that they are durable may stand on them as they are.
            self._sync_or_die()
            active.durable_end = active.end
        if active.sealed:
            self._open_successor()
        elif active.end >= self._seal_at:
            self._seal()

    def _open_to_write(self) -> None:
        if self._write_fd < 0:
            self._write_fd = self._disk.open(self._segments[-1].path, writable=True)

    def _check_active(self) -> None:
        """Before its first commit a process makes sure of what its indexes told it.

        And of the names: one who was killed may have renamed a file into place and not come to
        syncing the directory. What we save must not depend on a name that can still vanish.
        """
        active = self._segments[-1]
        if self._cache.was_checked(active):
            self._checked = True
            return
        if not active.covered_is_intact():
            active.forget()
            self._tips.clear()
            self._follow()
        for path in self._layout.leftovers():
            self._disk.remove(path)
        if self._durable:
            self._disk.sync_dir(active.path.parent)
            self._disk.sync_dir(self.root)
        self._checked = True

    def _settle_tail(self, active: Segment) -> None:
        """Set aside the bytes behind the verified end, or refuse: see tail.py."""
        path, end, size = str(active.path), active.end, active.size()
        if size < end:
            raise Corrupt("a segment is shorter than it was", path=path, offset=size)
        data = os.pread(active.fd, size - end, end)
        tail = examine(data, path, end, active.next_number)
        if tail.acknowledged:
            raise tail.as_error()
        self._disk.make_dir(self._layout.torn)
        kept = self._layout.torn / f"{active.number:08d}-{active.end}-{time.time_ns()}"
        self._disk.write_file(kept, data)
        self._disk.truncate(self._write_fd, end)
        self._sync_or_die()

    def _not_yet_there(self, objects: Sequence[Obj]) -> list[Obj]:
        new: dict[bytes, Obj] = {}
        # The one snapshot of a save holds the time and is new by nature; looking for it would cost
        # a search. Many are an import, which may have brought some of them before.
        saving = sum(o.kind == Kind.SNAPSHOT for o in objects) == 1
        for o in objects:
            if (saving and o.kind == Kind.SNAPSHOT) or not self._has(o.id):
                new[o.id] = o
        return list(new.values())

    def _append(self, objects: list[Obj], move: Move | None) -> None:
        waiting: list[Obj] = []
        size = 0
        for o in objects:
            if size + len(o.payload) > SPLIT_AT and waiting:
                self._write_batch(waiting, None, sync=False)
                waiting, size = [], 0
                if self._segments[-1].end >= self._seal_at:
                    self._seal()
            waiting.append(o)
            size += len(o.payload)
        self._write_batch(waiting, move, sync=True)

    def _write_batch(self, objects: list[Obj], move: Move | None, *, sync: bool) -> None:
        active = self._segments[-1]
        objects.sort(key=slot_order)
        extra = [(fmt.MOVE, encode_move(move, _slot_of(move.new, objects)))] if move else []
        sync = sync and self._durable
        data, digest = self._writer.pack(
            objects,
            extra,
            flags=0 if sync else fmt.LOOSE,
            number=active.next_number,
            durable_end=active.durable_end,
            previous=active.chain(),
        )
        start = active.end
        self._write_or_cut_back(data, start)
        if sync:
            self._sync_or_die()
            active.durable_end = start + len(data)
        moved = [(move.ref, move.gen)] if move else []
        if move:
            self._tips[move.ref] = move
        active.grow(start, len(data), digest, [o.id for o in objects], moved)

    def _write_or_cut_back(self, data: bytes, start: int) -> None:
        try:
            self._disk.write_at(self._write_fd, data, start)
        except DiskError:
            with contextlib.suppress(DiskError):
                self._disk.truncate(self._write_fd, start)
            raise

    def _sync_or_die(self) -> None:
        try:
            self._disk.sync(self._write_fd)
        except DiskError as error:
            self._dead = UnknownOutcome(f"the outcome of the last save is unknown: {error}")
            raise self._dead from error

    # --- sealing ----------------------------------------------------------------------------------

    def _seal(self) -> None:
        """Close the active segment and go on in a new one.

        Three steps, each durable before the next: a SEAL batch, so that a process that looks only
        at this file learns of it; the new segment, whole; the manifest that names it. A crash
        between them leaves a sealed segment without a successor, which the next writer makes.
        """
        active = self._segments[-1]
        data, digest = self._writer.pack(
            [], [], flags=fmt.SEAL, number=active.next_number,
            durable_end=active.durable_end, previous=active.chain())  # fmt: skip
        self._write_or_cut_back(data, active.end)
        self._sync_or_die()
        active.grow(active.end, len(data), digest, [], [])
        active.sealed = True
        self._open_successor()

    def _open_successor(self) -> None:
        sealed = self._segments[-1]
        number = sealed.number + 1
        tips = sorted(self._all_tips(""), key=lambda move: move.ref)
        path = self._layout.segment(number)
        self._disk.write_file(path, self._start_batch(number, sealed.digest, tips))
        old = Manifest.read(self._layout.manifest)
        names = (*old.segments, number)
        self._disk.write_file(self._layout.manifest, Manifest(old.generation + 1, names).encode())
        self._cache.store_sealed(sealed)
        self._segments.append(self._open_segment(number))
        self._close_write_fd()
        self._open_to_write()
        self._follow()

    # --- reading ----------------------------------------------------------------------------------

    def read(self, object_id: bytes) -> Obj:
        """See ``snapstore.engine.Engine.read``."""
        with self._mutex:
            return self._find_surely(object_id)

    def read_many(self, object_ids: Sequence[bytes]) -> list[Obj]:
        """See ``snapstore.engine.Engine.read_many``."""
        found: list[Obj] = []
        near: Batch | None = None
        with self._mutex:
            while len(found) < len(object_ids):
                at = len(found)
                near, slot = self._locate_near(object_ids[at], near)
                if slot >= near.contents:
                    found.append(near.object(slot))
                    continue
                wanted = object_ids[at : at + near.contents - slot]
                payloads = near.run(slot, b"".join(wanted))
                found += map(Obj, wanted, repeat(Kind.CONTENT), payloads)
        return found

    def _locate_near(self, object_id: bytes, near: Batch | None) -> tuple[Batch, int]:
        """As _locate_surely, but look first where the object before was, and just behind it."""
        if near is not None:
            slot = near.find_content(object_id)
            if slot >= 0:
                return near, slot
            after = self._segments[-1].opened_after(near)
            slot = after.find_content(object_id) if after is not None else -1
            if after is not None and slot >= 0:
                return after, slot
        return self._locate_surely(object_id)

    def contains(self, object_id: bytes) -> bool:
        """See ``snapstore.engine.Engine.contains``."""
        with self._mutex:
            self._look()
            return self._has(object_id) or (self._doubt_indexes() and self._has(object_id))

    def _has(self, object_id: bytes) -> bool:
        try:
            return self._locate(object_id) is not None
        except Corrupt:
            return False  # what cannot be read again is stored again

    def _find_surely(self, object_id: bytes) -> Obj:
        opened, slot = self._locate_surely(object_id)
        return opened.object(slot)

    def _locate_surely(self, object_id: bytes) -> tuple[Batch, int]:
        self._usable()
        try:
            found = self._locate(object_id)
        except Corrupt:
            if not self._doubt_indexes():
                raise
            found = self._locate(object_id)
        if found is None and self._segments:
            self._follow()
            found = self._locate(object_id)
        if found is None and self._doubt_indexes():
            found = self._locate(object_id)
        if found is None:
            raise ObjectMissing(object_id)
        return found

    def _locate(self, object_id: bytes) -> tuple[Batch, int] | None:
        damage = None
        for segment in reversed(self._segments):
            try:
                found = segment.find(object_id)
            except Corrupt as error:
                damage = error  # an older segment may hold it too
                continue
            if found is not None:
                return found
        if damage is not None:
            raise damage
        return None

    def _doubt_indexes(self) -> bool:
        """Make damaged indexes again; True if there were any.

        Opening takes the indexes of sealed segments on trust. No miss is believed, and no damage
        reported, before they have been checked; once for each handle.
        """
        return self._cache.replace_unsound(self._segments)

    def ids(self, prefix: bytes, digits: int) -> Iterator[tuple[bytes, int]]:
        """See ``snapstore.engine.Engine.ids``."""
        with self._mutex:
            self._look()
            self._doubt_indexes()
            found = lookup.ids(self._segments, prefix, digits)
        yield from found

    def _look(self) -> None:
        self._usable()
        if self._segments:
            self._follow()

    # --- refs -------------------------------------------------------------------------------------

    def tip(self, ref: str) -> Move | None:
        """See ``snapstore.engine.Engine.tip``."""
        with self._mutex:
            self._look()
            return self._tip(ref)

    def _tip(self, ref: str) -> Move | None:
        if ref not in self._tips and self._segments:
            self._tips[ref] = lookup.tip(self._segments[-1], ref)
        return self._tips.get(ref)

    def move(self, ref: str, gen: int) -> Move | None:
        """See ``snapstore.engine.Engine.move``."""
        with self._mutex:
            self._look()
            self._doubt_indexes()
            return lookup.move(self._segments, ref, gen)

    def tips(self, prefix: str = "") -> Iterator[Move]:
        """See ``snapstore.engine.Engine.tips``."""
        with self._mutex:
            self._look()
            found = sorted(self._all_tips(prefix), key=lambda move: move.ref)
        yield from found

    def _all_tips(self, prefix: str) -> list[Move]:
        return lookup.tips(self._segments[-1], prefix) if self._segments else []

    def reflog(self) -> Iterator[Move]:
        """See ``snapstore.engine.Engine.reflog``."""
        with self._mutex:
            self._look()
            segments = list(self._segments)
            ends = [segment.end for segment in segments]
        for segment, end in zip(reversed(segments), reversed(ends), strict=True):
            while end > 0:
                with self._mutex:
                    self._usable()
                    opened = segment.batch_before(end)
                end -= opened.header.size
                yield from reversed(moves_in(opened))

    # --- care -------------------------------------------------------------------------------------

    def verify(self, progress: Progress | None = None) -> Iterator[Problem]:
        """See ``snapstore.engine.Engine.verify``."""
        from snapstore.engines.log.verify import verify

        with self._mutex:
            self._look()
            segments = list(self._segments)
        yield from verify(self._layout, self._disk, segments, self._damaged, progress)

    def stats(self) -> Stats:
        """See ``snapstore.engine.Engine.stats``."""
        with self._mutex:
            self._look()
            objects = sum(segment.objects() for segment in self._segments)
            return Stats(objects, self._layout.bytes_on_disk())


def _slot_of(object_id: bytes | None, objects: Sequence[Obj]) -> int | None:
    """The slot of an object in the batch that is made of these; None when it is not in it."""
    for slot in range(len(objects) - 1, -1, -1):  # a snapshot is among the last
        if objects[slot].id == object_id:
            return slot
    return None
