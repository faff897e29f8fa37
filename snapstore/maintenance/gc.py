"""Collecting: letting go of what nothing reaches, and packing what stays.

Nothing is ever deleted by itself. Asked only to show, nothing is written; asked to apply, what goes
is what was shown, unless something was saved in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from snapstore.engine import Engine
from snapstore.maintenance.mark import Mark
from snapstore.maintenance.purge import Discarding

if TYPE_CHECKING:
    from snapstore.engines.log.rewrite import Dropped, Selection
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


@runtime_checkable
class Rewriting(Protocol):
    """An engine whose files can be written anew without what does not stay."""

    def catalogue(self) -> Iterator[tuple[bytes, int, int]]:
        """(id, kind, length of the payload) of every object; some may be named twice."""

    def kind(self, object_id: bytes) -> int:
        """The kind of an object, without reading it."""

    def rewrite(self, selection: Selection, *, now: int, grace: int) -> Dropped:
        """Drop what the selection does not keep; times are in microseconds."""


class _Collection(NamedTuple):
    objects: int
    bytes: int


@runtime_checkable
class Collecting(Protocol):
    """An engine that knows by itself what can go."""

    def collect(self, *, apply: bool, grace: float | None) -> _Collection:
        """Collect, or only say what that would do; grace in seconds."""


def collect(
    store: Store, *, apply: bool = False, grace: timedelta = REFLOG, now: int | None = None
) -> Collected:
    """Let go of what no ref reaches, nor any move younger than grace; with grace 0 no move counts.

    Saves and reads go on meanwhile. Raises Corrupt and ObjectMissing when the store is damaged,
    DiskError when there is not enough room for the new files beside the old ones, Locked when
    another collection is under way. In all these cases nothing was changed.
    """
    engine = store.engine
    if not engine.exists():
        return Collected(0, 0, apply, 0)
    now = store.clock() if now is None else now
    limit = min(grace, timedelta(microseconds=now)) // _MICROSECOND
    if isinstance(engine, Rewriting):
        mark = Mark(store, now - limit, engine.kind)
        if not apply:
            return _shown(mark, engine.catalogue())
        before = store.engine.stats().bytes
        kept = min(grace, TRASH) // _MICROSECOND
        dropped = engine.rewrite(mark, now=now, grace=kept)
        freed = before - store.engine.stats().bytes
        return Collected(dropped.objects, dropped.bytes, True, freed)
    if isinstance(engine, Collecting):
        found = engine.collect(apply=apply, grace=grace.total_seconds() if not grace else None)
        return Collected(found.objects, found.bytes, apply, 0)
    return _without_files(store, Mark(store, now - limit), apply)


def _shown(mark: Mark, catalogue: Iterator[tuple[bytes, int, int]]) -> Collected:
    mark.renew()
    gone = {i: length for i, _, length in catalogue if not mark.keeps(i)}
    return Collected(len(gone), sum(gone.values()), False, 0)


def _without_files(store: Store, mark: Mark, apply: bool) -> Collected:
    mark.renew()
    engine: Engine = store.engine
    gone = [i for i, _ in engine.ids(b"", 0) if not mark.keeps(i)]
    size = sum(len(engine.read(i).payload) for i in gone)
    if apply and isinstance(engine, Discarding):
        engine.discard(gone, {})
    return Collected(len(gone), size, apply, 0)
