"""Bringing sessions and tags from one store into another, whatever the two are kept in.

Only what is missing goes over, objects first, and the ref of a session last. For each session or
tag the two stores' heads decide:

==========================================  =====================================================
there is none of this name                  it is made
both are the same, or ours goes on from     nothing
theirs
theirs goes on from ours                    ours moves to theirs
anything else: both went on                 ours stays, theirs is kept as NAME+1 (or +2, ...); one
                                            that was kept so before is moved, not doubled, and
                                            one that is ours, come back as theirs, is left
==========================================  =====================================================

What a session was forked from, and what it was imported from, comes with it. Deleted sessions, undo
and the captures of hooks do not: they belong to where they were made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile
from typing import Any

from snapstore import refs
from snapstore.engine import Kind, Move, Update
from snapstore.errors import Corrupt, NotFound, ObjectMissing, RefMoved
from snapstore.model.layout import LAYOUT
from snapstore.model.wire import is_link
from snapstore.names import numbered, taken_beside, valid_name
from snapstore.objects import Objects
from snapstore.refs import SOURCE
from snapstore.store import Store
from snapstore.transfer.arrivals import Arrivals
from snapstore.transfer.closure import Closure, Link, Type
from snapstore.transfer.origins import last_import

FORKED_FROM = "forked_from"
FROM = "from"
"""In the info of a move by which something arrived: the other store, in the caller's words."""

_KINDS = (refs.SESSIONS, refs.TAGS)
_TRIES = 8


class Outcome(Enum):
    """What became of a session or tag on arrival."""

    NEW = "new"
    MOVED = "moved"
    SAME = "same"
    AHEAD = "ahead"
    """Ours goes on from theirs."""
    BESIDE = "beside"
    """It is kept under another name, for both went on."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What became of one session or tag."""

    kind: str
    """``session`` or ``tag``."""
    source: str
    """What it is called where it came from."""
    name: str
    """What it is called here."""
    head: str
    turn: int
    outcome: Outcome
    objects: int
    bytes: int
    """What had to be brought, uncompressed."""


