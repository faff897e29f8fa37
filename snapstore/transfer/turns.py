"""The lines of a transcript as snapshots: the same turns make the same ids, wherever and whenever.

A snapshot made here holds what the transcript tells of its turn and, where a hook has saved them,
its files: the turn's own time, not that of the import; no path; none of the facts that change while
a session goes on. So a transcript that has grown makes the snapshots that it made before and then
new ones, and two stores that import the same bytes hold the same ids. Lines that begin alike share
the snapshots of their beginning.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from snapstore import refs, values
from snapstore.engine import Update
from snapstore.formats.transcript import Line, Transcript, Turn
from snapstore.objects import Objects, Stage
from snapstore.transfer.beside import stage_beside
from snapstore.transfer.held import Held
from snapstore.transfer.rows import Keeper
from snapstore.worktree.binding import Files

_MOST_STAGED = 16 << 20
"""More than this is committed before the line is named, so that memory does not grow with it."""


@dataclass(frozen=True, slots=True)
class StagedLine:
    """A line as snapshots, not yet named."""

    line: Line
    ids: tuple[bytes, ...]
    """The snapshot of each turn."""
    shared: int
    """How many of them, from the first, are those of another line of the session."""

    @property
    def head(self) -> bytes:
        """The snapshot of the last turn."""
        return self.ids[-1]

    @property
    def parts_from(self) -> bytes | None:
        """The last snapshot that it shares with another line of the session."""
        return self.ids[self.shared - 1] if self.shared else None


class Teller:
    """Makes the snapshots of one session's lines, one line after the other.

    They are put into one stage, for the layout of the file leads to all of them. Of a large file
    most is committed before; until its lines have names, a ref of its own holds that. ``with`` ends
    this ref. Tick is called with the number of turns that were told since.
    """

    def __init__(
        self,
        objects: Objects,
        stage: Stage,
        transcript: Transcript,
        tick: Callable[[int], None],
        held: Held,
        files: Files,
        now: Callable[[], int],
    ) -> None:
        """Turns that are held with files keep them; the last one of the first line gets these."""
        self._objects = objects
        self._stage = stage
        self._harness = transcript.harness
        self._keeper = Keeper(transcript, stage)
        self._tick = tick
        self._now = now
        self._held = held
        self._files = files
        self._told: list[StagedLine] = []
        self._arriving = f"{refs.ARRIVING}{os.urandom(8).hex()}"
        self._arrived: bytes | None = None

    def __enter__(self) -> Teller:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._arrived is not None:
            engine, time = self._objects.engine, self._now()
            engine.commit([], Update(self._arriving, None, self._arrived, "arrived", time))

    def layout(self, lines: Sequence[StagedLine], beside: Mapping[str, bytes]) -> bytes | None:
        """The layout of the file, all of whose lines were staged; None when there is no file.

        Beside are the files that belong to it.
        """
        heads = [line.head for line in lines]
        if beside:
            heads.append(stage_beside(self._objects, self._stage, beside))
        return self._keeper.layout(heads)

    def stage(self, line: Line) -> StagedLine:
        """The line's snapshots."""
        objects, stage = self._objects, self._stage
        ids = list(self._beginning(line.turns))
        last = objects.snapshots.record(ids[-1]) if ids else None
        time, history = (last.time, last.history) if last else (0, None)
        self._tick(len(ids))
        for turn in line.turns[len(ids) :]:
            time = time if turn.time is None else turn.time
            messages, rows = self._keeper.keep(turn)
            history = self._history(history, turn, messages)
            parent = ids[-1] if ids else None
            is_end = not self._told and turn is line.turns[-1]
            files = self._held.files(parent, history, self._files if is_end else Files())
            snapshot_id, _ = objects.snapshots.create(
                parent,
                stage.put_snapshot,
                time=time,
                history=history,
                label=turn.label,
                meta=self._meta(line, turn, first=not ids),
                rows=rows,
                **files._asdict(),
            )
            ids.append(snapshot_id)
            self._tick(1)
            if stage.size > _MOST_STAGED:
                self._commit(snapshot_id)
        return self._told_as(line, tuple(ids))

    def _commit(self, head: bytes) -> None:
        """Commit what is staged, which this snapshot holds together."""
        update = Update(self._arriving, head, self._arrived, "arriving", self._now())
        self._stage.commit(update)
        self._arrived = head

    def _beginning(self, turns: Sequence[Turn]) -> Sequence[bytes]:
        """The snapshots of those first turns that are the very objects of a line told before."""
        known = [
            told.ids[: _same_beginning(told.line.turns, turns, operator.is_)] for told in self._told
        ]
        return max(known, key=len, default=())

    def _told_as(self, line: Line, ids: tuple[bytes, ...]) -> StagedLine:
        shared = [_same_beginning(told.ids, ids, operator.eq) for told in self._told]
        told = StagedLine(line, ids, max(shared, default=0))
        self._told = [*self._told[:1], told]  # formats share turns with these lines only
        return told

    def _meta(self, line: Line, turn: Turn, *, first: bool) -> bytes:
        meta = {"harness": self._harness, **line.start, **turn.meta} if first else dict(turn.meta)
        return values.encode(meta, path="meta") if meta else b""

    def _history(self, before: bytes | None, turn: Turn, ids: list[bytes]) -> bytes | None:
        lists, stage = self._objects.lists, self._stage
        if not turn.replaces:
            return lists.append(before, ids, stage.put_node) if ids else before
        if not ids:
            return None
        kept = _same_beginning(lists.slice(before, 0, len(ids)), ids, operator.eq)
        return lists.replace(before, kept, ids[kept:], stage.put_node)


def _same_beginning(
    one: Sequence[Any], other: Sequence[Any], same: Callable[[Any, Any], bool]
) -> int:
    """How many of the first members are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if not same(a, b)), min(len(one), len(other)))
