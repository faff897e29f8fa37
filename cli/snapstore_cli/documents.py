"""The JSON shapes that several commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from snapstore import Session, Snapshot, Store, pairs, refs
from snapstore_cli.render.words import rfc3339

Names = Mapping[str, Sequence[str]]
"""By id of a snapshot: the sessions and tags that stand on it."""


def names(store: Store) -> Names:
    """Where every session and tag stands."""
    found: dict[str, list[str]] = {}
    # Asked of the refs alone: what they point at need not be read, nor be readable.
    for tip in store.engine.tips(refs.SESSIONS):
        if tip.new:
            found.setdefault(tip.new.hex(), []).append(tip.ref.removeprefix(refs.SESSIONS))
    for tag, snapshot_id in store.tags().items():
        found.setdefault(snapshot_id, []).append(tag)
    return found


def time(when: datetime | None) -> str | None:
    """A time as it stands in JSON."""
    return rfc3339(when) if when else None


def turn(snapshot: Snapshot, at: Names) -> dict[str, Any]:
    """A turn as log and diff list it."""
    return {
        "id": snapshot.id,
        "turn": snapshot.turn,
        "parent": snapshot.parent,
        "label": snapshot.label,
        "time": time(snapshot.time),
        "messages": snapshot.added(),
        "files": None,
        "refs": list(at.get(snapshot.id, ())),
    }


def pending(snapshot: Snapshot | None) -> list[dict[str, Any]]:
    """The tool calls of a turn that have no result yet."""
    if snapshot is None:
        return []
    return [
        {"id": call.id, "name": call.name, "index": call.index}
        for call in pairs.pending(snapshot.history)
    ]


def whole_turn(snapshot: Snapshot) -> dict[str, Any]:
    """A turn with all that it holds."""
    return {
        "id": snapshot.id,
        "turn": snapshot.turn,
        "parent": snapshot.parent,
        "label": snapshot.label,
        "time": time(snapshot.time),
        "messages": list(snapshot.history),
        "scratchpad": dict(snapshot.scratchpad),
        "files": None,
        "pending_tool_calls": pending(snapshot),
        "meta": dict(snapshot.meta),
    }


def moved(
    session: Session, before: Snapshot | None, after: Snapshot | None, *, dry_run: bool = False
) -> dict[str, Any]:
    """How rewind, undo and redo tell where HEAD went."""
    return {
        "session": session.name,
        "from": before.id if before else None,
        "to": after.id if after else None,
        "turn": after.turn if after else 0,
        "files": None,
        "dry_run": dry_run,
    }
