"""The local engine: an append-only log in a directory.

What is known of the log and how it is read is ``log.py``; how it is written, ``append.py``. This
module puts both behind the engine's contract: one mutex for the threads of a process, files that
are opened when they are first needed, and again in a child after a fork.
"""

from __future__ import annotations

import os
import threading
import time
import warnings as python_warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from snapstore.disk import DISK, Disk, network_filesystem
from snapstore.engine import Move, Obj, Problem, Progress, Stats, Update, check_update
from snapstore.engines.log import lookup, trash
from snapstore.engines.log.append import Appender, Links
from snapstore.engines.log.health import Sign, signs
from snapstore.engines.log.layout import Layout
from snapstore.engines.log.log import Log
from snapstore.engines.log.records import moves_in
from snapstore.engines.log.rewrite import Rewrite
from snapstore.engines.log.salvage import Everything, Salvage
from snapstore.engines.log.selection import AllBut, Dropped, Selection
from snapstore.errors import Corrupt, SnapstoreError

if TYPE_CHECKING:
    from snapstore.engines.sheet import Sheet

SEAL_AT = 64 << 20
"""A segment that has reached this size is sealed before the next commit."""
LOCK_TIMEOUT = 30.0
"""Seconds that a commit waits for other processes before it raises Locked."""


