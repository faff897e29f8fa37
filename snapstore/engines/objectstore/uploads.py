"""New objects on their way into a bucket, as packs that no record names yet."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Executor

from snapstore.engine import Obj
from snapstore.engines.objectstore import packs, tiers
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.failures import Absent
from snapstore.engines.objectstore.layout import pack_key
from snapstore.engines.objectstore.packs import Packed, Ref
from snapstore.engines.objectstore.shelf import Shelf
from snapstore.errors import SnapstoreError

SPLIT_AT = 32 << 20
"""More new content than this is uploaded as several packs."""


class Uploads:
    """Makes packs and uploads them. Several threads may use it."""

    def __init__(self, bucket: Bucket, workers: Callable[[], Executor], shelf: Shelf) -> None:
        self._bucket = bucket
        self._workers = workers
        self._shelf = shelf

    def save(self, new: list[Obj], named: list[Ref]) -> tuple[list[Ref], list[Packed]]:
        """Upload what a save adds, merged with what it is the turn of; the packs to name then, and
        those of them that are new. They are opened once a record names them."""
        *large, rest = _groups(new)
        uploaded = self._in_groups(large)
        merge = tiers.plan(named, rest)
        try:
            older = [o for pack in self._shelf.whole(merge.merged) for o in pack.all()]
        except (Absent, SnapstoreError):
            # Merging saves requests later on; that it cannot be done now is no reason not to save.
            merge, older = tiers.Merge(tuple(named), (), tiers.tier_of(rest)), []
        together = list({o.id: o for o in (*older, *rest)}.values())
        uploaded.append(self._put(packs.make(together, merge.tier)))
        return [*merge.keep, *(packed.ref for packed in uploaded)], uploaded

    def upload(self, objects: list[Obj]) -> list[Packed]:
        """Upload objects, merged with nothing."""
        return self._in_groups(_groups(objects))

    def take_back(self, uploaded: list[Packed]) -> None:
        """Delete packs that no record will ever name: what was merged into them may have to go."""
        with contextlib.suppress(SnapstoreError):  # saving does not need the right to delete
            self._bucket.delete(pack_key(packed.ref.id) for packed in uploaded)

    def _in_groups(self, groups: list[list[Obj]]) -> list[Packed]:
        made = (packs.make(group, tiers.tier_of(group)) for group in groups)
        if len(groups) < 2:
            return [self._put(packed) for packed in made]
        return list(self._workers().map(self._put, made))

    def _put(self, packed: Packed) -> Packed:
        self._bucket.put(pack_key(packed.ref.id), packed.data)
        return packed


def _groups(objects: list[Obj]) -> list[list[Obj]]:
    """Objects in groups of at most SPLIT_AT bytes, unless a single one is larger."""
    groups: list[list[Obj]] = [[]]
    size = 0
    for o in objects:
        if groups[-1] and size + len(o.payload) > SPLIT_AT:
            groups.append([])
            size = 0
        groups[-1].append(o)
        size += len(o.payload)
    return groups
