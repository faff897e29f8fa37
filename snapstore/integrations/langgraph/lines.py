"""Laying turns of a thread as a line of snapshots."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from snapstore.integrations.langgraph.index import Index
from snapstore.integrations.langgraph.shown import Shown
from snapstore.integrations.langgraph.turns import (
    INDEX,
    Entries,
    Key,
    add_checkpoint,
    add_writes,
)
from snapstore.model.snapshot import Record
from snapstore.objects import Objects, Stage


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that is to be put."""

    label: str
    time: int
    shown: Shown
    entries: Entries

    def put(self, parent: bytes | None, objects: Objects, stage: Stage) -> bytes:
        """Stage the snapshot of this turn after parent; its id."""
        head, _ = objects.snapshots.create(
            parent,
            stage.put_snapshot,
            time=self.time,
            history=self.shown.history,
            scratchpad=self.shown.scratchpad,
            label=self.label,
            state=objects.maps.update(None, self.entries, stage.put_node),
        )
        return head


def laid_on_top(head: bytes | None, other: Index, objects: Objects, stage: Stage) -> bytes | None:
    """Stage the turns of another line after head; the new head."""
    for turn in range(1, len(other.turns) + 1):
        record = other.record(turn)
        entries = {at: value for at, value in other.entries(record).items() if at != INDEX}
        head = _as_before(record, entries).put(head, objects, stage)
    return head


def laid_anew(index: Index, kept: Collection[Key], objects: Objects, stage: Stage) -> bytes | None:
    """Stage a line of the turns of these checkpoints, with all writes to them; its head."""
    head: bytes | None = None
    for turn, held in enumerate(index.turns, 1):
        key = held.checkpoint
        if key is not None and key in kept and index.checkpoints[key] == turn:
            checkpoint = index.checkpoint(key)
            assert checkpoint is not None
            entries: Entries = {}
            add_checkpoint(entries, checkpoint, stage)
            add_writes(entries, key, index.writes_to(key), stage)
            head = _as_before(index.record(turn), entries).put(head, objects, stage)
    early: Entries = {}
    for key in index.writes.keys() - index.checkpoints.keys():
        add_writes(early, key, index.writes_to(key), stage)
    if early:
        head = _as_before(index.record(len(index.turns)), early).put(head, objects, stage)
    return head


def _as_before(record: Record, entries: Entries) -> Turn:
    shown = Shown(record.history, record.scratchpad)
    return Turn(record.label, record.time, shown, entries)
