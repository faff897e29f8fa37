"""The packs that are open: fetched, checked, and looked up by the ids of what they hold.

A pack comes from memory, else from the cache on this machine, else from the bucket. Several are
fetched side by side. Those not used for longest are closed again when all take too much memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, TypeVar

from snapstore.engine import Obj
from snapstore.engines.objectstore import packs
from snapstore.engines.objectstore.cache import PackCache
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.failures import Absent
from snapstore.engines.objectstore.layout import pack_key
from snapstore.engines.objectstore.packs import Pack, Packed, Ref
from snapstore.errors import Corrupt

MEMORY = 64 << 20
"""Bytes of packs that are kept open."""

_FRONT = ".front"

T = TypeVar("T")
R = TypeVar("R")


class Opened(NamedTuple):
    """What came of opening packs."""

    packs: list[Pack]
    damaged: list[Corrupt]


class Gone(Corrupt):
    """An open pack of which more is wanted is not in the bucket any more: since it was opened, what
    it held was merged into others and the pack collected, or dropped for good."""

    def __init__(self, ref: Ref) -> None:
        super().__init__(_damage("it is not there any more"), path=pack_key(ref.id))
        self.pack_id = ref.id


class Shelf:
    """Open packs. Several threads may use it."""

    def __init__(self, bucket: Bucket, workers: Callable[[], Executor]) -> None:
        self._bucket = bucket
        self._workers = workers
        self._cache: PackCache | None = None
        self._mutex = threading.Lock()
        self._open: OrderedDict[bytes, Pack] = OrderedDict()
        self._where: dict[bytes, Pack] = {}
        self._size = 0

    def use_cache(self, cache: PackCache | None) -> None:
        """Keep what is fetched from now on here too."""
        self._cache = cache

    # --- finding --------------------------------------------------------------------------------

    def holder(self, object_id: bytes) -> Pack | None:
        """An open pack that holds the object."""
        return self._where.get(object_id)

    def opened(self, pack_id: bytes) -> Pack | None:
        """A pack, if it is open."""
        return self._open.get(pack_id)

    def unopened(self, refs: Iterable[Ref]) -> list[Ref]:
        """Those of these packs that are not open."""
        return [ref for ref in refs if ref.id not in self._open]

    def open(self, refs: Iterable[Ref]) -> Opened:
        """Open these packs. Those that are not in the bucket any more are passed over: whoever
        still names them is out of date."""
        opened: list[Pack] = []
        damaged: list[Corrupt] = []
        for _, found in self._side_by_side(self._fetched, list(refs)):
            if isinstance(found, Corrupt):
                damaged.append(found)
            elif found is not None:
                opened.append(found)
        return Opened(opened, damaged)

    def whole(self, refs: Iterable[Ref]) -> list[Pack]:
        """These packs with all their content. Raises Corrupt, and Absent when one is gone."""
        return [pack for _, pack in self._side_by_side(self._whole, list(refs))]

    def _whole(self, ref: Ref) -> Pack:
        pack = self._open.get(ref.id)
        if pack is None or not pack.whole:
            pack = self._keep(self._pack(ref, self._whole_data(ref)))
        return pack

    def _side_by_side(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R]]:
        if len(items) < 2:
            return ((item, work(item)) for item in items)
        return zip(items, self._workers().map(work, items), strict=True)

    # --- fetching -------------------------------------------------------------------------------

    def _fetched(self, ref: Ref) -> Pack | Corrupt | None:
        opened = self._open.get(ref.id)
        if opened is not None:
            return opened
        try:
            small = ref.size <= packs.WHOLE
            return self._keep(self._pack(ref, self._whole_data(ref) if small else self._most(ref)))
        except Absent:
            return None
        except Corrupt as damaged:
            return damaged

    def _whole_data(self, ref: Ref) -> bytes:
        name = ref.id.hex()
        data = self._cached(name, lambda data: packs.is_whole(data, ref.id))
        if data is None:
            data = self._bucket.get(pack_key(ref.id))
            if not packs.is_whole(data, ref.id):
                raise _damaged(ref, "its bytes are not those that its name stands for")
            self._to_cache(name, data)
        return data

    def _most(self, ref: Ref) -> bytes:
        """The whole pack if it is in the cache, else its front."""
        whole = self._cached(ref.id.hex(), lambda data: packs.is_whole(data, ref.id))
        if whole is not None:
            return whole
        name = ref.id.hex() + _FRONT
        data = self._cached(name, lambda data: packs.is_front(data, ref))
        if data is None:
            data = self._bucket.get_range(pack_key(ref.id), 0, ref.front)
            if not packs.is_front(data, ref):
                raise _damaged(ref, "its front is not what the record says")
            self._to_cache(name, data)
        return data

    def _pack(self, ref: Ref, data: bytes) -> Pack:
        return Pack(ref, data, lambda start, end: self._part(ref, start, end))

    def _part(self, ref: Ref, start: int, end: int) -> bytes:
        try:
            data = self._bucket.get_range(pack_key(ref.id), start, end)
        except Absent:
            raise Gone(ref) from None
        if len(data) != end - start:
            raise _damaged(ref, "it is cut short")
        return data

    def _cached(self, name: str, sound: Callable[[bytes], bool]) -> bytes | None:
        data = self._cache.load(name) if self._cache else None
        if data is None or sound(data):
            return data
        assert self._cache is not None
        self._cache.drop(name)
        return None

    def _to_cache(self, name: str, data: bytes) -> None:
        if self._cache is not None:
            self._cache.store(name, data)

    # --- keeping --------------------------------------------------------------------------------

    def add(self, packed: Packed) -> Pack:
        """Take in a pack that was just written."""
        self._to_cache(packed.ref.id.hex(), packed.data)
        return self._keep(self._pack(packed.ref, packed.data))

    def _keep(self, pack: Pack) -> Pack:
        with self._mutex:
            before = self._open.pop(pack.ref.id, None)
            if before is not None:
                self._size -= len(before.data)
            self._open[pack.ref.id] = pack
            self._where.update(dict.fromkeys(pack.ids(), pack))
            self._size += len(pack.data)
            while self._size > MEMORY and len(self._open) > 1:
                self._close(self._open.popitem(last=False)[1])
        return pack

    def _close(self, pack: Pack) -> None:
        self._size -= len(pack.data)
        for object_id in pack.ids():
            if self._where.get(object_id) is pack:
                del self._where[object_id]

    def forget(self, pack_id: bytes) -> None:
        """Close a pack: what it holds is to be looked up elsewhere from now on."""
        with self._mutex:
            # Another thread may have opened it anew since.
            pack = self._open.pop(pack_id, None)
            if pack is not None:
                self._close(pack)

    def lose(self, pack_id: bytes) -> None:
        """Forget a pack that is not in the bucket any more, and its front in the cache."""
        self.forget(pack_id)
        if self._cache is not None:
            self._cache.drop(pack_id.hex() + _FRONT)

    def close(self) -> None:
        """Close all packs."""
        with self._mutex:
            self._open.clear()
            self._where.clear()
            self._size = 0

    def clear(self) -> None:
        """Close all packs, and forget what this machine keeps of the store."""
        self.close()
        if self._cache is not None:
            self._cache.clear()

    # --- reading --------------------------------------------------------------------------------

    def read_all(self, wanted: Sequence[tuple[Pack, bytes]]) -> list[Obj]:
        """Objects of open packs, in this order; what has to be fetched is fetched side by side.

        Raises Corrupt, and Gone when a pack cannot be fetched any more.
        """
        by_pack: dict[bytes, tuple[Pack, list[bytes]]] = {}
        for pack, object_id in wanted:
            if not pack.whole:
                by_pack.setdefault(pack.ref.id, (pack, []))[1].append(object_id)
        partial = [*by_pack.values()]
        filled = {pack.ref.id: pack for _, pack in self._side_by_side(self._fill, partial)}
        try:
            return [filled.get(pack.ref.id, pack).read(object_id) for pack, object_id in wanted]
        finally:
            for pack in filled.values():
                pack.hold(0, b"")

    def _fill(self, wanted: tuple[Pack, list[bytes]]) -> Pack:
        """The pack with the content of these objects at hand: all of it when they are the most."""
        pack, object_ids = wanted
        missing = pack.range_of([pack.slot(i) or 0 for i in object_ids])
        if missing is None:
            return pack
        start, end = missing
        try:
            if 2 * (end - start) > pack.ref.size - pack.ref.front:
                return self._whole(pack.ref)
        except Absent:
            raise Gone(pack.ref) from None
        pack.hold(start, self._part(pack.ref, start, end))
        return pack


def _damaged(ref: Ref, what: str) -> Corrupt:
    return Corrupt(_damage(what), path=pack_key(ref.id))


def _damage(what: str) -> str:
    return f"a pack is damaged: {what}"
