"""Appending to the log: one batch, one write and one fdatasync a commit.

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
import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from snapstore.disk import Disk
from snapstore.engine import Move, Obj, Update, check_update
from snapstore.engines.log import batch as fmt
from snapstore.engines.log import trash
from snapstore.engines.log.batch import Writer, slot_order
from snapstore.engines.log.layout import FORMAT_LINE, Layout, Manifest
from snapstore.engines.log.log import Log
from snapstore.engines.log.records import encode_move, encode_pages
from snapstore.engines.log.segment import ZERO_DIGEST, Segment
from snapstore.engines.log.tail import examine
from snapstore.errors import Corrupt, DiskError, ObjectMissing, StoreNotFound, UnknownOutcome

T = TypeVar("T")
Links = Callable[[Sequence[Obj]], set[bytes]]
"""The ids that objects refer to."""

SPLIT_AT = 8 << 20
"""More new content than this is written as several batches; only the last moves the ref."""

FEW = 8
"""Objects that a turn may have to be written without looking for them."""

_NOT_LOCKED = functools.partial(bool)
"""Gives nothing back; no function in Python, as what ``Disk.unlocker`` returns is none."""


class Appender:
    """Writes at the end of the log, under the store's lock."""

    def __init__(
        self,
        log: Log,
        disk: Disk,
        *,
        durable: bool,
        seal_at: int,
        lock_timeout: float,
        links: Links | None = None,
    ) -> None:
        """links tells what objects refer to; without it only where a ref leads is made sure of."""
        self.dead: UnknownOutcome | None = None
        """Why this handle takes no more, after a sync that failed."""
        self._log = log
        self._layout = log.layout
        self._disk = disk
        self._durable = durable
        self._seal_at = seal_at
        self._lock_timeout = lock_timeout
        self._links: Links = links or (lambda objects: set())
        self._writer = Writer()
        self._lock_fd = self._write_fd = -1
        self.unlock: Callable[[], object] = _NOT_LOCKED
        """Give the store's lock back, if it is held."""
        self._open_segment = self._checked_segment = self._intact_segment = 0

    def close(self) -> None:
        """Give the files back."""
        self._open_segment = self._checked_segment = 0
        # Forgotten first: closed twice it may be the descriptor of another file by then.
        fd, self._lock_fd, self.unlock = self._lock_fd, -1, _NOT_LOCKED
        if fd >= 0:
            os.close(fd)
        self._close_written()

    def _close_written(self) -> None:
        fd, self._write_fd = self._write_fd, -1
        if fd >= 0:
            os.close(fd)

    def checked(self) -> bool:
        """Whether the active segment was found as it was written, and its name is durable."""
        return self._durable and self._checked_segment == self._log.active.number

    def lock(self) -> None:
        """Take the store's lock.

        To be called in the ``try`` whose ``finally`` gives it back: when Ctrl-C comes after the
        system gave the lock, and before this returns, it must not be held on to.
        """
        if self._lock_fd < 0:
            self._lock_fd = self._disk.open_lock(self._layout.lock)
            self.unlock = self._disk.unlocker(self._lock_fd)
        self._disk.lock(self._lock_fd, timeout=self._lock_timeout)

    # --- making a store ---------------------------------------------------------------------------

    def create(self) -> None:
        """Make the store, unless another process has made it meanwhile, and open it."""
        self._layout.prepare(self._disk)
        try:
            self.lock()
            if not self._layout.exists():
                self._log.witness.forget()
                start = self._start_batch(ZERO_DIGEST, [])
                self._disk.write_file(self._layout.segment(1), start)
                self._disk.write_file(self._layout.manifest, Manifest(1, (1,)).encode())
                self._disk.write_file(self._layout.format, FORMAT_LINE)
            self._log.load()
        finally:
            self.unlock()

    def _start_batch(self, previous: bytes, tips: Sequence[Move]) -> bytes:
        pages = [(fmt.REFS, page) for page in encode_pages(tips)]
        data, _ = self._writer.pack(
            [], pages, flags=fmt.START, number=0, durable_end=0, previous=previous[: fmt.CHAIN_SIZE]
        )
        return data

    # --- committing -------------------------------------------------------------------------------

    def commit(self, objects: Sequence[Obj], update: Update | None) -> Move | None:
        """See ``snapstore.engine.Engine.commit``."""
        try:
            self.lock()
            self.prepare()
            move = check_update(update, self._log.tip(update.ref)) if update else None
            if self._log.rewrites:
                self._require_what_is_built_on(objects, move)
            if update is not None and update.fresh and len(objects) <= FEW:
                self._write_batch(list(objects), move, sync=True)
            else:
                new = self._not_yet_there(objects)
                if new or move:
                    self._append(new, move)
        finally:
            self.unlock()
        if self._log.cache.store_when_worthwhile(self._log.active) and self._durable:
            self._log.witness.note_checked(self._log.active)
        return move

    def prepare(self) -> None:
        """Know the whole log, be sure of it, and stand at its end. Raises Corrupt."""
        if self._log.refusal is not None:
            self._log.look_again()
            self._require_whole()
        active = self._log.active
        known = active.number == self._open_segment == self._checked_segment
        synced = active.durable_end == active.end or not self._durable
        seen = os.fstat(active.fd)
        there = seen.st_size == active.end < self._seal_at and self._is_in_place(seen)
        if known and synced and there and not active.sealed:
            return  # the usual case: nobody else has written since
        self._prepare_anew()

    def _prepare_anew(self) -> None:
        log = self._log
        # A sealed segment may have got its successor since, from a process that writes there now.
        if log.active.sealed or log.active.size() != log.active.end:
            log.follow()
            self._require_whole()
        if not self._is_in_place(os.fstat(log.active.fd)):
            raise _replaced(self._layout)
        if self._checked_segment != log.active.number:
            self._check_active()
        active = log.active
        if self._open_segment != active.number:
            self._open_to_write()
        if active.size() != active.end or not active.end:
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

    def _is_in_place(self, seen: os.stat_result) -> bool:
        """Whether the active segment, seen through its open file, still is what the store has under
        its name. A repair may have set it aside, and not come to sealing it. Where the whole
        directory was moved, it went along."""
        try:
            return os.path.samestat(seen, self._log.active.path.stat())
        except FileNotFoundError:
            return bool(seen.st_nlink) and not self._layout.root.exists()

    def _require_whole(self) -> None:
        refusal = self._log.refusal
        if refusal is not None:
            raise refusal

    def _open_to_write(self) -> None:
        self._close_written()
        active = self._log.active
        self._write_fd = self._disk.open(active.path, writable=True)
        if not os.path.sameopenfile(self._write_fd, active.fd):
            raise _replaced(self._layout)
        self._open_segment = active.number

    def _check_active(self) -> None:
        """Before its first commit to a segment a process makes sure of what its indexes told it.

        And of the names: one who was killed may have renamed a file into place and not come to
        syncing the directory. What we save must not depend on a name that can still vanish.
        """
        active = self._log.active
        if not self._log.witness.was_checked(active):
            if self._intact_segment != active.number and not active.covered_is_intact():
                self._log.start_over()
            for path in self._layout.leftovers():
                self._disk.remove(path)
            self._clear_strays()
            if self._durable:
                self._or_die(self._disk.sync_dir, active.path.parent)
                self._or_die(self._disk.sync_dir, self._layout.root)
        self._checked_segment = active.number

    def check_beforehand(self) -> None:
        """What takes long of the first ``prepare``, for who can do it before taking the lock."""
        if self._log.active.covered_is_intact():
            self._intact_segment = self._log.active.number

    def _clear_strays(self) -> None:
        """Set aside what a rewriting that was cut off left in log/: it held the lock for it."""
        strays = trash.stray(self._layout, Manifest.read(self._layout.manifest).segments)
        if strays:
            now = time.time_ns() // 1000
            trash.set_aside(self._layout, self._disk, strays, self._layout.trash, now)

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

    def _require_what_is_built_on(self, objects: Sequence[Obj], move: Move | None) -> None:
        """A collection came by since this handle was opened: what was there when the commit was
        prepared may be gone. Seen with the lock held, what is there stays. Raises ObjectMissing."""
        wanted = self._links(objects)
        if move is not None and move.new is not None:
            wanted.add(move.new)
        wanted.difference_update(o.id for o in objects)
        for object_id in wanted:
            if not self._log.has(object_id):
                missing = ObjectMissing(object_id)
                missing.hint = "it was collected meanwhile; reload the session, then repeat"
                raise missing

    def _not_yet_there(self, objects: Sequence[Obj]) -> list[Obj]:
        new = {o.id: o for o in objects if not self._log.has(o.id)}
        return list(new.values())

    def _append(self, objects: list[Obj], move: Move | None) -> None:
        waiting: list[Obj] = []
        size = 0
        for o in objects:
            if size + len(o.payload) > SPLIT_AT and waiting:
                self._write_batch(waiting, None, sync=False)
                waiting, size = [], 0
                if self._log.active.end >= self._seal_at:
                    self._seal()
            waiting.append(o)
            size += len(o.payload)
        self._write_batch(waiting, move, sync=True)

    def _write_batch(self, objects: list[Obj], move: Move | None, *, sync: bool) -> None:
        active = self._log.active
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
            self._log.note(move)
        active.grow(start, len(data), digest, [o.id for o in objects], moved)

    def _write_or_cut_back(self, data: bytes, start: int) -> None:
        try:
            self._disk.write_at(self._write_fd, data, start)
        except DiskError:
            with contextlib.suppress(DiskError):
                self._disk.truncate(self._write_fd, start)
            raise

    def _sync_or_die(self) -> None:
        self._or_die(self._disk.sync, self._write_fd)

    def _or_die(self, sync: Callable[[T], None], what: T) -> None:
        try:
            sync(what)
        except DiskError as error:
            self.dead = UnknownOutcome(f"the outcome of the last save is unknown: {error}")
            raise self.dead from error

    # --- sealing ----------------------------------------------------------------------------------

    def _seal(self) -> None:
        """Close the active segment and go on in a new one.

        Three steps, each durable before the next: a SEAL batch, so that a process that looks only
        at this file learns of it; the new segment, whole; the manifest that names it. A crash
        between them leaves a sealed segment without a successor, which the next writer makes.
        """
        self.write_seal()
        self._open_successor()

    def write_seal(self) -> None:
        """Close the active segment, after ``prepare``; the caller sees to its successor."""
        active = self._log.active
        data, digest = self._writer.pack(
            [], [], flags=fmt.SEAL, number=active.next_number,
            durable_end=active.durable_end, previous=active.chain())  # fmt: skip
        self._write_or_cut_back(data, active.end)
        self._sync_or_die()
        active.grow(active.end, len(data), digest, [], [])
        active.sealed = True

    def begin_segment(self) -> None:
        """Seal the active segment and go on in a new one, after ``prepare``; the sealed one gets no
        index, for who is about to replace it."""
        self.write_seal()
        self._go_on_in(self._name_successor(Manifest.read(self._layout.manifest).segments))

    def _open_successor(self) -> None:
        sealed = self._log.active
        number = self._name_successor(Manifest.read(self._layout.manifest).segments)
        self._log.cache.store_sealed(sealed)
        self._go_on_in(number)

    def _go_on_in(self, number: int) -> None:
        self._log.open_segment(number)
        self._open_to_write()
        self._log.follow()

    def _name_successor(self, sealed: Sequence[int]) -> int:
        """Let the store be made of these segments and a new active one; its number."""
        number = max(sealed) + 1
        start = self._start_batch(self._log.active.digest, self._log.tips())
        self._disk.write_file(self._layout.segment(number), start)
        generation = Manifest.read(self._layout.manifest).generation + 1
        named = Manifest(generation, (*sealed, number))
        self._disk.write_file(self._layout.manifest, named.encode())
        return number


def _slot_of(object_id: bytes | None, objects: Sequence[Obj]) -> int | None:
    """The slot of an object in the batch that is made of these; None when it is not in it."""
    for slot in range(len(objects) - 1, -1, -1):  # a snapshot is among the last
        if objects[slot].id == object_id:
            return slot
    return None


def _replaced(layout: Layout) -> StoreNotFound:
    """What is read is not what would be written: a turn kept there would be kept nowhere."""
    return StoreNotFound(
        f"the store at {layout.root} was removed or replaced since it was opened",
        hint="open it again; what this handle was to save is still in memory",
    )
