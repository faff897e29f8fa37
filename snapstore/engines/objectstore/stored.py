"""Packs as they lie in the bucket, known by their keys alone: also those that no record names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from snapstore.engine import Obj
from snapstore.engines.objectstore import packs
from snapstore.engines.objectstore.client import Bucket, Found
from snapstore.engines.objectstore.failures import Absent
from snapstore.engines.objectstore.layout import PACKS, REFS, pack_id, pack_key, record_place
from snapstore.engines.objectstore.packs import Pack, Ref
from snapstore.errors import Corrupt

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Listing(NamedTuple):
    """What was in a bucket at one moment."""

    packs: dict[bytes, Found]
    logs: dict[str, list[tuple[int, datetime]]]
    """By the directory of a ref, the numbers of its records, the newest first, and their times."""

    @property
    def now(self) -> datetime:
        """The newest time in it, which is the server's own clock."""
        times = [found.modified for found in self.packs.values()]
        times += [modified for log in self.logs.values() for _, modified in log]
        return max(times, default=_LONG_AGO)


def listing(bucket: Bucket) -> Listing:
    """All packs, and only then all records: a pack that is named by now is older than its name."""
    stored = packs_in(bucket)
    logs: dict[str, list[tuple[int, datetime]]] = {}
    for found in bucket.every(REFS):
        place = record_place(found.key)
        if place is not None:
            logs.setdefault(place[0], []).append((place[1], found.modified))
    return Listing(stored, logs)


def packs_in(bucket: Bucket) -> dict[bytes, Found]:
    """All packs."""
    return {i: found for found in bucket.every(PACKS) if (i := pack_id(found.key))}


def ids_in(bucket: Bucket, pack: bytes, size: int) -> list[bytes]:
    """The ids of what a stored pack holds; none when it is gone or damaged."""
    key = pack_key(pack)
    try:
        data = bucket.get_range(key, 0, min(size, packs.WHOLE))
        front = packs.front_length(data)
        if front > len(data):
            data = bucket.get_range(key, 0, front)
        opened = Pack(Ref(pack, size, front, b"", 0), data[:front], lambda start, end: b"")
    except (Absent, Corrupt):
        return []
    return opened.ids()


def objects_in(bucket: Bucket, pack: bytes) -> list[Obj]:
    """What a stored pack holds; nothing when it is gone or damaged."""
    try:
        data = bucket.get(pack_key(pack))
        if not packs.is_whole(data, pack):
            return []
        return Pack(packs.ref_of(data, pack, 0), data, lambda start, end: b"").all()
    except (Absent, Corrupt):
        return []
