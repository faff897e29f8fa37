"""The JSON shapes that several commands share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from snapstore import Session, Snapshot, Store, pairs, refs
from snapstore_cli.render.words import rfc3339

if TYPE_CHECKING:
    from snapstore.worktree.files import FileEntry
    from snapstore.worktree.restore import Restored
    from snapstore.worktree.treediff import FilesDiff

Names = Mapping[str, Sequence[str]]
"""By id of a snapshot: the sessions and tags that stand on it."""


def names(store: Store) -> Names:
    """Where every session and tag stands. A tag that a session of its name hides is ``tag NAME``:
    the name alone would lead elsewhere."""
    found: dict[str, list[str]] = {}
    sessions: set[str] = set()
    # Asked of the refs alone: what they point at need not be read, nor be readable.
    for tip in store.engine.tips(refs.SESSIONS):
        if tip.new:
            sessions.add(name := tip.ref.removeprefix(refs.SESSIONS))
            found.setdefault(tip.new.hex(), []).append(name)
    for tag, snapshot_id in store.tags().items():
        found.setdefault(snapshot_id, []).append(f"tag {tag}" if tag in sessions else tag)
    return found


def time(when: datetime | None) -> str | None:
    """A time as it stands in JSON."""
    return rfc3339(when) if when else None


def turn(snapshot: Snapshot, at: Names) -> dict[str, Any]:
    """A turn as log and diff list it."""
    files = snapshot.files_diff()
    return {
        "id": snapshot.id,
        "turn": snapshot.turn,
        "parent": snapshot.parent,
        "label": snapshot.label,
        "time": time(snapshot.time),
        "messages": snapshot.added(),
        "files": None if files is None else len(files),
        "refs": list(at.get(snapshot.id, ())),
    }


def pending(snapshot: Snapshot | None) -> list[dict[str, Any]]:
    """The tool calls of a turn that have no result yet."""
    return _pending(snapshot.history) if snapshot is not None else []


def _pending(messages: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "name": call.name, "index": call.index} for call in pairs.pending(messages)
    ]


def whole_turn(snapshot: Snapshot) -> dict[str, Any]:
    """A turn with all that it holds."""
    messages = list(snapshot.history)
    return {
        "id": snapshot.id,
        "turn": snapshot.turn,
        "parent": snapshot.parent,
        "label": snapshot.label,
        "time": time(snapshot.time),
        "messages": messages,
        "scratchpad": dict(snapshot.scratchpad),
        "files": files(snapshot),
        "pending_tool_calls": _pending(messages),
        "meta": dict(snapshot.meta),
    }


def files(snapshot: Snapshot) -> dict[str, Any] | None:
    """The files of a turn by path; None when it holds none."""
    held = snapshot.files
    return None if held is None else {path: file(entry) for path, entry in held.entries()}


def file(entry: FileEntry) -> dict[str, Any]:
    """One path of a captured directory."""
    facts: dict[str, Any] = {"kind": entry.kind, "mode": entry.mode}
    facts |= {"size": entry.size, "id": entry.id, "mtime": time(entry.mtime)}
    return facts if entry.target is None else {**facts, "target": entry.target}


def files_diff(found: FilesDiff) -> dict[str, Any]:
    """What differs between the files of two sides."""
    return {
        "added": {path: file(entry) for path, entry in found.added.items()},
        "removed": {path: file(entry) for path, entry in found.removed.items()},
        "changed": {path: list(map(file, pair)) for path, pair in found.changed.items()},
        "renamed": found.renamed,
    }


def restored(done: Restored | None) -> dict[str, Any] | None:
    """What was done to files."""
    if done is None:
        return None
    return {
        "written": list(done.written),
        "deleted": list(done.deleted),
        "kept": list(done.kept),
    }


def moved(
    session: Session,
    before: Snapshot | None,
    after: Snapshot | None,
    *,
    done: Restored | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """How rewind, undo, redo and restore tell where HEAD went, and what was done to files."""
    return {
        "session": session.name,
        "from": before.id if before else None,
        "to": after.id if after else None,
        "turn": after.turn if after else 0,
        "files": restored(done),
        "dry_run": dry_run,
    }
