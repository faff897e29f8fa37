"""Revisions: how a turn is named.

    full id, or a unique prefix of at least 4 hex digits
    NAME         the HEAD of a session, or a tag
    NAME@12      turn 12 of its line
    NAME~3       three turns before it
    NAME@{2}     where HEAD was two moves ago
    @            the current session: @, @~1, @@12, @@{2}
    REV:path     a file at that turn

``@12`` and ``~3`` can follow each other and ``@{2}``. A session name wins over a tag, and a tag
over a hex prefix.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapstore import arguments, refs
from snapstore.engine import Kind, Move
from snapstore.errors import Ambiguous, InvalidInput, NotFound
from snapstore.ids import SIZE, is_hex_prefix
from snapstore.snapshot import Snapshot

if TYPE_CHECKING:
    from snapstore.store import Store

_BASE = re.compile(r"@(?![0-9{])|[^@~:]+")
_STEP = re.compile(r"@(?P<turn>[0-9]{1,18})|~(?P<back>[0-9]{0,18})|@\{(?P<moves>[0-9]{1,18})\}")
_CANDIDATES = 10


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision, found."""

    snapshot: Snapshot
    session: str | None
    """The session that was named; None when an id or a tag was."""
    path: str | None
    """What followed the colon; None without one."""


def resolve(store: Store, text: str, current: str | None = None) -> Revision:
    """The turn that a text names; ``current`` is the session that @ stands for.

    Raises InvalidInput for what is no revision, NotFound and Ambiguous.
    """
    name, colon, path = arguments.text(text, "a revision").partition(":")
    base, steps = _split(name, text)
    session = _session_of(store, base, current)
    snapshot: Snapshot | None = None
    for step in steps:
        if step["moves"] is not None:
            snapshot = _moves_ago(store, session, int(step["moves"]), base)
            continue
        snapshot = snapshot or _head(store, base, session)
        turn = int(step["turn"]) if step["turn"] else snapshot.turn - int(step["back"] or 1)
        snapshot = _at_turn(store, snapshot, turn, text)
    snapshot = snapshot or _head(store, base, session)
    return Revision(snapshot, session, path if colon else None)


def _split(name: str, text: str) -> tuple[str, list[re.Match[str]]]:
    base = _BASE.match(name)
    steps: list[re.Match[str]] = []
    at = base.end() if base else 0
    while base and at < len(name):
        step = _STEP.match(name, at)
        if step is None or (steps and step["moves"]):
            base = None
            break
        steps.append(step)
        at = step.end()
    if base is None:
        hint = "write NAME, NAME@12, NAME~3, NAME@{2}, @, or at least 4 digits of an id"
        if text[:2] in ("@{", *(f"@{digit}" for digit in range(10))):
            hint = f"of the current session that is @{text}; else {hint}"
        raise InvalidInput(f"{text!r} is no revision", hint=hint)
    # No name is of another form, and to who typed it both look the same.
    return unicodedata.normalize("NFC", base.group()), steps


def _session_of(store: Store, base: str, current: str | None) -> str | None:
    if base == "@":
        if current is None:
            raise NotFound(
                "there is no current session", hint="name one, or `snapstore switch` to it"
            )
        return current
    tip = store.engine.tip(refs.SESSIONS + base)
    return base if tip is not None else None


def _head(store: Store, base: str, session: str | None) -> Snapshot:
    for ref in (refs.SESSIONS + session if session else "", refs.TAGS + base):
        tip = refs.live(store.engine, ref) if ref else None
        if tip is not None and tip.new is not None:
            return store.snapshot(tip.new)
    if is_hex_prefix(base):
        return _by_prefix(store, base)
    raise unknown(store, session or base)


def _by_prefix(store: Store, digits: str) -> Snapshot:
    prefix = bytes.fromhex(digits.ljust(2 * SIZE, "0"))
    found = [i for i, kind in store.engine.ids(prefix, len(digits)) if kind == Kind.SNAPSHOT]
    if len(found) > 1:
        listed = [_described(store, i) for i in found[:_CANDIDATES]]
        raise Ambiguous(
            f"{digits} fits {len(found)} snapshots: " + "; ".join(listed),
            [i.hex() for i in found],
        )
    if not found:
        raise unknown(store, digits)
    return store.snapshot(found[0])


def _described(store: Store, snapshot_id: bytes) -> str:
    snapshot = store.snapshot(snapshot_id)
    return f"{snapshot.id[:12]} turn {snapshot.turn} {snapshot.label}".rstrip()


def _moves_ago(store: Store, session: str | None, back: int, base: str) -> Snapshot:
    if session is None:
        raise NotFound(
            f"{base}@{{{back}}}: there is no session {base}", hint="only a session makes moves"
        )
    move = refs.was_at(store.engine, refs.SESSIONS + session, back)
    if move is None or move.new is None:
        raise NotFound(
            f"{session} was nowhere {back} moves ago", hint="`snapstore op log` lists every move"
        )
    return store.snapshot(move.new)


def _at_turn(store: Store, head: Snapshot, turn: int, text: str) -> Snapshot:
    if not 1 <= turn <= head.turn:
        missing = f"there is no turn {turn}" if turn >= 0 else "that is before the first turn"
        raise NotFound(
            f"{text}: {missing}; the line has turns 1 to {head.turn}",
            hint="turns that were rewound away are reached by id, by NAME@{N}, or by undo",
        )
    return store.snapshot(store.objects.snapshots.at_turn(head.raw_id, turn))


def unknown(store: Store, name: str) -> NotFound:
    """The error for a name that is nothing, with the names that are near."""
    tip = store.engine.tip(refs.SESSIONS + name)
    if tip is not None:
        return _gone(tip, name)
    names = [m.ref.removeprefix(refs.SESSIONS) for m in store.engine.tips(refs.SESSIONS) if m.new]
    begun = [known for known in names if known.startswith(name)]
    near = begun if 1 <= len(begun) <= 3 else difflib.get_close_matches(name, names, n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`snapstore sessions` lists them"
    return NotFound(f"there is no session, tag or snapshot {name!r}", hint=hint)


def _gone(last: Move, name: str) -> NotFound:
    """The error for a session that was, by the last move of its ref."""
    if "to_ref" in last.info:
        to = str(last.info["to_ref"]).removeprefix(refs.SESSIONS)
        return NotFound(f"session {name} was renamed to {to}", hint=f"use {to}")
    if last.op == "undo":
        hint = f"`snapstore redo -s {name}` brings it back"
        return NotFound(f"the beginning of session {name} was undone", hint=hint)
    hint = f"`snapstore undo -s {name}` brings it back"
    return NotFound(f"session {name} was deleted", hint=hint)
