"""Which turns a page shows: the lines that refs stand on, and those that were left behind.

A line was left behind when a session stood on it once and was rewound, or when the file that the
session was imported from held it beside the live one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapstore import refs
from snapstore.errors import SnapstoreError
from snapstore.model.layout import LAYOUT, Layout

if TYPE_CHECKING:
    from snapstore.engine import Move
    from snapstore.store import Store


@dataclass(frozen=True, slots=True)
class Named:
    """A session or tag, and where it stands."""

    name: str
    head: bytes
    is_tag: bool = False
    forked_from: bytes | None = None


@dataclass(frozen=True, slots=True)
class Branches:
    """The lines of a page by their last turns."""

    named: tuple[Named, ...]
    left_behind: tuple[bytes, ...] = ()

    @property
    def heads(self) -> list[bytes]:
        """The last turn of every line, the named ones first. One may lead to another."""
        return [*(named.head for named in self.named), *self.left_behind]


def branches(store: Store) -> Branches:
    """Every line of a store: sessions, tags, and what the moves of sessions left behind."""
    named = [_named(store, tip) for tip in store.engine.tips(refs.SESSIONS) if tip.new]
    tags = [
        Named(tip.ref.removeprefix(refs.TAGS), tip.new, is_tag=True)
        for tip in store.engine.tips(refs.TAGS)
        if tip.new
    ]
    standing = {one.head for one in (*named, *tags)}
    behind = [head for head in dict.fromkeys(_left_behind(store)) if head not in standing]
    return Branches((*named, *tags), tuple(behind))


def _named(store: Store, tip: Move) -> Named:
    assert tip.new is not None
    try:
        born = tip if tip.born == tip.gen else store.engine.move(tip.ref, tip.born)
    except refs.UNREADABLE:
        born = None
    origin = born.info.get("forked_from") if born else None
    return Named(tip.ref.removeprefix(refs.SESSIONS), tip.new, forked_from=origin)


def _left_behind(store: Store) -> Iterator[bytes]:
    """Where sessions stood when they were moved away, newest first; many are no line's end.

    Not the question of a turn that was then completed: that one holds it, and has its number.
    """
    completed: set[tuple[str, int]] = set()
    for move in refs.moves_around_damage(store.engine, lambda error: None):
        if not move.ref.startswith(refs.SESSIONS):
            continue
        if move.op == "save" and move.base != move.gen - 1:  # undo passes over the move before
            completed.add((move.ref, move.gen - 1))
        if move.new is not None and (move.ref, move.gen) not in completed:
            yield move.new
        if LAYOUT in move.info:
            yield from _beside(store, move.info[LAYOUT])


def _beside(store: Store, layout_id: bytes) -> Iterator[bytes]:
    try:
        heads = Layout.decode(store.objects.content(layout_id), layout_id).heads
        for head in heads:
            # One of them may hold nothing but files that lay beside the imported one.
            if store.objects.snapshots.record(head).history is not None:
                yield head
    except SnapstoreError:
        return  # what is wrong with it is for verify to say
