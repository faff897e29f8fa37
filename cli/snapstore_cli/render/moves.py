"""Moves of refs, for people."""

from __future__ import annotations

from dataclasses import dataclass

from snapstore import refs
from snapstore.engine import Move
from snapstore.times import moment
from snapstore_cli.render import words
from snapstore_cli.render.columns import Cell
from snapstore_cli.render.style import Look

_STATE = {refs.CURRENT: "current session"}


def subject(ref: str) -> str:
    """A ref as the user knows it: a session by its name, ``tag v1``, ``current session``."""
    if ref.startswith(refs.SESSIONS):
        return ref.removeprefix(refs.SESSIONS)
    return _STATE.get(ref) or refs.described(ref)


def sentence(move: Move, look: Look, used: int) -> str:
    """A move in a few words, to stand behind so many columns on a line: ``save of fix-login, 3
    minutes ago``."""
    what, name, when = operation(move), subject(move.ref), look.time(moment(move.time))
    name = look.cut_middle(name, used + len(f"{what} of , {when}"))
    return f"{what} of {look.style('name', name)}, {look.style('dim', when)}"


def operation(move: Move) -> str:
    """What was done; of an undo or a redo, to what."""
    of = move.info.get("of")
    return f"{move.op} {of}" if isinstance(of, str) else move.op


@dataclass(frozen=True, slots=True)
class Step:
    """A move with both its ends: ids, or names for the current session; None for nothing."""

    move: Move
    before: str | None
    after: str | None


def fields(step: Step, look: Look) -> list[Cell]:
    """A move as the fields of a line: time, ref, what was done, from where, to where.

    On a terminal without from where, which the ref's line below tells.
    """
    move = step.move
    known = move.ref in _STATE
    ends = [end if end is None or known else words.short(end) for end in (step.before, step.after)]
    before, after = (end or "-" for end in ends)
    cells: list[Cell] = [
        ("dim", look.time(moment(move.time))),
        ("name", subject(move.ref)),
        ("heading", operation(move)),
    ]
    return [*cells, ("id", after)] if look.terminal else [*cells, ("id", before), ("id", after)]
