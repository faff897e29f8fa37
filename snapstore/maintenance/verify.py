"""Checking a store: every byte against its hash, and every link from every ref and reflog entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from snapstore import refs
from snapstore.engine import Move, Problem, Progress
from snapstore.errors import Corrupt, ObjectMissing, SnapstoreError, UnsupportedFormat
from snapstore.maintenance.reach import Reach
from snapstore.model.layout import LAYOUT

if TYPE_CHECKING:
    from snapstore.store import Store

_UNREADABLE = (Corrupt, UnsupportedFormat)
"""What reading damaged bytes raises: they may even look like another format."""


@runtime_checkable
class InFiles(Protocol):
    """An engine whose objects lie in files that can be looked at in part, and be replaced."""

    @property
    def rewrites(self) -> int:
        """How often its files were found replaced by a collection."""

    def kind(self, object_id: bytes) -> int:
        """The kind of an object, without reading its content."""

    def verify_part(self, share: float) -> Iterator[Problem]:
        """As verify, of a random part of all batches; share: how large a part, from 0 to 1."""


def verify(
    store: Store,
    progress: Progress | None = None,
    *,
    quick: bool = False,
    share: float = 1.0,
) -> Iterator[Problem]:
    """The problems of a store, none when all is well.

    First the engine reads everything again; when share is less than 1, that part of it, where it
    can. Then the links are followed: an object that is whole but points at one that is gone is
    found here, with the turns that need it. A quick verification does only that, and reads no
    content.
    """
    told: set[tuple[str | None, int | None]] = set()
    for problem in _of_files(store, progress, quick, share):
        told.add((problem.path, problem.offset))
        yield problem
    while True:
        before = _rewrites(store)
        found = list(_links(store))
        if not found or _rewrites(store) == before:
            break  # else a collection came by, and took what was only on the way to be looked at
    # A batch that reading the files has told of is met again where its moves are wanted.
    yield from (one for one in found if one.id or (one.path, one.offset) not in told)


def _of_files(
    store: Store, progress: Progress | None, quick: bool, share: float
) -> Iterator[Problem]:
    engine = store.engine
    damage = engine.cut_off
    if damage is not None and (quick or share < 1):
        yield Problem("damaged_batch", damage.path, damage.offset, None, str(damage))
    if quick:
        return
    if share < 1 and isinstance(engine, InFiles):
        yield from engine.verify_part(share)
    else:
        yield from engine.verify(progress)


def _rewrites(store: Store) -> int:
    return store.engine.rewrites if isinstance(store.engine, InFiles) else 0


def _links(store: Store) -> Iterator[Problem]:
    met: list[tuple[bytes, SnapstoreError]] = []
    # Contents were hashed before, or are not to be read: here it is enough that they are there.
    kind = store.engine.kind if isinstance(store.engine, InFiles) else None
    reach = Reach(store.objects, lambda object_id, error: met.append((object_id, error)), kind)
    unread: dict[tuple[str | None, int | None], Problem] = {}

    def unreadable(error: SnapstoreError) -> None:
        problem = _unreadable(error)
        unread.setdefault((problem.path, problem.offset), problem)

    for move in _heads(store, unreadable):
        assert move.new is not None
        number: int | None = None
        for turn in reach.line(move.new):
            number = turn.record.turn
            reach.visit(turn)
            yield from (_problem(move, number, *one) for one in met)
            met.clear()
        # What is met behind the last turn is the turn before it, which the line breaks off at.
        yield from (_problem(move, number - 1 if number else None, *one) for one in met)
        met.clear()
        if LAYOUT in move.info:
            reach.layout(move.info[LAYOUT])
        for tree in refs.trees_of(move):
            reach.tree(tree)
        yield from (_problem(move, None, *one) for one in met)
        met.clear()
    yield from unread.values()


def _heads(store: Store, unreadable: Callable[[SnapstoreError], None]) -> Iterator[Move]:
    """Where refs are and were: sessions and tags as they are now first, for a finding is named
    after the first line that it is met on."""
    tips: list[Move] = []
    for prefix in refs.OF_SNAPSHOTS:
        try:
            tips += store.engine.tips(prefix)
        except _UNREADABLE as error:
            unreadable(error)
    yield from (tip for tip in tips if tip.new)
    for move in _moves(store, tips, unreadable):
        if move.new and move.ref.startswith(refs.OF_SNAPSHOTS):
            yield move


def _moves(
    store: Store, tips: Iterable[Move], unreadable: Callable[[SnapstoreError], None]
) -> Iterator[Move]:
    """The moves that can be read. The reflog ends where it is damaged; what stands before that is
    found by its number."""
    try:
        yield from store.engine.reflog()
        return
    except _UNREADABLE as error:
        unreadable(error)
    for tip in tips:
        for gen in range(tip.gen - 1, 0, -1):
            try:
                move = store.engine.move(tip.ref, gen)
            except _UNREADABLE as error:
                unreadable(error)
                continue
            if move is not None:
                yield move


def _unreadable(error: SnapstoreError) -> Problem:
    path, offset = (error.path, error.offset) if isinstance(error, Corrupt) else (None, None)
    return Problem("damaged_batch", path, offset, None, f"moves cannot be read: {error}")


def _problem(move: Move, turn: int | None, object_id: bytes, error: SnapstoreError) -> Problem:
    kind = "missing" if isinstance(error, ObjectMissing) else "damaged"
    path = error.path if isinstance(error, Corrupt) else None
    offset = error.offset if isinstance(error, Corrupt) else None
    at = f"turn {turn} of " if turn else ""
    return Problem(kind, path, offset, object_id, f"{at}{refs.described(move.ref)}: {error}")
