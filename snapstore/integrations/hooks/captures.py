"""Captures that are no turn: what the files were at some moment while a session was at work.

Each session of a harness has a ref of its own, ``captures/ID``, that points at a snapshot with
nothing but files. A snapshot replaces the one before and has no parent, so that the older ones go
when the reflog that remembers them does. They make no path known: see worktree.known.

What was stored for a capture costs the turn that follows nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from snapstore import names, refs
from snapstore.engine import Update
from snapstore.errors import InvalidInput, RefMoved
from snapstore.ids import object_id
from snapstore.objects import Stage
from snapstore.store import Store
from snapstore.worktree.binding import Files
from snapstore.worktree.capture import Limits

OP = "capture"
"""What a capture is called in the reflog."""


def ref_of(session_id: str) -> str:
    """The ref of the captures of a session of a harness."""
    try:
        names.valid_name(session_id)
    except InvalidInput:  # no harness has such ids, but then nobody has promised that
        return refs.CAPTURES + object_id(session_id.encode("utf-8", "surrogatepass")).hex()
    return refs.CAPTURES + session_id


def last_capture(store: Store, session_id: str) -> Files:
    """The files as they were captured last; none where they never were."""
    tip = refs.live(store.engine, ref_of(session_id))
    return Files.of(store.objects.snapshots.record(tip.new)) if tip and tip.new else Files()


def capture(store: Store, session_id: str, root: Path, event: str) -> tuple[Files, list[str]]:
    """The files in a directory now, and the directories below it that were looked at.

    Writes nothing where they are what they were at the capture before. Raises what a capture
    raises: NotFound, Refused, Locked.
    """
    worktree = store.worktree(root)
    with Stage(store.objects) as stage:
        captured = worktree.capture(stage, Limits())
        files = Files(captured.tree, str(root), captured.partial)
        _keep(store, stage, ref_of(session_id), files, event)
    worktree.remember(captured)
    return files, list(map(os.fsdecode, captured.cache.seen))


def _keep(store: Store, stage: Stage, ref: str, files: Files, event: str) -> None:
    time = store.clock()
    made, _ = store.objects.snapshots.create(
        None,
        stage.put_snapshot,
        time=time,
        label=event,
        files=files.files,
        worktree=files.worktree,
        partial=files.partial,
    )
    while True:
        tip = store.engine.tip(ref)
        head = tip.new if tip else None
        if head is not None and Files.of(store.objects.snapshots.record(head)) == files:
            return
        try:
            stage.commit(Update(ref, made, head, OP, time))
            return
        except RefMoved:  # by another hook of this session: what was captured last counts
            continue
