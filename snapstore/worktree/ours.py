"""Whether a store has captured a directory itself, on this machine.

A turn that came from another machine names a directory of that machine. One of the same name here
may be something else altogether, and must not be overwritten only because the names agree.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from snapstore import refs
from snapstore.engine import Move

if TYPE_CHECKING:
    from snapstore.store import Store

_CAPTURING = ("save", "capture", refs.PURGE)
"""What a move is called that made its snapshot in this store."""


def is_ours(store: Store, root: Path) -> bool:
    """Whether this store has captured the directory before, as far as it remembers."""
    place, here = str(root), store.here
    if here is not None and here.has_locked(store.worktree(root).path):
        return True
    if here is not None and store.local is None:
        return False  # the reflog tells what other machines did, too
    return any(_captured(store, move, place) for move in store.engine.reflog())


def _captured(store: Store, move: Move, place: str) -> bool:
    for way in ("back", "forth"):
        face = move.info.get(way)
        if face is not None and face.get("worktree") == place:
            return True
    if move.op not in _CAPTURING or move.new is None:
        return False
    record = store.objects.snapshots.record(move.new)
    if record.worktree != place or record.files is None:
        return False
    parent = store.objects.snapshots.record(record.parent) if record.parent else None
    # Where the directory is not there, a save goes on with what its parent has.
    return parent is None or (parent.worktree, parent.files) != (place, record.files)