R = TypeVar("R", bound=Rewrite)


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
        links: Links | None = None,
    ) -> None:
        """Open the store at root; one that is not there yet is made by the first commit.

        Opening reads and never creates or changes a file; for links see ``Appender``. Raises
        UnsupportedFormat.
        """
        root = root.absolute()  # a process may go elsewhere while files are still to be opened
        self.root = root
        self._of_network: tuple[str, ...] = ()
        self._has_told_of_damage = False
        self._layout = Layout(root)
        self._disk = disk
        self._mutex = threading.RLock()
        self._log = Log(self._layout, disk)
        self._appender = Appender(
            self._log,
            disk,
            durable=durable,
            seal_at=seal_at,
            lock_timeout=lock_timeout,
            links=links,
        )
        self._durable, self._seal_at, self._lock_timeout = durable, seal_at, lock_timeout
        self._pid = os.getpid()
        self._closed: SnapstoreError | None = None
        if self._layout.exists():
            self._warn_of_network()
            self._log.load()
            self._warn_of_damage()

    # --- opening and closing ----------------------------------------------------------------------

    def exists(self) -> bool:
        """Whether the store has been made."""
        return bool(self._log.segments)

    def create(self) -> None:
        """Make the store now, if it is not there yet."""
        with self._mutex:
            self._usable()
            self._ensure_exists()

    def _ensure_exists(self) -> None:
        if not self._log.segments:
            self._log.change(self._appender.create)
            self._warn_of_network()

    def close(self) -> None:
        """Give all files back."""
        with self._mutex:
            before, self._closed = self._closed, _closed()
            if self._log.segments and not (self._appender.dead or before or self._log.torn):
                active = self._log.active
                self._log.cache.store_when_worthwhile(active, closing=True)
                if self._appender.checked():
                    self._log.witness.note_checked(active)
            self._drop_files()

    def _drop_files(self) -> None:
        self._log.close()
        self._appender.close()

    def _usable(self) -> None:
        refusal = self._closed or self._appender.dead
        if refusal is not None:
            raise refusal
        if self._pid != os.getpid():
            # A forked child shares its parent's open file, and with it the lock: it would believe
            # to hold what the parent holds. With files of its own it waits like any other process.
            self._drop_files()
            self._pid = os.getpid()
        if self._log.torn:
            self._appender.close()
            self._log.forget()
        if not self._log.segments and self._layout.exists():
            self._log.load()

    def _warn_of_network(self) -> None:
        kind = network_filesystem(self.root.resolve())
        if kind:
            text = (
                f"{self.root} lies on a network file system ({kind}), whose locks and syncs may "
                "not hold; keep the store on a local disk and carry it with push or a bundle"
            )
            self._of_network = (text,)
            python_warnings.warn(text, stacklevel=4)

    def _warn_of_damage(self) -> None:
        told = self._of_damage()
        if told and not self._has_told_of_damage:
            self._has_told_of_damage = True
            python_warnings.warn(told, stacklevel=5)

    def _of_damage(self) -> str:
        if self.cut_off is not None:
            return _told(self.cut_off)
        return str(self._log.hurt or "")

    @property
    def cut_off(self) -> Corrupt | None:
        """See ``snapstore.engine.Engine.cut_off``."""
        return self._log.cut_off

    @property
    def warnings(self) -> tuple[str, ...]:
        """See ``snapstore.engine.Engine.warnings``."""
        told = self._of_damage()
        return (*self._of_network, told) if told else self._of_network

    def _look(self) -> None:
        self._usable()
        if self._log.segments:
            self._log.follow()
            if self.cut_off is not None:
                self._warn_of_damage()

    # --- objects ----------------------------------------------------------------------------------

    def commit(self, objects: Sequence[Obj], update: Update | None = None) -> Move | None:
        """See ``snapstore.engine.Engine.commit``."""
        with self._mutex:
            self._usable()
            if not self._log.segments:
                if update is not None:
                    check_update(update, None)  # a refused update must not make a store
                self._ensure_exists()
            return self._log.change(lambda: self._appender.commit(objects, update))

    def read(self, object_id: bytes) -> Obj:
        """See ``snapstore.engine.Engine.read``."""
        with self._mutex:
            self._usable()
            opened, slot = self._log.locate(object_id)
            return opened.object(slot, object_id)

    def read_many(self, object_ids: Sequence[bytes]) -> list[Obj]:
        """See ``snapstore.engine.Engine.read_many``."""
        with self._mutex:
            self._usable()
            return self._log.read_many(object_ids)

    def contains(self, object_id: bytes) -> bool:
        """See ``snapstore.engine.Engine.contains``."""
        with self._mutex:
            self._look()
            log = self._log
            return log.has(object_id) or (log.doubt_indexes() and log.has(object_id))

    def ids(self, prefix: bytes, digits: int) -> Iterator[tuple[bytes, int]]:
        """See ``snapstore.engine.Engine.ids``."""
        with self._mutex, self._log.noting_damage():
            self._look()
            self._log.doubt_indexes()
            found = lookup.ids(self._log.segments, prefix, digits)
        yield from found

    # --- refs -------------------------------------------------------------------------------------

    def tip(self, ref: str) -> Move | None:
        """See ``snapstore.engine.Engine.tip``."""
        with self._mutex:
            self._look()
            return self._log.tip(ref)

    def move(self, ref: str, gen: int) -> Move | None:
        """See ``snapstore.engine.Engine.move``."""
        with self._mutex, self._log.noting_damage():
            self._look()
            self._log.doubt_indexes()
            return lookup.move(self._log.segments, ref, gen)

    def tips(self, prefix: str = "") -> Iterator[Move]:
        """See ``snapstore.engine.Engine.tips``."""
        with self._mutex:
            self._look()
            found = self._log.tips(prefix)
        yield from found

    def reflog(self) -> Iterator[Move]:
        """See ``snapstore.engine.Engine.reflog``."""
        with self._mutex:
            self._look()
            segments = list(self._log.segments)
            ends = [segment.end for segment in segments]
        for segment, end in zip(reversed(segments), reversed(ends), strict=True):
            while end > 0:
                with self._mutex, self._log.noting_damage():
                    self._usable()
                    opened = segment.batch_before(end)
                end -= opened.header.size
                yield from reversed(moves_in(opened))

    # --- care -------------------------------------------------------------------------------------

    def verify(self, progress: Progress | None = None) -> Iterator[Problem]:
        """See ``snapstore.engine.Engine.verify``."""
        yield from (found for found in self.scan(1.0, progress) if isinstance(found, Problem))

    def scan(self, share: float, progress: Progress | None = None) -> Iterator[Problem | Sheet]:
        """See ``snapstore.engines.sheet.Scanned``."""
        from snapstore.engines.log.verify import scan

        with self._mutex:
            self._look()
            segments, known = list(self._log.segments), self._log.known_problems()
        yield from known
        is_short = any(problem.kind == "cut_short" for problem in known)
        told: set[tuple[str | None, int | None]] = set()
        for found in scan(self._layout, self._disk, segments, None, share, progress):
            if isinstance(found, Problem) and found.kind == "torn_tail" and is_short:
                continue  # it was acknowledged, as was told
            if isinstance(found, Problem) and not found.harmless:
                told.add((found.path, found.offset))
                with self._mutex:
                    self._log.note_damage(Corrupt("", path=found.path, offset=found.offset))
            yield found
        hurt = self._log.hurt
        if hurt is not None and (hurt.path, hurt.offset) not in told:
            yield Problem("damaged_batch", hurt.path, hurt.offset, None, str(hurt))

    @property
    def rewrites(self) -> int:
        """How often this handle has found the segments replaced by a collection."""
        with self._mutex:
            self._look()
            return self._log.rewrites

    def catalogue(self) -> Iterator[tuple[bytes, int, int]]:
        """(id, kind, length of the payload) of every object, in the order of the log; one that is
        there twice is named twice. Raises Corrupt where the log is damaged."""
        log = self._further_log()
        try:
            for segment in log.segments:
                for _, opened in segment.scan(0, segment.end):
                    yield from zip(opened.ids(), opened.kinds, opened.lengths, strict=False)
        finally:
            log.close()

    def _further_log(self) -> Log:
        """The log through files of its own, for a long walk beside which other threads go on."""
        with self._mutex:
            self._look()
        log = Log(self._layout, self._disk)
        if self.exists():
            log.load()
            if log.damaged is not None:
                log.close()
                raise log.damaged
        return log

    def kind(self, object_id: bytes) -> int:
        """The kind of an object, without reading its content. Raises ObjectMissing or Corrupt."""
        with self._mutex:
            self._usable()
            opened, slot = self._log.locate(object_id)
            return opened.kinds[slot]

    def rewrite(
        self, selection: Selection, *, now: int, grace: int, progress: Progress | None = None
    ) -> Dropped:
        """Write the segments anew without what does not stay, and packed; see rewrite.py.

        What they were is kept in trash/ for a grace time, what was put there before that long ago
        is removed; both times in microseconds. Raises Corrupt, DiskError, Locked.
        """
        with self._mutex:
            self._look()
        if not self.exists():
            return Dropped()
        dropped = self._rewritten(self._work(Rewrite, selection, now, progress))
        trash.empty_trash(self._layout, self._disk, now - grace + (grace == 0))
        return dropped

    def discard(
        self,
        objects: Collection[bytes],
        before: Mapping[str, int],
        tips: Mapping[str, int] | None = None,
    ) -> int:
        """See ``snapstore.engine.Discarding``."""
        with self._mutex:
            self._look()
        if not self.exists():
            return 0
        selection = AllBut(objects, before, tips)
        rewriting = self._work(Rewrite, selection, time.time_ns() // 1000)
        rewriting.at_the_end = lambda: trash.remove_copies(self._layout, self._disk)
        return self._rewritten(rewriting).objects

    def signs(self) -> Iterator[Sign]:
        """See ``snapstore.maintenance.doctor.Examined``."""
        with self._mutex:
            self._look()
            yield from list(signs(self._layout, self._disk, self._log))

    def whole_ids(self) -> Iterator[tuple[bytes, int]]:
        """See ``snapstore.maintenance.repair.Salvaging``."""
        if self.exists():
            yield from self._work(Salvage, Everything(), 0).whole_ids()

    def damage(self) -> list[Problem]:
        """See ``snapstore.maintenance.repair.Salvaging``."""
        return self._work(Salvage, Everything(), 0).look() if self.exists() else []

    def salvage(self, now: int) -> bool:
        """See ``snapstore.maintenance.repair.Salvaging``."""
        done = self.exists() and self._work(Salvage, Everything(), now).run()
        if done:
            with self._mutex:
                self._log.load_rewritten()
        return done

    def _rewritten(self, rewriting: Rewrite) -> Dropped:
        rewriting.run()
        with self._mutex:
            self._look()  # what was dropped is not to be found through this handle either
        return rewriting.dropped

    def _work(
        self, how: type[R], selection: Selection, now: int, progress: Progress | None = None
    ) -> R:
        return how(self._layout, self._disk, selection, durable=self._durable,
                   seal_at=self._seal_at, lock_timeout=self._lock_timeout, now=now,
                   progress=progress)  # fmt: skip

    def stats(self) -> Stats:
        """See ``snapstore.engine.Engine.stats``."""
        with self._mutex:
            self._look()
            objects = sum(segment.objects() for segment in self._log.segments)
            return Stats(objects, self._layout.bytes_on_disk())


def _closed() -> SnapstoreError:
    return SnapstoreError("this store handle is closed", hint="open the store again")


def _told(damage: Corrupt) -> str:
    return (
        f"the state before some damage is shown, not what was saved last: {damage}; "
        "`snapstore verify` says what is touched, `snapstore repair` how to go on"
    )
