"""A snapshot as users see it: one turn of a session, read when it is looked at."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, overload

from snapstore import values
from snapstore.errors import InvalidInput
from snapstore.frozen import freeze
from snapstore.history import SavedHistory
from snapstore.model.snapshot import Record
from snapstore.objects import Objects
from snapstore.scratchpad import SavedScratchpad
from snapstore.times import moment

if TYPE_CHECKING:
    from snapstore.worktree.files import Files
    from snapstore.worktree.treediff import FilesDiff


class Snapshot:
    """A session after one turn. Immutable; equal when its id is equal."""

    __slots__ = ("_id", "_objects", "_record")

    def __init__(self, objects: Objects, snapshot_id: bytes, record: Record | None = None) -> None:
        self._objects = objects
        self._id = snapshot_id
        self._record = record or objects.snapshots.record(snapshot_id)

    @property
    def id(self) -> str:
        """64 hex digits."""
        return self._id.hex()

    @property
    def raw_id(self) -> bytes:
        """The id as 32 bytes."""
        return self._id

    @property
    def record(self) -> Record:
        """The snapshot as it is stored."""
        return self._record

    @property
    def turn(self) -> int:
        """Number in its line; the first is 1."""
        return self._record.turn

    @property
    def label(self) -> str:
        """What the save was called; "" for nothing."""
        return self._record.label

    @property
    def time(self) -> datetime:
        """When it was saved, UTC; in the years 1 to 9999 whatever the clock said."""
        return moment(self._record.time)

    @property
    def parent(self) -> str | None:
        """Id of the turn before; None for the first."""
        return self._record.parent.hex() if self._record.parent else None

    @property
    def history(self) -> SavedHistory:
        """The messages, read only."""
        return SavedHistory(self._objects, self._record.history)

    @property
    def scratchpad(self) -> SavedScratchpad:
        """The scratchpad, read only."""
        return SavedScratchpad(self._objects, self._record.scratchpad)

    @property
    def files(self) -> Files | None:
        """The captured files by full relative path; None when the turn holds none."""
        if self._record.files is None:
            return None
        from snapstore.worktree.files import Files

        return Files(self._objects, self._record.files)

    @property
    def partial(self) -> bool:
        """Whether some file could not be captured; such paths are listed in files."""
        return self._record.partial

    @property
    def meta(self) -> Mapping[str, Any]:
        """Further facts that the save was given."""
        encoded = self._record.meta
        found: Mapping[str, Any] = freeze(values.decode(encoded)) if encoded else {}
        return found

    @property
    def worktree(self) -> str:
        """The directory that the files were taken from; "" for none."""
        return self._record.worktree

    def added(self) -> int:
        """How many messages this turn has that the turn before had not (in the same place)."""
        mine, parent = self._record.history, self._record.parent
        if parent is None:
            return self._objects.lists.length(mine)
        before = self._objects.snapshots.record(parent).history
        lists = self._objects.lists
        if mine == before:
            return 0
        if mine is not None and lists.node(mine).prev == before:
            return lists.length(mine) - lists.length(before)  # the usual case, and no walk
        return lists.length(mine) - lists.common_prefix(mine, before)

    def files_diff(self) -> FilesDiff | None:
        """How the files differ from those of the turn before; None when the turn holds none."""
        if self._record.files is None:
            return None
        from snapstore.worktree.tree import Trees
        from snapstore.worktree.treediff import files_diff

        parent = self._record.parent
        before = self._objects.snapshots.record(parent).files if parent else None
        return files_diff(Trees(self._objects), before, self._record.files)

    def __eq__(self, other: object) -> bool:
        return self._id == other._id if isinstance(other, Snapshot) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._id)

    def __repr__(self) -> str:
        label = f" {self.label!r}" if self.label else ""
        return f"<Snapshot {self.id[:12]} turn {self.turn}{label}>"


def raw_id_of(given: object) -> bytes:
    """The id of what a caller gave as a snapshot. Raises InvalidInput for anything else."""
    if isinstance(given, Snapshot):
        return given.raw_id
    raise InvalidInput(
        f"a turn is given as a Snapshot here, not a {type(given).__name__}",
        hint="store.resolve(REVISION) and session.head are Snapshots",
    )


class Line(Sequence[Snapshot]):
    """The turns of a line, newest first. Item k takes O(log n) reads; iterating reads one each."""

    def __init__(self, objects: Objects, head: bytes | None) -> None:
        self._objects = objects
        self._head = head

    def __len__(self) -> int:
        return 0 if self._head is None else self._objects.snapshots.record(self._head).turn

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...
    @overload
    def __getitem__(self, index: slice) -> list[Snapshot]: ...
    def __getitem__(self, index: int | slice) -> Snapshot | list[Snapshot]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = operator.index(index)
        at = index + len(self) if index < 0 else index
        if self._head is None or not 0 <= at < len(self):
            raise IndexError(f"no turn {index} in a line of {len(self)}")
        return Snapshot(self._objects, self._objects.snapshots.at_turn(self._head, len(self) - at))

    def __iter__(self) -> Iterator[Snapshot]:
        for snapshot_id, record in self._objects.snapshots.line(self._head):
            yield Snapshot(self._objects, snapshot_id, record)

    def __repr__(self) -> str:
        return f"<Line of {len(self)} turns>"
