"""Where the next object is likely to lie, for whoever walks a history back.

Each turn names the one before it, which was mostly saved just before it, so it lies in the batch
before. Looking there first costs one hash, where an index costs a search in each segment. A guess
is tried only while guesses are right and cost little (a packed batch holds hundreds of turns), and
decides nothing: the id of what is found is computed.
"""

from __future__ import annotations

from snapstore.engines.log.batch import Batch
from snapstore.engines.log.segment import Segment
from snapstore.errors import Corrupt, UnsupportedFormat

_MOST = 4
"""Objects of a kind in a batch beyond which a guess would cost more hashes than it saves."""


class Walk:
    """The steps of one handle; guarded by the engine's mutex."""

    def __init__(self) -> None:
        self._segment: Segment | None = None
        self._offset = 0
        self._kind = 0
        self._goes_back = False

    def step(self, object_id: bytes) -> tuple[Batch, int] | None:
        """The batch before the one found last and the slot in it, if the object lies there."""
        segment = self._segment
        if not self._goes_back or segment is None:
            return None
        self._goes_back = False
        if not self._offset:
            return None
        try:
            opened = segment.batch_before(self._offset)
        except (Corrupt, UnsupportedFormat):
            return None  # whoever searches for the object meets that again, and tells
        slot = _structure(opened, object_id, self._kind)
        if slot < 0:
            return None
        self._offset, self._goes_back = opened.where[1], True
        return opened, slot

    def found(self, segment: Segment, opened: Batch, slot: int) -> None:
        """An object was found by searching."""
        offset = opened.where[1]
        self._goes_back = self._segment is segment and offset + opened.header.size == self._offset
        self._segment, self._offset, self._kind = segment, offset, opened.kinds[slot]

    def forget(self) -> None:
        """The segments are no more what they were."""
        self._segment, self._goes_back = None, False


def _structure(opened: Batch, object_id: bytes, kind: int) -> int:
    """The slot of an object among those of a kind whose ids are computed, or -1."""
    if opened.kinds.count(kind) > _MOST:
        return -1
    slot = opened.kinds.find(kind, opened.contents + opened.chunked)
    while 0 <= slot < opened.objects and opened.kinds[slot] == kind:
        if opened.id_at(slot) == object_id:
            return slot
        slot += 1
    return -1
