"""Repair: going on with what is whole after data was damaged. Nothing is deleted.

    1. the engine writes anew what still verifies, and sets the damaged files aside (see salvage)
    2. a ref that leads to something that is not whole any more is moved: to the newest turn of its
       line, all of which is whole, else of where it was before. It says ``repair`` in the reflog
    3. older moves that lead to what is not whole stay as a record that leads nowhere

Before that, files that a restore was moving when it was interrupted are rescued where its journal
is damaged (see stranded).

Turns that are not whole stay in the store until they are collected, and for good in the files that
were set aside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from snapstore import refs
from snapstore.engine import Move, Obj, Problem, Update
from snapstore.errors import Refused, SnapstoreError
from snapstore.maintenance.reach import Reach, Turn
from snapstore.maintenance.stranded import Stranded, rescue, stranded
from snapstore.model.layout import LAYOUT

if TYPE_CHECKING:
    from pathlib import Path

    from snapstore.engines.log.selection import Dropped, Selection
    from snapstore.store import Store

OP = "repair"
"""What a repair is called in the reflog."""
_FACES = ("back", "forth", "files")


@runtime_checkable
class Salvaging(Protocol):
    """An engine that can go on with what still verifies."""

    def damage(self) -> list[Problem]:
        """The parts of its files that do not verify."""

    def whole_ids(self) -> Iterator[tuple[bytes, int]]:
        """(id, kind) of every object that still verifies; some may be named twice."""

    def salvage(self, now: int) -> bool:
        """Write anew what still verifies and set the rest aside; whether anything had to be."""

    def rewrite(self, selection: Selection, *, now: int, grace: int) -> Dropped:
        """See ``maintenance.gc.Rewriting``."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A ref that led to something that is not whole."""

    ref: str
    old: bytes
    new: bytes | None
    """None: nothing that it ever led to is whole; it is gone."""
    turn: int
    """Of the new place; 0 for none."""

    def __str__(self) -> str:
        there = f"to turn {self.turn}, its newest whole one" if self.new else "away: none is whole"
        return f"{refs.described(self.ref)} is moved {there}"


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did, or would do as far as it can be told."""

    damaged: tuple[Problem, ...]
    moved: tuple[Moved, ...]
    applied: bool
    stranded: tuple[Stranded, ...] = ()
    """Restores of directories that nobody can finish, and where their files are by now."""


def repair(store: Store, *, apply: bool = False, places: Iterable[Path] = ()) -> Repaired:
    """Go on with what is whole. Raises Refused for an engine that has no files to repair.

    Without ``apply`` nothing is written, and what lies behind a damaged part counts as not there.
    For places see ``maintenance.stranded``.
    """
    files = stranded(store, places)
    if apply:
        files = [rescue(store, one) for one in files]
    engine = store.engine
    if not isinstance(engine, Salvaging):
        if files:
            return Repaired((), (), apply, tuple(files))
        raise Refused(
            "a store of this kind cannot be repaired in place",
            hint="pull what can be read of it into another store",
        )
    damaged = tuple(engine.damage())
    if apply:
        engine.salvage(store.clock())
    whole = Wholeness(store)
    moved = tuple(_moved(store, whole))
    if apply:
        for one in moved:
            info = {"repaired": one.old}
            engine_moves = Update(one.ref, one.new, one.old, OP, store.clock(), info)
            store.engine.commit([], engine_moves)
        now = store.clock()
        engine.rewrite(whole, now=now, grace=now)  # what lies in trash/ stays there, of any age
    return Repaired(damaged, moved, apply, tuple(files))


class Wholeness:
    """Which turns are whole, all that they hold and all before them. Also says what a rewriting
    asks: everything stays, and moves that lead to what is not whole as a record only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts: set[bytes] = set()
        self._whole: dict[bytes, int] = {}
        self._broken: set[bytes] = set()

    def newest(self, head: bytes) -> bytes | None:
        """The newest turn of a line from which on backwards all is whole; None for none."""
        line: list[Turn] = []
        here: bytes | None = head
        while here is not None and here not in self._whole:
            try:
                record = self._store.objects.snapshots.record(here)
            except SnapstoreError:
                self._broken.update(turn.id for turn in line)
                return None
            line.append(Turn(here, record))
            here = record.parent
        last = here
        for turn in reversed(line):
            if turn.id in self._broken or not self._visit(turn):
                self._broken.add(turn.id)
                return last
            self._whole[turn.id] = turn.record.turn
            last = turn.id
        return last

    def _visit(self, turn: Turn) -> bool:
        with_it = self._reach()
        with_it.visit(turn)
        return self._took(with_it)

    def _reach(self) -> Reach:
        self._met: list[bytes] = []
        reach = Reach(self._store.objects, lambda object_id, error: self._met.append(object_id))
        reach.seen = _Beyond(self._parts)
        return reach

    def _took(self, reach: Reach) -> bool:
        if self._met:
            return False
        self._parts |= reach.seen
        return True

    def turn(self, snapshot_id: bytes) -> int:
        """The number of a whole turn."""
        return self._whole[snapshot_id]

    def leads_somewhere(self, move: Move) -> bool:
        """Whether what a move points at is whole."""
        if move.new is None:
            return True
        if move.ref.startswith((*refs.OF_SNAPSHOTS, refs.ARRIVING)):
            return self.newest(move.new) == move.new
        reach = self._reach()
        reach.content(move.new)
        return self._took(reach)

    # --- what a rewriting asks --------------------------------------------------------------------

    def begin(self) -> None:
        """Everything stays."""

    def meet(self, objects: Sequence[Obj], moves: Sequence[Move]) -> Collection[bytes]:
        """Everything stays, so nothing stays in addition."""
        return ()

    def keeps(self, object_id: bytes) -> bool:
        """Everything stays."""
        return True

    def becomes(self, move: Move) -> Move | None:
        """The move, without what it leads to that is not whole."""
        gone = [key for key in _FACES if move.info.get(key) and not self._has_tree(move, key)]
        if LAYOUT in move.info and not self._has_layout(move.info[LAYOUT]):
            gone.append(LAYOUT)
        if gone:
            kept = {key: value for key, value in move.info.items() if key not in gone}
            move = move._replace(info=kept)
        if self.leads_somewhere(move):
            return move
        return move._replace(new=None, op=refs.EXPIRED, base=0, redo=0)

    def _has_tree(self, move: Move, key: str) -> bool:
        reach = self._reach()
        reach.tree(move.info[key]["tree"])
        return self._took(reach)

    def _has_layout(self, layout: bytes) -> bool:
        reach = self._reach()
        reach.layout(layout)
        return self._took(reach)

    def confirm(self, tips: Sequence[Move]) -> None:
        """Nothing that happens meanwhile makes the answers wrong."""


class _Beyond(set[bytes]):
    """What is met for the first time; what was found whole before is not looked at again."""

    def __init__(self, before: set[bytes]) -> None:
        super().__init__()
        self._before = before

    def __contains__(self, item: object) -> bool:
        return item in self._before or super().__contains__(item)


def _moved(store: Store, whole: Wholeness) -> Iterator[Moved]:
    broken = [t for t in store.engine.tips() if t.new and not whole.leads_somewhere(t)]
    if not broken:
        return
    before: dict[str, list[bytes]] = {tip.ref: [] for tip in broken}
    for move in refs.moves_around_damage(store.engine, lambda error: None):
        if move.ref in before and move.new is not None:
            before[move.ref].append(move.new)
    for tip in broken:
        assert tip.new is not None
        new = None
        if tip.ref.startswith((*refs.OF_SNAPSHOTS, refs.ARRIVING)):
            found = map(whole.newest, [tip.new, *before[tip.ref]])
            new = next((snapshot for snapshot in found if snapshot), None)
        yield Moved(tip.ref, tip.new, new, whole.turn(new) if new else 0)
