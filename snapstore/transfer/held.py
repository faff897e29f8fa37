"""The files that turns of a transcript were saved with.

A transcript tells nothing of files. Where a hook saved its session, turns hold files beside what
the transcript says of them; read again, the same turn is to be the same snapshot, and one that has
grown since keeps the files that it had.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable

from snapstore.engine import Move
from snapstore.errors import Corrupt, ObjectMissing
from snapstore.model.snapshot import Record
from snapstore.objects import Objects
from snapstore.transfer.growth import history_grew
from snapstore.worktree.binding import Files

EARLY = "early"
"""What is noted with a move that gave its last turn files of before the turn had ended."""


class Held:
    """The turns with files on the lines of these sessions, which are told by their last moves."""

    def __init__(self, objects: Objects, tips: Iterable[Move]) -> None:
        self._objects = objects
        self._after: defaultdict[bytes | None, list[tuple[Record, bool]]] = defaultdict(list)
        seen: set[bytes] = set()
        for tip in tips:
            # What cannot be read holds nothing.
            with contextlib.suppress(ObjectMissing, Corrupt):
                self._walk(tip, seen)

    def _walk(self, tip: Move, seen: set[bytes]) -> None:
        early = tip.new if EARLY in tip.info else None
        for snapshot_id, record in self._objects.snapshots.line(tip.new):
            if snapshot_id in seen:
                return
            seen.add(snapshot_id)
            if record.files is not None:
                self._after[record.parent].append((record, snapshot_id == early))

    def files(self, parent: bytes | None, history: bytes | None, fresh: Files) -> Files:
        """The files of the turn after parent that has this history.

        Those that it was given at its end; else the fresh ones; else, where there are none, those
        of before its end, or of before it grew.
        """
        turns = self._after.get(parent, ())
        same = [(record, early) for record, early in turns if record.history == history]
        final = next((record for record, early in same if not early), None)
        if final is not None:
            return Files.of(final)
        if fresh.files is not None:
            return fresh
        less = (turn for turn, _ in turns if history_grew(self._objects, turn.history, history))
        found = next((record for record, _ in same), None) or next(less, None)
        return Files.of(found) if found else Files()
