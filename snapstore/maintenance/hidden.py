"""Turns that were saved behind damage of the part of the log that is written: they are there, and
nobody is led to them until a repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapstore import refs
from snapstore.engine import Kind, Touch
from snapstore.engines.sheet import Sheet
from snapstore.errors import SnapstoreError
from snapstore.model.snapshot import Record

if TYPE_CHECKING:
    from snapstore.store import Store


class Hidden:
    """Takes in what a scan finds; tells which turns of it the store does not show."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[str, int] = {}

    def add(self, sheet: Sheet) -> None:
        """Take in what comes next. A turn comes with its move."""
        snapshots = {o.id: o for o in sheet.others if o.kind == Kind.SNAPSHOT}
        for move in sheet.moves:
            saved = snapshots.get(move.new) if move.new else None
            if saved is None or not move.ref.startswith(refs.OF_SNAPSHOTS):
                continue
            tip = self._store.engine.tip(move.ref)
            if tip is None or tip.gen < move.gen:
                turn = Record.decode(saved.payload, saved.id).turn
                self._last[move.ref] = max(turn, self._last.get(move.ref, 0))

    def touches(self) -> tuple[Touch, ...]:
        """The turns that are not shown, from the first one after what is."""
        found = ((ref, self._shown(ref) + 1, last) for ref, last in sorted(self._last.items()))
        return tuple(Touch(ref, min(first, last), last) for ref, first, last in found)

    def _shown(self, ref: str) -> int:
        tip = refs.live(self._store.engine, ref)
        try:
            return self._store.objects.snapshots.record(tip.new).turn if tip and tip.new else 0
        except SnapstoreError:
            return 0
