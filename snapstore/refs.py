"""What can be done with refs: every change of a name is a move, and every move can be undone.

Undo and redo are moves like any other, so they too are in the reflog and nothing is ever lost by
them. Each move says where an undo leads from it (``base``) and where a redo does (``redo``):

    an ordinary move       base: the move before it             redo: nothing
    an undo at move R      goes to R.base =: T; new = T.new     base: T.base     redo: R
    a redo at move U       goes to U.redo =: R; new = R.new     base: R.base     redo: R.redo

So undo walks back and redo forth any number of steps, and an ordinary move in between starts over
from where it stands. A purge has no base and counts as the birth of its ref: undo ends there.

A rename is two moves, for a commit moves one ref: the new name comes with ``from_ref`` and
``from_gen`` in its info, the old one goes with ``to_ref``. Undo and redo take both together,
whichever of the two names is given, as long as neither was used for something else since.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from snapstore.engine import AGAIN, Engine, Move, Update
from snapstore.errors import (
    Corrupt,
    NotFound,
    NothingToDo,
    Refused,
    SnapstoreError,
    UnsupportedFormat,
)

UNREADABLE = (Corrupt, UnsupportedFormat)
"""What reading damaged bytes raises: they may even look like another format."""

SESSIONS = "sessions/"
TAGS = "tags/"
CAPTURES = "captures/"
OF_SNAPSHOTS = (SESSIONS, TAGS, CAPTURES)
"""The refs that point at snapshots. Those of captures hold nothing but files, and are no turns."""
CURRENT = "state/current"
PURGE = "purge"
"""The op of a move that nothing goes back beyond: what was before it is gone for good."""
EXPIRED = "expired"
"""The op of a move of which a collection has left only what it tells of names and origins."""
ARRIVING = "state/arriving/"
"""What is being brought in by several commits is held by a ref of these until it is named."""
SOURCE = "source"
"""The key in the info of a move of an import: what the session was imported from."""

_OF_NAMES = ("from_ref", "from_gen", "to_ref")
"""What the info of a move says about names. A step that comes to stand there again repeats it."""


def live(engine: Engine, ref: str) -> Move | None:
    """The last move of a ref that exists now."""
    tip = engine.tip(ref)
    return tip if tip is not None and tip.new is not None else None


def create(
    engine: Engine, ref: str, head: bytes, op: str, time: int, info: Mapping[str, Any]
) -> Move:
    """Make a ref that does not exist now. Raises RefMoved when it does."""
    return _granted(engine.commit([], Update(ref, head, None, op, time, info)))


def refuse_namesake(engine: Engine, ref: str) -> None:
    """Raise Refused for a tag that a session of its name would hide, and for such a session."""
    for kind, other in ((SESSIONS, TAGS), (TAGS, SESSIONS)):
        name = ref.removeprefix(kind)
        if not ref.startswith(kind) or live(engine, other + name) is None:
            continue
        hint = "choose another name"
        if other == SESSIONS:
            raise Refused(f"{name} is a session, and would hide a tag of that name", hint=hint)
        hint += f", or remove the tag first: `snapstore tag -d {name}`"
        raise Refused(f"{name} is a tag, which a session of that name would hide", hint=hint)


def step_back(
    engine: Engine,
    ref: str,
    time: int,
    *,
    tip: Move | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Move:
    """Undo the last move of a ref, with further facts about it. Raises NothingToDo.

    tip: what the caller knows to be the last move; RefMoved if it is not any more.
    """
    tip = tip or engine.tip(ref)
    if tip is None or (tip.new is None and tip.base == 0):
        raise NothingToDo("there is nothing to undo", hint="`snapstore op log` lists every move")
    if tip.base == 0 and _begins_with_purge(engine, tip):
        gone = "what was before the last purge is gone"
        raise NothingToDo(gone, hint="nothing can bring it back")
    target = engine.move(ref, tip.base) if tip.base else None
    if tip.base and (target is None or target.op == EXPIRED):
        raise NothingToDo("what was before was collected", hint="nothing can bring it back")
    new_name = _new_name(engine, tip)
    if new_name is not None and new_name.info.get("from_ref") == ref:
        step_back(engine, new_name.ref, time, tip=new_name)
        return _granted(engine.tip(ref))
    update = Update(
        ref,
        target.new if target else None,
        tip.new,
        "undo",
        time,
        {"of": made_by(tip), "at": made_by(target), **_kept(target, "back"), **(facts or {})},
        at=tip.gen,
        base=target.base if target else 0,
        redo=tip.gen,
        born=target.born if target else None,
    )
    moved = _granted(engine.commit([], update))
    old = _old_name(engine, tip)
    if old is not None and old.new is None and old.info.get("to_ref") == ref:
        step_back(engine, old.ref, time)
    return moved


def _begins_with_purge(engine: Engine, tip: Move) -> bool:
    born = tip if tip.born == tip.gen else engine.move(tip.ref, tip.born)
    return tip.new is not None and born is not None and born.op == PURGE


def made_by(move: Move | None) -> str:
    """The op that made what a ref stands on: of an undo the one that it went back to."""
    if move is None:
        return ""
    op: str = move.info.get("at", "") if move.op == "undo" else move.info.get("of", move.op)
    return op


def _kept(target: Move | None, way: str) -> dict[str, Any]:
    """What a step repeats of the move that it goes to: names, and what the next step in the same
    way does to files (see worktree.moves)."""
    info = target.info if target is not None else {}
    return {key: info[key] for key in (*_OF_NAMES, way) if key in info}


def trees_of(move: Move) -> list[bytes]:
    """The file trees that a move remembers for undo and redo: nothing else may reach them."""
    faces = [move.info.get(key) for key in ("back", "forth", "files")]
    return [face["tree"] for face in faces if face]


def is_import(move: Move) -> bool:
    """Whether a move tells, as its source, what the session was imported from.

    A restore of files may hold the id of the turn that they came from under the same key.
    """
    return SOURCE in move.info and not isinstance(move.info[SOURCE], bytes)


def _old_name(engine: Engine, renamed: Move) -> Move | None:
    """The last move of the ref that this move took the name from; None when it took none.

    When that is anything but the other half of the rename, or its undo, something was done with
    the old name since, and it is left alone.
    """
    return engine.tip(renamed.info["from_ref"]) if "from_ref" in renamed.info else None


def _new_name(engine: Engine, gone: Move) -> Move | None:
    """The last move of the ref that this move gave the name to; None when it gave none."""
    return engine.tip(gone.info["to_ref"]) if "to_ref" in gone.info else None


def step_forth(
    engine: Engine,
    ref: str,
    time: int,
    *,
    tip: Move | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Move:
    """Redo what was undone last, with further facts about it; as step_back otherwise."""
    tip = tip or engine.tip(ref)
    target = engine.move(ref, tip.redo) if tip is not None and tip.redo else None
    if tip is None or target is None or target.op == EXPIRED:
        raise NothingToDo("there is nothing to redo", hint="a new save ends what can be redone")
    new_name = _new_name(engine, target)
    renamed = engine.move(new_name.ref, new_name.redo) if new_name and new_name.redo else None
    if renamed is not None and renamed.info.get("from_ref") == ref:
        step_forth(engine, renamed.ref, time)
        return _granted(engine.tip(ref))
    update = Update(
        ref,
        target.new,
        tip.new,
        "redo",
        time,
        {"of": made_by(target), **_kept(target, "forth"), **(facts or {})},
        at=tip.gen,
        base=target.base,
        redo=target.redo,
        born=target.born,
    )
    moved = _granted(engine.commit([], update))
    old = _old_name(engine, target)
    gone = engine.move(old.ref, old.redo) if old is not None and old.redo else None
    if gone is not None and gone.info.get("to_ref") == ref:
        step_forth(engine, gone.ref, time)
    return moved


def delete(engine: Engine, ref: str, time: int) -> Move:
    """End a ref. What it pointed at stays, and undo brings it back. Raises NotFound."""
    tip = live(engine, ref)
    if tip is None:
        raise NotFound(f"there is no {described(ref)}")
    return _granted(engine.commit([], Update(ref, None, tip.new, "delete", time)))


def rename(engine: Engine, old: str, new: str, time: int) -> Move:
    """Give a ref another name. Raises NotFound, and Refused when the new name is taken.

    Two moves, for a commit moves one ref: the new name first, so that a crash between them leaves
    both, never none.
    """
    tip = live(engine, old)
    if tip is None or tip.new is None:
        raise NotFound(f"there is no {described(old)}")
    if live(engine, new) is not None:
        raise Refused(f"there is a {described(new)} already", hint="choose another name")
    born = engine.move(old, tip.born)
    info = {"from_ref": old, "from_gen": tip.gen}
    if born is not None and "forked_from" in born.info:
        info["forked_from"] = born.info["forked_from"]
    moved = create(engine, new, tip.new, "rename", time, info)
    engine.commit([], Update(old, None, tip.new, "rename", time, {"to_ref": new}))
    return moved


def successor(engine: Engine, ref: str) -> str:
    """What a ref that is gone is called now, after a rename or the undoing of one; else itself."""
    tip = engine.tip(ref)
    if tip is None or tip.new is not None:
        return ref
    undone = engine.move(ref, tip.redo) if tip.redo else None
    other: str = tip.info.get("to_ref") or (undone.info.get("from_ref") if undone else "") or ref
    return other if live(engine, other) else ref


def before(engine: Engine, move: Move) -> Move | None:
    """The move of a ref before this one, of those that are left."""
    found = engine.move(move.ref, move.gen - 1)
    if found is None and move.gen > 1:
        earlier = (m for m in engine.reflog() if m.ref == move.ref and m.gen < move.gen)
        found = next(earlier, None)
    return found


def moves_before_damage(engine: Engine) -> Iterator[Move]:
    """The moves of all refs, newest first, up to one that cannot be read: for who only wants to
    know what happened lately, and must not fail over what happened long ago."""
    with contextlib.suppress(*UNREADABLE):
        yield from engine.reflog()


def moves_around_damage(engine: Engine, met: Callable[[SnapstoreError], None]) -> Iterator[Move]:
    """The moves of all refs that can be read, newest first; met is called with what hides others.

    The reflog ends where it is damaged. What stands before that is looked up by its number.
    """
    oldest: dict[str, int] = {}
    try:
        for move in engine.reflog():
            oldest[move.ref] = move.gen
            yield move
    except UNREADABLE as error:
        met(error)
        earlier = list(_moves_before(engine, oldest, met))
        yield from sorted(earlier, key=lambda move: move.time, reverse=True)


def _moves_before(
    engine: Engine, oldest: Mapping[str, int], met: Callable[[SnapstoreError], None]
) -> Iterator[Move]:
    try:
        tips = list(engine.tips())
    except UNREADABLE as error:
        met(error)
        return
    for tip in tips:
        for gen in range(oldest.get(tip.ref, tip.gen + 1) - 1, 0, -1):
            try:
                move = engine.move(tip.ref, gen)
            except UNREADABLE as error:
                met(error)
                continue
            if move is not None:
                yield move


def was_at(engine: Engine, ref: str, back: int) -> Move | None:
    """Where a ref was so many moves ago, through renames; None when it was nowhere."""
    move = engine.tip(ref)
    while move is not None and back > 0:
        back -= AGAIN not in move.info
        if move.op == "rename" and "from_ref" in move.info and AGAIN not in move.info:
            move = engine.move(move.info["from_ref"], move.info["from_gen"])
        else:
            move = engine.move(move.ref, move.gen - 1)
    return move


def described(ref: str) -> str:
    """A ref in words: ``session fix-login``."""
    for prefix, word in ((SESSIONS, "session"), (TAGS, "tag"), (CAPTURES, "captures of")):
        if ref.startswith(prefix):
            return f"{word} {ref.removeprefix(prefix)}"
    return f"ref {ref}"


def _granted(move: Move | None) -> Move:
    assert move is not None  # an engine that was given an update returns its move or raises
    return move
