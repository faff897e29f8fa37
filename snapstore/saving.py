"""Committing a turn, and what happens when another writer was faster.

Three ends are possible when a session has moved since its writer last saw it. The other writer has
saved the very same turn: nothing more is to be done, so a save whose outcome was not known can
simply be repeated. Or the caller asked for a fork: the turn is kept in a new session beside the
one that was moved. Else RefMoved, and everything stays as it is in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from snapstore import refs
from snapstore.engine import Update
from snapstore.errors import InvalidInput, RefMoved, Refused, SnapstoreError
from snapstore.objects import Stage
from snapstore.snapshot import Snapshot
from snapstore.standing import Standing

if TYPE_CHECKING:
    from snapstore.store import Store

OnConflict = Literal["raise", "fork"]


class Content(NamedTuple):
    """What a turn holds, staged: the fields of a snapshot that are not given by its place."""

    history: bytes | None
    scratchpad: bytes | None
    files: bytes | None
    worktree: str
    partial: bool
    meta: bytes


def check_save(label: object, on_conflict: object) -> None:
    """Raise InvalidInput for arguments of a save that cannot be meant."""
    if on_conflict not in ("raise", "fork"):
        raise InvalidInput(f"on_conflict is 'raise' or 'fork', not {on_conflict!r}")
    if not isinstance(label, str | None):
        raise InvalidInput(f"a label is text, not {label!r}")


def commit_turn(
    store: Store,
    stage: Stage,
    name: str,
    standing: Standing,
    content: Content,
    label: str,
    on_conflict: OnConflict,
    completes: bool,
) -> tuple[str, Snapshot]:
    """Commit a turn on top of head; the session that holds it now, and its snapshot.

    With ``completes`` it takes head's place: the same number, the same parent, and undo takes back
    both. Raises RefMoved, with nothing committed.
    """
    head = standing.head
    parent = head.record.parent if head and completes else head.raw_id if head else None
    snapshot_id, record = store.objects.snapshots.create(
        parent,
        stage.put_snapshot,
        time=store.clock(),
        history=content.history,
        scratchpad=content.scratchpad,
        files=content.files,
        label=label,
        meta=content.meta,
        worktree=content.worktree,
        partial=content.partial,
    )
    saved = Snapshot(store.objects, snapshot_id, record)
    ref = refs.SESSIONS + name
    base = _before(store, ref, head) if head and completes else None
    expect = head.raw_id if head else None
    try:
        update = Update(ref, snapshot_id, expect, "save", record.time, base=base, fresh=True)
        standing.try_to(saved)
        stage.commit(update)
    except RefMoved as moved:
        standing.attempt = None
        twin = _twin(store, saved, moved.actual)
        if twin is not None:
            return name, twin
        if on_conflict == "raise" or (head and not store.engine.contains(head.raw_id)):
            raise no_way_on(name, moved.expected, moved.actual, on_conflict) from None
        return _commit_beside(store, stage, name, saved), saved
    return name, saved


def no_way_on(
    name: str, expected: bytes | None, actual: bytes | None, on_conflict: OnConflict
) -> SnapstoreError:
    """The error for a session that has moved, where there can be no fork of what it stood on."""
    if on_conflict == "raise":
        return RefMoved(name, expected, actual)
    return Refused(
        f"what {name} went on from here is gone: it was purged",
        hint="keep what is new, reload() the session and append it again",
    )


def _before(store: Store, ref: str, turn: Snapshot) -> int | None:
    """The move that undo leads to from the one that brought HEAD to this turn."""
    tip = store.engine.tip(ref)
    return tip.base if tip is not None and tip.new == turn.raw_id else None


def _twin(store: Store, saved: Snapshot, actual: bytes | None) -> Snapshot | None:
    """The turn that HEAD has moved to, if but for its time it is the one to be saved."""
    if actual is None:
        return None
    found = store.snapshot(actual)
    return found if found.record._replace(time=saved.record.time) == saved.record else None


def _commit_beside(store: Store, stage: Stage, name: str, saved: Snapshot) -> str:
    """Commit the turn to a new session beside the one that was moved; its name."""
    time, parent = saved.record.time, saved.record.parent
    info = {"forked_from": parent} if parent else {}
    for free in store.free_names(name):
        try:
            stage.commit(Update(refs.SESSIONS + free, saved.raw_id, None, "fork", time, info))
        except RefMoved:  # taken this very moment: the next name may be free
            continue
        return free
    raise AssertionError("names never run out")
