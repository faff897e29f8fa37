"""Snapshots as they are stored: a session after one turn, and the line of its parents.

A snapshot is a msgpack array. Fields at its end that are empty are left off; fields after the ones
known here are passed over, so that later versions can add some.

    [turn, time, parent, jump, history, label, scratchpad, files, worktree, meta, partial,
     rows, state]
    turn        number in its line, the first is 1; also the depth of its skip pointer
    time        microseconds since the epoch, UTC
    parent      snapshot before, 32 bytes; nil in the first
    jump        far ancestor (see skip), 32 bytes; nil when that is the parent or nothing
    history     tip of the list of messages, 32 bytes; nil when empty
    label       text
    scratchpad  root of the map of the scratchpad, 32 bytes; nil when empty
    files       root of the file tree, 32 bytes; nil when no files were captured
    worktree    directory that the files were captured from, as text; "" for none
    meta        encoded dictionary (see values), a byte string; empty for none
    partial     whether some file could not be captured
    rows        page of the rows that an imported turn was read from, 32 bytes; nil for none
    state       root of a map of what the program that keeps its state here put beside the turn (see
                integrations), 32 bytes; nil for none

It does not hold the session's name: forks share it. Text may hold lone surrogates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from snapstore.errors import NotFound
from snapstore.model.recent import Recent
from snapstore.model.skip import at_depth, meet, next_jump
from snapstore.model.wire import Put, Read, damaged, is_link, pack, unpack

_CACHED = 4096
_MOST_FIELDS = 64
_EMPTY: tuple[Any, ...] = (0, 0, None, None, None, "", None, None, "", b"", False, None, None)


class Record(NamedTuple):
    """A decoded snapshot. Ids are None, text and bytes empty, where there is nothing."""

    parent: bytes | None
    turn: int
    history: bytes | None
    scratchpad: bytes | None
    files: bytes | None
    label: str
    time: int
    meta: bytes
    worktree: str
    partial: bool
    jump: bytes | None
    rows: bytes | None = None
    state: bytes | None = None

    @property
    def prev(self) -> bytes | None:
        """The parent, under the name that skip knows it by."""
        return self.parent

    @property
    def depth(self) -> int:
        """The turn, under the name that skip knows it by."""
        return self.turn

    def encode(self) -> bytes:
        """The snapshot as an object's content."""
        fields: list[Any] = [
            self.turn,
            self.time,
            self.parent,
            None if self.jump == self.parent else self.jump,
            self.history,
            self.label,
            self.scratchpad,
            self.files,
            self.worktree,
            self.meta,
            self.partial,
            self.rows,
            self.state,
        ]
        while len(fields) > 2 and not fields[-1]:
            fields.pop()
        return pack(fields)

    @classmethod
    def decode(cls, content: bytes, snapshot_id: bytes) -> Record:
        """The snapshot in this content; raises Corrupt when it holds none."""
        fields = unpack(content, snapshot_id, most=_MOST_FIELDS)
        if len(fields) < 2:
            raise damaged(snapshot_id, "a snapshot has at least a turn and a time")
        fields = (*fields, *_EMPTY[len(fields) :])[: len(_EMPTY)]
        (turn, time, parent, jump, history, label, scratchpad, files, worktree, meta, partial,
         rows, state) = fields  # fmt: skip
        if not all(map(is_link, (parent, jump, history, scratchpad, files, rows, state))):
            raise damaged(snapshot_id, "a link of a snapshot is no id")
        if not (
            type(turn) is type(time) is int
            and type(label) is type(worktree) is str
            and type(meta) is bytes
            and type(partial) is bool
        ):
            raise damaged(snapshot_id, "a field of a snapshot has the wrong type")
        if turn < 1 or (parent is None) != (turn == 1):
            raise damaged(snapshot_id, f"turn {turn} and its parent contradict each other")
        if jump is None and turn & (turn + 1):
            # Only the turns 2^k - 1 jump to nothing, so here nil stands for the parent.
            jump = parent
        return cls(
            parent=parent,
            turn=turn,
            history=history,
            scratchpad=scratchpad,
            files=files,
            label=label,
            time=time,
            meta=meta,
            worktree=worktree,
            partial=partial,
            jump=jump,
            rows=rows,
            state=state,
        )


class Snapshots:
    """Reads snapshots and makes new ones. Safe to share between threads."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._recent: Recent[Record] = Recent(_CACHED)

    def record(self, snapshot_id: bytes) -> Record:
        """The snapshot with this id; raises ObjectMissing, or Corrupt when it is no snapshot."""
        record = self._recent.get(snapshot_id)
        if record is None:
            record = Record.decode(self._read(snapshot_id), snapshot_id)
            self._recent.add(snapshot_id, record)
        return record

    def create(
        self,
        parent: bytes | None,
        put: Put,
        *,
        time: int,
        history: bytes | None = None,
        scratchpad: bytes | None = None,
        files: bytes | None = None,
        label: str = "",
        meta: bytes = b"",
        worktree: str = "",
        partial: bool = False,
        rows: bytes | None = None,
        state: bytes | None = None,
    ) -> tuple[bytes, Record]:
        """Makes the snapshot of the turn after parent; time is in microseconds since the epoch."""
        record = Record(
            parent,
            1 if parent is None else self.record(parent).turn + 1,
            history,
            scratchpad,
            files,
            label,
            time,
            meta,
            worktree,
            partial,
            next_jump(self.record, parent),
            rows,
            state,
        )
        snapshot_id = put(record.encode())
        self._recent.add(snapshot_id, record)
        return snapshot_id, record

    def at_turn(self, head: bytes, turn: int) -> bytes:
        """The id of this turn of head's line: O(log n) reads. Raises NotFound for none."""
        last = self.record(head).turn
        if not 1 <= turn <= last:
            raise NotFound(f"there is no turn {turn}: the line has turns 1 to {last}")
        return at_depth(self.record, head, turn)

    def common_ancestor(self, one: bytes | None, other: bytes | None) -> bytes | None:
        """The id of the last snapshot that both lines hold, None for none: O(log n) reads."""
        return meet(self.record, one, other)

    def line(self, head: bytes | None) -> Iterator[tuple[bytes, Record]]:
        """Head and its ancestors with their ids, newest first."""
        above: Record | None = None
        while head is not None:
            record = self.record(head)
            if above is not None and record.turn != above.turn - 1:
                raise damaged(head, f"it says turn {record.turn}, its child turn {above.turn}")
            yield head, record
            head, above = record.parent, record
