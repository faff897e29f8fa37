"""Merging: how a session of n saves lies in O(log n) packs, at no request of its own.

Each save makes a pack of tier 0. The save that would be the eighth of a tier carries the objects of
the other seven as well, and its pack is of the next tier, where it may again be the eighth: as the
digits of a number in base 8 are carried. So after n saves there are at most seven packs for each
digit of n, every object was uploaded once for each digit, and a save is two writes all the same.
(This is the logarithmic method: Bentley and Saxe, "Decomposable searching problems", 1980.)

A large save begins at a higher tier, so that it is not uploaded again with every few small ones.
Packs that together would make one of more than 16 MiB are merged no more: they are *grown*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from snapstore.engine import Obj
from snapstore.engines.objectstore.packs import Ref

FANOUT = 8
SMALL = 64 << 10
"""Bytes of content up to which a save begins at tier 0; at tier 1 up to 8 times as many, ..."""
LARGEST = 16 << 20
"""Bytes that merged packs have together, at most."""
GROWN = 255


class Merge(NamedTuple):
    """What the pack of a save is to hold beside the objects of the save."""

    keep: tuple[Ref, ...]
    """The packs that stay."""
    merged: tuple[Ref, ...]
    """The packs that it takes the place of."""
    tier: int
    """Its tier."""


def tier_of(objects: Sequence[Obj]) -> int:
    """The tier of a pack of these objects that nothing is merged into."""
    size = sum(len(o.payload) for o in objects)
    tier, most = 0, SMALL
    while size > most and most < LARGEST:
        tier, most = tier + 1, most * FANOUT
    return GROWN if size > most or most >= LARGEST else tier


def plan(refs: Sequence[Ref], new: Sequence[Obj]) -> Merge:
    """What to do with these packs, oldest first, at a save of these objects."""
    keep = list(refs)
    merged: list[Ref] = []
    tier = tier_of(new)
    size = sum(len(o.payload) for o in new)
    while tier < GROWN:
        level = [ref for ref in keep if ref.tier == tier]
        if len(level) + 1 < FANOUT:
            break
        size += sum(ref.size for ref in level)
        if size > LARGEST:
            keep = [ref._replace(tier=GROWN) if ref.tier == tier else ref for ref in keep]
            break
        keep = [ref for ref in keep if ref.tier != tier]
        merged = level + merged
        tier += 1
    return Merge(tuple(keep), tuple(merged), tier)
