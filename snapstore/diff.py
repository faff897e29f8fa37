"""What two turns do not have in common, from where they part.

Lines part at their last common snapshot. Sessions that were imported apart have none, and still
may hold the same messages: histories are compared by the ids of their list nodes and messages, so
what both begin with is found either way. The cost is O(log n) reads and what differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snapstore.model.maps import Change
from snapstore.scratchpad import key_text, stored_value
from snapstore.snapshot import Snapshot

if TYPE_CHECKING:
    from snapstore.store import Store
    from snapstore.worktree.treediff import FilesDiff


@dataclass(frozen=True, slots=True)
class HistoryDiff:
    """Messages from where two histories part."""

    shared: int
    """How many messages both begin with."""
    left: list[Any]
    right: list[Any]


@dataclass(frozen=True, slots=True)
class MapDiff:
    """Keys that are not alike, and their values."""

    added: dict[str, Any]
    """Only the right side has these."""
    removed: dict[str, Any]
    """Only the left side has these."""
    changed: dict[str, tuple[Any, Any]]
    """Both have these keys, with the left and the right value."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True, slots=True)
class Diff:
    """Two turns and what each has that the other has not."""

    left_head: Snapshot
    right_head: Snapshot
    base: Snapshot | None
    """The last turn that both lines hold; None when their lines share no turn."""
    left: list[Snapshot]
    """The turns of the left line since they parted, oldest first."""
    right: list[Snapshot]
    history: HistoryDiff
    scratchpad: MapDiff
    files: FilesDiff | None
    """None when neither side holds files."""

    def __repr__(self) -> str:
        base = f"turn {self.base.turn}" if self.base else "none"
        pad = self.scratchpad
        changes = {"added": pad.added, "removed": pad.removed, "changed": pad.changed}
        keys = ", ".join(f"{len(found)} {what}" for what, found in changes.items())
        files = "none" if self.files is None else f"{len(self.files)} changed"
        return (
            f"<Diff base: {base}; "
            f"left: {len(self.left)} turns, {len(self.history.left)} messages; "
            f"right: {len(self.right)} turns, {len(self.history.right)} messages; "
            f"scratchpad: {keys}; files: {files}>"
        )

    @property
    def equal(self) -> bool:
        """Whether both hold the same: messages, scratchpad and files."""
        return not (self.history.left or self.history.right or self.scratchpad or self.files)


def compare(store: Store, left: Snapshot, right: Snapshot) -> Diff:
    """The difference between two turns of one store."""
    objects = store.objects
    base = objects.snapshots.common_ancestor(left.raw_id, right.raw_id)
    shared = objects.lists.common_prefix(left.record.history, right.record.history)
    return Diff(
        left_head=left,
        right_head=right,
        base=store.snapshot(base) if base else None,
        left=_since(store, left, base, shared),
        right=_since(store, right, base, shared),
        history=HistoryDiff(shared, left.history[shared:], right.history[shared:]),
        scratchpad=_maps(store, left.record.scratchpad, right.record.scratchpad),
        files=_files(store, left, right),
    )


def _files(store: Store, left: Snapshot, right: Snapshot) -> FilesDiff | None:
    trees = left.record.files, right.record.files
    if trees == (None, None):
        return None
    from snapstore.worktree.tree import Trees
    from snapstore.worktree.treediff import files_diff

    return files_diff(Trees(store.objects), *trees)


def _since(store: Store, head: Snapshot, base: bytes | None, shared: int) -> list[Snapshot]:
    turns = list(_newest_first(store, head, base, shared))
    turns.reverse()
    return turns


def _newest_first(
    store: Store, head: Snapshot, base: bytes | None, shared: int
) -> Iterator[Snapshot]:
    lists = store.objects.lists
    for snapshot_id, record in store.objects.snapshots.line(head.raw_id):
        if snapshot_id == base:
            return
        if base is None:
            length = lists.length(record.history)
            in_both = min(length, shared)
            if length == in_both == lists.common_prefix(record.history, head.record.history):
                return  # all of this turn's messages are in both histories
        yield Snapshot(store.objects, snapshot_id, record)


def _maps(store: Store, left: bytes | None, right: bytes | None) -> MapDiff:
    found = MapDiff({}, {}, {})
    for change in store.objects.maps.diff(left, right):
        _sort(store, change, found)
    return found


def _sort(store: Store, change: Change, found: MapDiff) -> None:
    key = key_text(change.key)
    if change.old is None:
        assert change.new is not None
        found.added[key] = stored_value(store.objects, change.new)
    elif change.new is None:
        found.removed[key] = stored_value(store.objects, change.old)
    else:
        found.changed[key] = (
            stored_value(store.objects, change.old),
            stored_value(store.objects, change.new),
        )
