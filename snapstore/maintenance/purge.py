"""Taking a text out of a store for good: a key that was leaked, a name that had no business there.

    1. every turn that a session, a tag or the captures of a hook reach, or that the reflog says
       they reached, is written again without the text, and so is what their moves tell of imports
    2. the refs move to the new turns. Lines that only the reflog reached come first, one move each,
       so that NAME@{1} and so on still lead to them; the last move is where the ref stood. Each
       says ``purge``, when, and how much was changed, never what. Undo does not pass them. A
       session that was deleted is deleted again, and undo brings it back without the text
    3. the old objects and the moves that led to them are dropped from the store's files

Killed on the way it can be run again: what it finds is then what is left to do. A session that a
program holds open stands on turns that are gone; its next save gets RefMoved and keeps its state.

Signed thinking in which the text stood is changed like everything else. Its signature does not fit
any more, so a provider may refuse to go on with such a history.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snapstore import refs
from snapstore.chunks import pieces_of
from snapstore.engine import Discarding, Kind, Move, Update
from snapstore.errors import Corrupt, ObjectMissing, RefMoved, Refused, SnapstoreError
from snapstore.maintenance.astray import astray
from snapstore.maintenance.counting import (
    MORE,
    PURGED,
    begin_of_purge,
    first_that_count,
    histories,
)
from snapstore.maintenance.reach import Reach
from snapstore.maintenance.rewrite import Rewriter
from snapstore.maintenance.unwanted import Unwanted
from snapstore.model.layout import LAYOUT
from snapstore.objects import Stage

if TYPE_CHECKING:
    from snapstore.store import Store

_TRIES = 8


@dataclass(frozen=True, slots=True)
class Purged:
    """What a purge did, or would do."""

    sessions: tuple[str, ...]
    """The refs that lead to something that holds the text, as `session NAME`, `tag NAME`."""
    turns: int
    messages: int
    values: int
    """Values of scratchpads."""
    files: int
    signed_thinking: int
    """Messages in which signed thinking had to be changed."""
    elsewhere: tuple[str, ...]
    """Refs of other kinds that hold the text, which purge does not know how to change."""
    objects: int
    """Old objects that are dropped."""
    applied: bool


def purge(store: Store, text: str, *, apply: bool = False) -> Purged:
    """Replace a text in everything that the store holds, and drop what held it.

    Without ``apply`` nothing is written. Raises InvalidInput for a text that is too short, Refused
    when the engine can drop nothing, Corrupt and ObjectMissing when a turn cannot be read; then
    nothing was changed.
    """
    engine = store.engine
    if apply and not isinstance(engine, Discarding):
        raise Refused(
            "a store of this kind cannot drop what it once held",
            hint="pull it into a local store, purge there, and push that to a new place",
        )
    unwanted = Unwanted(text)
    with Stage(store.objects) as stage:
        if isinstance(engine, Discarding) and apply:
            touched, dropped, changed = _purge(store, engine, unwanted, stage)
        else:
            rewriter = Rewriter(store.objects, unwanted, stage)
            lines = histories(store.engine.reflog())
            touched = [plan.tip.ref for plan in _plans(store, rewriter, lines)]
            dropped, changed = len(set(rewriter.replaced())), rewriter.changed
    return Purged(
        sessions=tuple(map(refs.described, touched)),
        turns=changed["turns"],
        messages=changed["messages"],
        values=changed["values"],
        files=changed["files"],
        signed_thinking=changed["signed_thinking"],
        elsewhere=tuple(_elsewhere(store, unwanted)),
        objects=dropped,
        applied=apply,
    )


def _purge(
    store: Store, engine: Discarding, unwanted: Unwanted, stage: Stage
) -> tuple[list[str], int, Counter[str]]:
    """The refs that were moved, how many objects were dropped, and how much was changed.

    Whoever saves meanwhile may save the text again, or rely on what is about to be dropped. So it
    is begun anew until nothing was left to do and nobody has moved a ref since.
    """
    touched: dict[str, None] = {}
    rewriter, counted = Rewriter(store.objects, unwanted, stage), Counter[str]()
    for left in reversed(range(_TRIES)):
        tips = _gens(store)
        try:
            moves = list(store.engine.reflog())
            lines = histories(moves)
            plans = list(_plans(store, rewriter, lines))
            if not plans:
                live = _live(store, moves, lines)
                doomed = _doomed(store, rewriter, unwanted, live)
                dropped = engine.discard(doomed, first_that_count(lines), tips)
                return list(touched), dropped, counted | rewriter.changed
            touched |= {plan.tip.ref: None for plan in plans}
            _carry_out(store, plans, stage, counted | rewriter.changed)
        except RefMoved:
            pass
        except ObjectMissing:
            # A purge of another text may have taken it since the moves were looked at, or a
            # collection what was made for a ref before the ref was moved.
            if not left or _gens(store) == tips:
                raise
            stage.drop()
            counted |= rewriter.changed
            rewriter = Rewriter(store.objects, unwanted, stage)
    raise Refused(
        "sessions are being saved all the time, and what is saved meanwhile may hold the text",
        hint="purge again when it is quiet; what was done so far stays",
    )


def _gens(store: Store) -> dict[str, int]:
    """The number of the last move of each ref."""
    return {tip.ref: tip.gen for tip in store.engine.tips()}


# --- what is to be done to each ref -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Plan:
    """One ref that led to the text."""

    tip: Move
    """Its last move."""
    stands: Move
    """The move that says where it stands: the last but for those of a purge that was cut off."""
    heads: tuple[bytes, ...]
    """What it leads to from now on, one after the other; the last is where it stands."""
    info: Mapping[str, Any]


def _plans(store: Store, rewriter: Rewriter, lines: Mapping[str, list[Move]]) -> Iterator[_Plan]:
    for moves in lines.values():
        tip = stands = moves[-1]
        cut_off = tip.op == refs.PURGE and tip.info[PURGED][MORE]
        if cut_off:
            stands = moves[begin_of_purge(moves, len(moves) - 1) - 1]
        old = [move.new for move in moves if move.new is not None]
        if not old:
            continue
        new = [rewriter.turn(head) for head in old]
        info = _facts(moves, stands, rewriter)
        if cut_off or new != old or any(_told(move, rewriter) != move.info for move in moves):
            last = next(m.new for m in reversed(moves) if m.new and m.gen <= stands.gen)
            heads = _apart(store, new, rewriter.turn(last))
            yield _Plan(tip, stands, tuple(heads), info)


def _apart(store: Store, heads: list[bytes], last: bytes) -> list[bytes]:
    """The last turn and, in front of it, the ends of those lines of heads that it does not hold."""
    objects = store.objects.snapshots
    covered: set[bytes] = set()

    def cover(head: bytes) -> None:
        for turn, _ in objects.line(head):
            if turn in covered:
                break
            covered.add(turn)

    cover(last)
    ends: set[bytes] = set()
    for head in sorted(set(heads), key=lambda head: -objects.record(head).turn):
        if head not in covered:
            ends.add(head)
            cover(head)
    return [*(head for head in dict.fromkeys(heads) if head in ends), last]


def _told(move: Move, rewriter: Rewriter) -> dict[str, Any]:
    """What a move tells, without the text, and of what has become of what it refers to."""
    info = dict(rewriter.value(dict(move.info), keys=False))
    if LAYOUT in info:
        info[LAYOUT] = rewriter.layout(move.info[LAYOUT])
    if "forked_from" in info:
        info["forked_from"] = rewriter.turn(move.info["forked_from"])
    for face in ("back", "forth", "files"):
        if move.info.get(face):
            info[face] = {**info[face], "tree": rewriter.tree(move.info[face]["tree"])}
    return info


def _facts(moves: list[Move], stands: Move, rewriter: Rewriter) -> dict[str, Any]:
    """What the moves of a ref tell that must not be lost: its fork, and where it came from."""
    facts: dict[str, Any] = {}
    born = next((move for move in moves if move.gen == stands.born), None)
    for move in (born, *moves):
        told = _told(move, rewriter) if move is not None else {}
        if move is born and "forked_from" in told:
            facts["forked_from"] = told["forked_from"]
        if move is not None and refs.is_import(move):
            facts |= {key: told[key] for key in (refs.SOURCE, LAYOUT) if key in told}
    return facts


def _carry_out(store: Store, plans: list[_Plan], stage: Stage, changed: Mapping[str, int]) -> None:
    """Move the refs. Raises RefMoved when another writer moved one of them first."""
    record = {key: changed[key] for key in ("turns", "messages", "files")}
    record["at"] = store.clock()
    for plan in plans:
        is_gone = plan.stands.new is None
        head, gen = plan.tip.new, plan.tip.gen
        for n, new in enumerate(plan.heads, 1):
            more = is_gone or n < len(plan.heads)
            info = {**plan.info, PURGED: {**record, MORE: more}}
            time, ref = store.clock(), plan.tip.ref
            stage.commit(
                Update(ref, new, head, refs.PURGE, time, info, at=gen, base=0, born=gen + 1)
            )
            head, gen = new, gen + 1
        if is_gone:
            time, info = store.clock(), _of_names(plan.stands)
            stage.commit(Update(plan.tip.ref, None, head, plan.stands.op, time, info, at=gen))


def _of_names(tip: Move) -> dict[str, Any]:
    return {key: tip.info[key] for key in ("to_ref",) if key in tip.info}


# --- what is dropped ----------------------------------------------------------------------------


def _doomed(
    store: Store, rewriter: Rewriter, unwanted: Unwanted, live: Collection[bytes]
) -> set[bytes]:
    """Every object that held the text, or referred to one that did: nothing leads there now.

    Also those that nothing led to before: a save that was cut off, a purge that was.
    """
    with Stage(store.objects) as throw_away:
        trial = rewriter.trial(throw_away)
        for object_id, kind in store.engine.ids(b"", 0):
            if object_id not in live and kind == Kind.SNAPSHOT:
                # One whose parts are gone already is of no use to anybody, but no harm either.
                with contextlib.suppress(ObjectMissing, Corrupt):
                    trial.turn(object_id)
    doomed = set(trial.replaced())
    for object_id, kind in store.engine.ids(b"", 0):
        if object_id not in live and kind in (Kind.CONTENT, Kind.CHUNKED):
            with contextlib.suppress(ObjectMissing, Corrupt):
                if unwanted.is_in(store.objects.content(object_id)):
                    doomed.add(object_id)
    for object_id in list(doomed):
        doomed.update(_pieces(store, object_id))
    return (doomed | astray(store.engine, unwanted)).difference(live)


def _live(store: Store, moves: Iterable[Move], lines: Mapping[str, list[Move]]) -> set[bytes]:
    """What is reached from the refs as they are, and from the moves that count."""

    def give_up(object_id: bytes, error: SnapstoreError) -> None:
        raise error

    reach = Reach(store.objects, give_up)
    for counting in lines.values():
        for move in counting:
            if move.new is not None:
                for turn in reach.line(move.new):
                    reach.visit(turn)
            for tree in refs.trees_of(move):
                reach.tree(tree)
            if LAYOUT in move.info:
                reach.layout(move.info[LAYOUT])
    for tip in store.engine.tips():
        if tip.new is not None and tip.ref.startswith(refs.ARRIVING):
            for turn in reach.line(tip.new):
                reach.visit(turn)
    for move in moves:
        if move.new is not None and not move.ref.startswith(refs.OF_SNAPSHOTS):
            reach.seen.add(move.new)
    return reach.seen


def _pieces(store: Store, object_id: bytes) -> Iterator[bytes]:
    """The pieces of large content, at any depth."""
    todo = [object_id]
    while todo:
        with contextlib.suppress(ObjectMissing):
            o = store.engine.read(todo.pop())
            below = pieces_of(o.payload, o.id) if o.kind == Kind.CHUNKED else []
            yield from below
            todo += below


def _elsewhere(store: Store, unwanted: Unwanted) -> Iterator[str]:
    for tip in store.engine.tips():
        is_elsewhere = not tip.ref.startswith(refs.OF_SNAPSHOTS)
        if is_elsewhere and tip.new and unwanted.is_in(store.objects.content(tip.new)):
            yield tip.ref
