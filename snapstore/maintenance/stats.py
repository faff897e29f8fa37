"""Counting what a store holds."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from snapstore import refs
from snapstore.engine import Move, Progress
from snapstore.engines.sheet import Scanned, Sheet
from snapstore.errors import Corrupt, ObjectMissing
from snapstore.maintenance.tally import Tally

if TYPE_CHECKING:
    from snapstore.store import Store


def stats(store: Store, progress: Progress | None = None) -> dict[str, Any]:
    """objects, bytes (as kept), logical_bytes, sessions, turns, kinds, by_session.

    ``logical_bytes`` is what the messages would take if every turn of every session were kept
    whole, which is what a checkpoint of each turn elsewhere costs. Turns that sessions share are
    counted once in ``turns``. A line that breaks off is counted as far as it goes: what is wrong is
    for verify to say. ``kinds`` are bytes before compression, of ``messages``, other ``contents``
    and ``structure``; None where the engine cannot be looked through. ``by_session`` are bytes of
    the messages of each session as it stands.
    """
    engine = store.engine.stats()
    tips = [tip for tip in store.engine.tips(refs.SESSIONS) if tip.new is not None]
    found = _lines(store, tips, progress)
    names = [tip.ref.removeprefix(refs.SESSIONS) for tip in tips]
    return {
        "objects": engine.objects,
        "bytes": engine.bytes,
        "logical_bytes": found.size,
        "sessions": len(tips),
        "turns": found.turns,
        "kinds": found.kinds,
        "by_session": dict(zip(names, found.heads, strict=True)),
    }


class _Lines(NamedTuple):
    """Turns of some lines, and bytes of all their histories; of the last one of each; by kind."""

    turns: int
    size: int
    heads: list[int]
    kinds: dict[str, int] | None


def _lines(store: Store, tips: Sequence[Move], progress: Progress | None) -> _Lines:
    """No content is read for it where the engine can be looked through."""
    if not isinstance(store.engine, Scanned):
        return _followed(store, tips)
    tally = Tally(store.objects)
    for seen in store.engine.scan(0.0, progress):
        if isinstance(seen, Sheet):
            tally.add(seen)
    tally.settle()
    turns, size = tally.count(tips)
    return _Lines(turns, size, [tally.size(tip) for tip in tips], tally.kinds)


def _followed(store: Store, tips: Sequence[Move]) -> _Lines:
    sizes = _Sizes(store)
    seen: set[bytes] = set()
    logical = 0
    heads: list[int] = []
    for tip in tips:
        assert tip.new is not None
        heads.append(0)
        with contextlib.suppress(ObjectMissing, Corrupt):
            heads[-1] = sizes.of(store.objects.snapshots.record(tip.new).history)
            for snapshot_id, record in store.objects.snapshots.line(tip.new):
                if snapshot_id in seen:
                    break
                seen.add(snapshot_id)
                logical += sizes.of(record.history)
    return _Lines(len(seen), logical, heads, None)


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
