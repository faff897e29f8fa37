"""Following every link from every ref and every move: what is not there, and where it was missed.

This reads all structure, object by object, in the order of the links. It is for stores in which
something may be wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from snapstore import refs
from snapstore.engine import Move, Problem
from snapstore.errors import Corrupt, ObjectMissing, SnapstoreError, UnsupportedFormat
from snapstore.maintenance.counting import first_that_count, histories
from snapstore.maintenance.reach import Reach
from snapstore.model.layout import LAYOUT

if TYPE_CHECKING:
    from snapstore.store import Store

_UNREADABLE = (Corrupt, UnsupportedFormat)
"""What reading damaged bytes raises: they may even look like another format."""

Report = Callable[[SnapstoreError], None]
"""Called with why some moves could not be read."""


class Met(NamedTuple):
    """A problem, and the error that it tells of."""

    problem: Problem
    error: SnapstoreError


class Followed(NamedTuple):
    """What came of following the links."""

    met: list[Met]
    chunked: Collection[bytes]
    """The contents on the way that are kept in pieces."""


def follow(store: Store, kind: Callable[[bytes], int] | None) -> Followed:
    """Follow all links. kind: see ``Reach``."""
    waiting: list[tuple[bytes, SnapstoreError]] = []
    reach = Reach(store.objects, lambda *found: waiting.append(found), kind)
    met: list[Met] = []
    missed: list[tuple[Move, Met]] = []

    def note(move: Move, turn: int | None) -> None:
        missed.extend((move, Met(_problem(move, turn, *found), found[1])) for found in waiting)
        waiting.clear()

    for move in heads(store, lambda error: met.append(_unreadable(error))):
        assert move.new is not None
        number: int | None = None
        for turn in reach.line(move.new):
            number = turn.record.turn
            reach.visit(turn)
            note(move, number)
        # What is met behind the last turn is the turn before it, which the line breaks off at.
        note(move, number - 1 if number else None)
        if LAYOUT in move.info:
            reach.layout(move.info[LAYOUT])
        for tree in refs.trees_of(move):
            reach.tree(tree)
        note(move, None)
    return Followed([*met, *_counted(store, missed)], reach.chunked)


def _counted(store: Store, missed: Sequence[tuple[Move, Met]]) -> Iterator[Met]:
    """What was missed; harmless where it is about moves that a purge would have dropped."""
    firsts: Mapping[str, int] = {}
    if missed:
        with contextlib.suppress(SnapstoreError):
            firsts = first_that_count(histories(store.engine.reflog()))
    for move, met in missed:
        problem = met.problem
        if move.gen < firsts.get(move.ref, 0):
            message = f"{problem.message}; a purge was cut off there: purge again"
            problem = problem._replace(harmless=True, message=message)
        yield Met(problem, met.error)


def heads(store: Store, unreadable: Report) -> Iterator[Move]:
    """Where refs of snapshots are and were: as they are now first, for a finding is named after the
    first line that it is met on."""
    now = list(_all_tips(store, unreadable))
    yield from (tip for tip in now if tip.new)
    for move in _moves(store, now, unreadable):
        if move.new and move.ref.startswith(refs.OF_SNAPSHOTS):
            yield move


def tips(store: Store, unreadable: Report) -> Iterator[Move]:
    """Where refs of snapshots are now."""
    return (tip for tip in _all_tips(store, unreadable) if tip.new)


def _all_tips(store: Store, unreadable: Report) -> Iterator[Move]:
    for prefix in refs.OF_SNAPSHOTS:
        try:
            yield from store.engine.tips(prefix)
        except _UNREADABLE as error:
            unreadable(error)


def _moves(store: Store, now: Iterable[Move], unreadable: Report) -> Iterator[Move]:
    """The moves that can be read. The reflog ends where it is damaged; what stands before that is
    found by its number."""
    try:
        yield from store.engine.reflog()
        return
    except _UNREADABLE as error:
        unreadable(error)
    for tip in now:
        for gen in range(tip.gen - 1, 0, -1):
            try:
                move = store.engine.move(tip.ref, gen)
            except _UNREADABLE as error:
                unreadable(error)
                continue
            if move is not None:
                yield move


def _unreadable(error: SnapstoreError) -> Met:
    problem = Problem("damaged_batch", *place(error), None, f"moves cannot be read: {error}")
    return Met(problem, error)


def _problem(move: Move, turn: int | None, object_id: bytes, error: SnapstoreError) -> Problem:
    kind = "missing" if isinstance(error, ObjectMissing) else "damaged"
    at = f"turn {turn} of " if turn else ""
    message = f"{at}{refs.described(move.ref)}: {error}"
    return Problem(kind, *place(error), object_id, message)


def place(error: SnapstoreError) -> tuple[str | None, int | None]:
    """Path and offset of what is damaged, as far as they are known."""
    return (error.path, error.offset) if isinstance(error, Corrupt) else (None, None)
