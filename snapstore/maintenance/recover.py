"""Recovering: sessions for turns that are in the store and that nothing leads to.

Such turns are left by whoever was killed between writing and naming what it wrote, by a repair, or
by hands that put old segments back. The newest turn of each such line becomes a session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

from snapstore import refs
from snapstore.engine import Kind
from snapstore.errors import SnapstoreError
from snapstore.maintenance.reach import Reach
from snapstore.maintenance.repair import Salvaging, Wholeness
from snapstore.model.layout import LAYOUT, Layout

if TYPE_CHECKING:
    from snapstore.store import Store

PREFIX = "recovered/"
OP = "recover"
"""What it is called in the reflog."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """A turn that nothing led to, and the session that it became."""

    name: str
    id: bytes
    turn: int


def recover(store: Store, *, dry_run: bool = False) -> list[Recovered]:
    """Make a session of the newest turn of every line that nothing leads to and that is whole.

    Run again it finds nothing more. With dry_run nothing is written.
    """
    found: list[Recovered] = []
    names = (f"{PREFIX}{n}" for n in count(1))
    free = (name for name in names if store.engine.tip(refs.SESSIONS + name) is None)
    for snapshot_id in _ends(store):
        name = next(free)
        turn = store.objects.snapshots.record(snapshot_id).turn
        if not dry_run:
            ref = refs.SESSIONS + name
            refs.create(store.engine, ref, snapshot_id, OP, store.clock(), {})
        found.append(Recovered(name, snapshot_id, turn))
    return found


def _ends(store: Store) -> Iterator[bytes]:
    """The whole turns that nothing leads to, not even another of them; by id."""
    known = _led_to(store)
    engine = store.engine
    there = engine.whole_ids() if isinstance(engine, Salvaging) else engine.ids(b"", 0)
    left = sorted({i for i, kind in there if kind == Kind.SNAPSHOT})
    whole = Wholeness(store)
    lost: dict[bytes, bytes | None] = {}
    for snapshot_id in left:
        if snapshot_id in known:
            continue
        try:
            lost[snapshot_id] = store.objects.snapshots.record(snapshot_id).parent
        except SnapstoreError:
            continue
    usable = [i for i in lost if whole.newest(i) == i]
    parents = {lost[i] for i in usable}
    yield from (i for i in usable if i not in parents)


def _led_to(store: Store) -> set[bytes]:
    """The turns that some ref leads to or has led to, as far as that can be read."""
    reach = Reach(store.objects, lambda object_id, error: None)
    for move in chain(store.engine.tips(), refs.moves_around_damage(store.engine, lambda _: None)):
        heads = [] if move.new is None else [move.new]
        if LAYOUT in move.info:
            heads += _heads(store, move.info[LAYOUT])
        for head in heads:
            deque(reach.line(head), maxlen=0)
    return reach.seen


def _heads(store: Store, layout: bytes) -> Sequence[bytes]:
    try:
        return Layout.decode(store.objects.content(layout), layout).heads
    except SnapstoreError:
        return ()
