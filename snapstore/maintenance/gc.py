"""Collecting: letting go of what nothing reaches, and packing what stays.

Nothing is ever deleted by itself. Asked only to show, nothing is written; asked to apply, what goes
is what was shown, unless something was saved in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from snapstore.engine import Discarding, Engine, Move, Progress
from snapstore.engines.log.layout import Layout
from snapstore.errors import InvalidInput
from snapstore.maintenance.mark import Mark

if TYPE_CHECKING:
    from snapstore.engines.log.selection import Dropped, Selection
    from snapstore.store import Store

REFLOG = timedelta(days=90)
"""How long what only undo reaches stays."""
TRASH = timedelta(hours=24)
"""How long the files that were replaced stay in trash/, unless the reflog counts for less."""
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection let go of, or would."""

    objects: int
    bytes: int
    """Of these objects, before compression."""
    applied: bool
    freed: int
    """Bytes of files that the store takes less than before; 0 when only shown. What is in trash/
    still takes its place on the disk."""
    trash: int = 0
    """Bytes of the replaced files that trash/ holds, of earlier collections too."""


@runtime_checkable
class Rewriting(Protocol):
    """An engine whose files can be written anew without what does not stay."""

    def catalogue(self) -> Iterator[tuple[bytes, int, int]]:
        """(id, kind, length of the payload) of every object; some may be named twice."""

    def kind(self, object_id: bytes) -> int:
        """The kind of an object, without reading it."""

    def rewrite(
        self, selection: Selection, *, now: int, grace: int, progress: Progress | None = None
    ) -> Dropped:
        """Drop what the selection does not keep; times are in microseconds."""


class _Collection(NamedTuple):
    objects: int
    bytes: int


@runtime_checkable
class Collecting(Protocol):
    """An engine that knows by itself what can go."""

    def collect(
        self, *, apply: bool, grace: float | None, progress: Progress | None = None
    ) -> _Collection:
        """Collect, or only say what that would do; grace in seconds, progress in requests."""


def collect(
    store: Store,
    *,
    apply: bool = False,
    grace: timedelta = REFLOG,
    now: int | None = None,
    progress: Progress | None = None,
) -> Collected:
    """Let go of what no ref reaches, nor any move younger than grace; with grace 0 no move counts.

    Saves and reads go on meanwhile. For an engine with files, progress is told of bytes: looking
    for what stays counts as one reading of the store, and looking through it, or copying, as
    another. For an object store it is told of requests.

    Raises Corrupt and ObjectMissing when the store is damaged, DiskError when there is not enough
    room for the new files beside the old ones, Locked when another collection is under way. In all
    these cases nothing was let go of.
    """
    if not isinstance(grace, timedelta):
        raise InvalidInput(f"a grace time is a timedelta, not a {type(grace).__name__}")
    engine = store.engine
    if not engine.exists():
        return Collected(0, 0, apply, 0)
    now = store.clock() if now is None else now
    limit = min(grace, timedelta(microseconds=now)) // _MICROSECOND
    if isinstance(engine, Rewriting):
        before = store.engine.stats()
        halves = _Halves(before.bytes, progress)
        met = halves.first(before.objects)
        mark = Mark(store, now - limit, engine.kind, met)
        if not apply:
            shown = _shown(mark, engine.catalogue(), halves.second, before.objects)
            return replace(shown, trash=_in_trash(store))
        kept = min(grace, TRASH) // _MICROSECOND
        dropped = engine.rewrite(mark, now=now, grace=kept, progress=halves.second)
        freed = before.bytes - store.engine.stats().bytes
        return Collected(dropped.objects, dropped.bytes, True, freed, _in_trash(store))
    if isinstance(engine, Collecting):
        seconds = grace.total_seconds() if not grace else None
        found = engine.collect(apply=apply, grace=seconds, progress=progress)
        return Collected(found.objects, found.bytes, apply, 0)
    return _without_files(store, Mark(store, now - limit), apply)


class _Halves:
    """Tells of two walks through a store as of one, in bytes, and not too often."""

    def __init__(self, size: int, progress: Progress | None) -> None:
        self._size = size
        self._progress = progress
        self._told = 0

    def first(self, objects: int) -> Callable[[int], None]:
        """To be called with how many of the objects were met."""
        return lambda met: self._tell(self._size * min(met, objects) // max(objects, 1))

    def second(self, done: int, total: int) -> None:
        """So much is done of so much of the second walk."""
        self._tell(self._size + self._size * done // max(total, 1))

    def _tell(self, done: int) -> None:
        if self._progress is not None and done - self._told >= self._size // 512:
            self._told = done
            self._progress(done, 2 * self._size)


def _shown(
    mark: Mark, catalogue: Iterator[tuple[bytes, int, int]], progress: Progress, objects: int
) -> Collected:
    mark.begin()
    gone: dict[bytes, int] = {}
    for done, (object_id, _, length) in enumerate(catalogue):
        if not mark.keeps(object_id):
            gone[object_id] = length
        progress(min(done, objects), objects)
    return Collected(len(gone), sum(gone.values()), False, 0)


def _in_trash(store: Store) -> int:
    if store.local is None:
        return 0
    return sum(path.stat().st_size for path in Layout(store.local.root).trash.glob("*"))


def _without_files(store: Store, mark: Mark, apply: bool) -> Collected:
    mark.begin()
    engine: Engine = store.engine
    gone = [i for i, _ in engine.ids(b"", 0) if not mark.keeps(i)]
    size = sum(len(engine.read(i).payload) for i in gone)
    if apply and isinstance(engine, Discarding):
        engine.discard(gone, _first_that_lead_somewhere(engine.reflog(), mark))
    return Collected(len(gone), size, apply, 0)


def _first_that_lead_somewhere(moves: Iterable[Move], mark: Mark) -> dict[str, int]:
    """Of each ref that led to what goes, the first move behind the last that did."""
    firsts: dict[str, int] = {}
    for move in moves:  # the newest first
        if move.new is not None and not mark.keeps(move.new):
            firsts.setdefault(move.ref, move.gen + 1)
    return firsts
