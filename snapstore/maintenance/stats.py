"""Counting what a store holds."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from snapstore import refs
from snapstore.errors import Corrupt, ObjectMissing

if TYPE_CHECKING:
    from snapstore.store import Store


def stats(store: Store) -> dict[str, Any]:
    """objects, bytes (as kept), logical_bytes, sessions, turns.

    ``logical_bytes`` is what the messages would take if every turn of every session were kept
    whole, which is what a checkpoint of each turn elsewhere costs. Turns that sessions share are
    counted once in ``turns``.
    """
    engine = store.engine.stats()
    sizes = _Sizes(store)
    seen: set[bytes] = set()
    sessions = logical = 0
    for tip in store.engine.tips(refs.SESSIONS):
        if tip.new is None:
            continue
        sessions += 1
        # A line that breaks off is counted as far as it goes: what is wrong is for verify to say.
        with contextlib.suppress(ObjectMissing, Corrupt):
            for snapshot_id, record in store.objects.snapshots.line(tip.new):
                if snapshot_id in seen:
                    break
                seen.add(snapshot_id)
                logical += sizes.of(record.history)
    return {
        "objects": engine.objects,
        "bytes": engine.bytes,
        "logical_bytes": logical,
        "sessions": sessions,
        "turns": len(seen),
    }


class _Sizes:
    """Bytes of the messages of a history. Each list node is read once."""

    def __init__(self, store: Store) -> None:
        self._objects = store.objects
        self._known: dict[bytes | None, int] = {None: 0}

    def of(self, tip: bytes | None) -> int:
        above: list[tuple[bytes, int]] = []
        here = tip
        while here not in self._known:
            assert here is not None
            node = self._objects.lists.node(here)
            ids = [node.ids[at : at + 32] for at in range(0, len(node.ids), 32)]
            above.append((here, sum(len(self._objects.content(i)) for i in ids)))
            here = node.prev
        total = self._known[here]
        for node_id, size in reversed(above):
            total += size
            self._known[node_id] = total
        return total