def carry(
    source: Store,
    target: Store,
    names: Sequence[str] = (),
    *,
    op: str = "pull",
    described: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> list[Carried]:
    """Bring sessions and tags of these names, or all, from source into target.

    It may be cut off at any point: what had come stays, and the next time goes on from there. Each
    object is hashed again on arrival. Op and ``described`` stand in target's reflog. Progress is
    called with (done, total) in sessions and tags.

    Raises NotFound for a name that source has not, Corrupt or ObjectMissing when what it has is not
    whole; what came before that stays.
    """
    tips = list(chosen(source, names))
    done: list[Carried] = []
    for n, tip in enumerate(tips):
        if progress is not None:
            progress(n, len(tips))
        done.append(_Carrying(source, target, tip, op, described).run())
    return done


def chosen(store: Store, names: Sequence[str]) -> Iterator[Move]:
    """The last moves of the live sessions and tags of these names; of all when there are none.

    Raises NotFound.
    """
    if not names:
        yield from (tip for kind in _KINDS for tip in store.engine.tips(kind) if tip.new)
        return
    for name in names:
        found = [tip for kind in _KINDS if (tip := refs.live(store.engine, kind + name))]
        if not found:
            raise NotFound(f"the store to bring it from has no session or tag {name}")
        yield from found


def facts_of(store: Store, tip: Move) -> dict[str, Any]:
    """What the moves of a ref tell that goes with it: its fork, and the import it came by.

    Raises Corrupt for what is not of the form it must have: the store may be anybody's.
    """
    facts: dict[str, Any] = {}
    born = tip if tip.born == tip.gen else store.engine.move(tip.ref, tip.born)
    if born is not None and FORKED_FROM in born.info:
        facts[FORKED_FROM] = born.info[FORKED_FROM]
    imported = last_import(store.engine, tip)
    if imported is not None:
        facts |= {key: imported.info[key] for key in (SOURCE, LAYOUT) if key in imported.info}
    ids = [facts[key] for key in (FORKED_FROM, LAYOUT) if key in facts]
    if not all(map(is_link, ids)) or not isinstance(facts.get(SOURCE, {}), Mapping):
        raise Corrupt(f"what the moves of {tip.ref} tell is not of the form it must have")
    return facts


def links_of(head: bytes, facts: Mapping[str, Any]) -> Iterator[Link]:
    """All that a ref at this head, with these facts, leads to."""
    yield Link(Type.SNAPSHOT, head)
    if FORKED_FROM in facts:
        yield Link(Type.SNAPSHOT, facts[FORKED_FROM])
    if LAYOUT in facts:
        yield Link(Type.LAYOUT, facts[LAYOUT])


class _Carrying:
    """One session or tag on its way."""

    def __init__(self, source: Store, target: Store, tip: Move, op: str, described: str) -> None:
        assert tip.new is not None
        self._source, self._target = source, target
        self._head: bytes = tip.new
        self._kind = next(filter(tip.ref.startswith, _KINDS))
        self._name = tip.ref.removeprefix(self._kind)
        valid_name(self._name)
        self._op = op
        self._facts = facts_of(source, tip)
        self._info = {**self._facts, FROM: described} if described else self._facts
        self._arriving = refs.ARRIVING + tip.ref
        self._arrivals = Arrivals(target.engine)
        self._relied_on: dict[bytes, None] = {}

    def run(self) -> Carried:
        for _ in range(_TRIES):
            name, tip, outcome = self._place()
            if outcome not in (Outcome.SAME, Outcome.AHEAD):
                try:
                    self._bring(name, tip)
                except RefMoved:  # somebody saved there meanwhile: look again where it belongs
                    continue
            return self._told(name, outcome)
        raise RefMoved(self._name, None, None)

    def _told(self, name: str, outcome: Outcome) -> Carried:
        arrived = self._arrivals
        return Carried(
            kind="session" if self._kind == refs.SESSIONS else "tag",
            source=self._name,
            name=name,
            head=self._head.hex(),
            turn=self._source.objects.snapshots.record(self._head).turn,
            outcome=outcome,
            objects=arrived.objects,
            bytes=arrived.bytes,
        )

    # --- where it belongs -------------------------------------------------------------------------

    def _place(self) -> tuple[str, Move | None, Outcome]:
        """The name to arrive under, the last move of that, and what then becomes of it."""
        tip = refs.live(self._target.engine, self._kind + self._name)
        outcome = self._against(tip)
        if outcome is Outcome.NEW and self._would_be_hidden(self._name):
            outcome = Outcome.BESIDE
        if outcome is not Outcome.BESIDE:
            return self._name, tip, outcome
        for name in numbered(self._name):
            beside = refs.live(self._target.engine, self._kind + name)
            if beside is None and self._target.engine.tip(self._kind + name) is not None:
                continue  # one that was deleted: undo may bring it back
            if beside is None and self._would_be_hidden(name):
                continue
            outcome = self._against(beside)
            if outcome is Outcome.NEW:
                return self._come_back() or (name, None, Outcome.BESIDE)
            if outcome is not Outcome.BESIDE:
                return name, beside, outcome
        raise AssertionError("names do not end")

    def _come_back(self) -> tuple[str, Move, Outcome] | None:
        """Where the target has all of it already, when it is what another store has kept beside its
        own: each would else keep what it sent itself once more, with every round."""
        for name in taken_beside(self._name):
            for known in (name, *takewhile(self._is_live, numbered(name))):
                tip = refs.live(self._target.engine, self._kind + known)
                outcome = self._against(tip)
                if tip is not None and outcome in (Outcome.SAME, Outcome.AHEAD):
                    return known, tip, outcome
        return None

    def _is_live(self, name: str) -> bool:
        return refs.live(self._target.engine, self._kind + name) is not None

    def _would_be_hidden(self, name: str) -> bool:
        """Whether it is a tag, and the target has a session of that name."""
        if self._kind != refs.TAGS:
            return False
        return refs.live(self._target.engine, refs.SESSIONS + name) is not None

    def _against(self, tip: Move | None) -> Outcome:
        if tip is None or tip.new is None:
            return Outcome.NEW
        if tip.new == self._head:
            return Outcome.SAME
        if self._kind == refs.TAGS:
            return Outcome.BESIDE
        if _goes_on_from(self._target.objects, tip.new, self._source.objects, self._head):
            return Outcome.AHEAD
        if _goes_on_from(self._source.objects, self._head, self._target.objects, tip.new):
            return Outcome.MOVED
        return Outcome.BESIDE

    # --- bringing it ------------------------------------------------------------------------------

    def _bring(self, name: str, tip: Move | None) -> None:
        closure = Closure(self._source.objects, self._is_there)
        for link in links_of(self._head, self._facts):
            for o in closure.of(link):
                self._arrivals.take(o)
                self._relied_on[o.id] = None
                if o.kind == Kind.SNAPSHOT and self._arrivals.are_many:
                    self._hold(o.id)
        ref = self._kind + name
        expect = tip.new if tip is not None else None
        update = Update(ref, self._head, expect, self._op, self._target.clock(), self._info)
        self._arrivals.settle(update)
        self._mend()
        self._let_go()

    def _is_there(self, object_id: bytes) -> bool:
        found = self._target.engine.contains(object_id)
        if found:
            self._relied_on[object_id] = None
        return found

    def _hold(self, turn: bytes) -> None:
        """Commit what has come up to a turn, held by a ref of its own: until the session has come
        as a whole nothing else does."""
        tip = refs.live(self._target.engine, self._arriving)
        expect = tip.new if tip is not None else None
        # When another transfer of this session moved it meanwhile, what waits goes with the next.
        with contextlib.suppress(RefMoved):
            update = Update(self._arriving, turn, expect, "arriving", self._target.clock())
            self._arrivals.settle(update)

    def _let_go(self) -> None:
        tip = refs.live(self._target.engine, self._arriving)
        if tip is not None:
            with contextlib.suppress(RefMoved):
                last = Update(self._arriving, None, tip.new, "arrived", self._target.clock())
                self._target.engine.commit([], last)

    def _mend(self) -> None:
        """Bring again what a collection of garbage took before the ref stood that now holds it."""
        there = self._target.engine.contains
        for object_id in self._relied_on:
            if not there(object_id):
                self._arrivals.take(self._source.engine.read(object_id))
        self._arrivals.settle()


def _goes_on_from(objects: Objects, head: bytes, others: Objects, old: bytes) -> bool:
    """Whether the line that ends at head holds a turn that another store has. O(log n) reads."""
    try:
        turn = others.snapshots.record(old).turn
        if turn > objects.snapshots.record(head).turn:
            return False
        return objects.snapshots.at_turn(head, turn) == old
    except (ObjectMissing, Corrupt):
        return False
