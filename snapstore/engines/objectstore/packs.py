"""Packs: the objects of one save, or of several that were merged, as one immutable object.

A pack is one batch, byte for byte as local segments hold them (``snapstore.engines.log.batch``),
with a record of kind 128 that holds 16 random bytes. Its name is the digest in its trailer, so a
name proves its bytes, and because of the random bytes no name is ever used twice: an upload can
never revive a pack that a garbage collection is about to delete.

The batch begins with its directory and all structure. How long that *front* is stands where the
pack is named (``Ref``), so one ranged read gives everything that a walk over turns, histories and
maps needs, and further ones the content that is asked for. Small packs are read whole.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from blake3 import blake3

from snapstore.engine import Kind, Obj
from snapstore.engines.log import batch
from snapstore.engines.log.batch import HEADER_SIZE, TRAILER_SIZE, Batch, Header, Writer
from snapstore.engines.log.codec import decompress
from snapstore.errors import Corrupt
from snapstore.ids import object_id

WHOLE = 256 << 10
"""Up to this size a pack is read whole: a second request costs more than the bytes."""

_NONCE = 128
_CHECK_SIZE = 8

Fetch = Callable[[int, int], bytes]
"""(start, end) -> these bytes of a pack."""


class Ref(NamedTuple):
    """A pack as it is named in a record."""

    id: bytes
    size: int
    """Bytes in all."""
    front: int
    """Bytes of the directory and structure at its beginning."""
    check: bytes
    """First 8 bytes of the BLAKE3 of the front."""
    tier: int
    """How often what is in it was merged."""


class Packed(NamedTuple):
    """A pack that was just made."""

    ref: Ref
    data: bytes


def make(objects: Sequence[Obj], tier: int) -> Packed:
    """A pack of these objects, which keep their order within a kind."""
    data, digest = Writer().pack(
        sorted(objects, key=batch.slot_order),
        [(_NONCE, os.urandom(16))],
        flags=0,
        number=0,
        durable_end=0,
        previous=bytes(batch.CHAIN_SIZE),
    )
    return Packed(ref_of(data, digest, tier), data)


def ref_of(data: bytes, pack_id: bytes, tier: int) -> Ref:
    """How a pack is named in a record, given its bytes."""
    front = front_length(data)
    return Ref(pack_id, len(data), front, _check(data[:front]), tier)


def front_length(data: bytes) -> int:
    """How long the front of the pack is that begins with these bytes. Raises Corrupt."""
    blocks: int = Header(data, ("pack", 0)).blocks
    if len(data) < HEADER_SIZE + 4:
        raise Corrupt("a pack is cut short", path="pack", offset=0)
    (first,) = struct.unpack_from("<I", data, HEADER_SIZE)
    return HEADER_SIZE + 4 * blocks + int(first >> 2)


def is_whole(data: bytes, pack_id: bytes) -> bool:
    """Whether these are all the bytes of this pack."""
    return blake3(data[:-TRAILER_SIZE]).digest(16) == pack_id


def is_front(data: bytes, ref: Ref) -> bool:
    """Whether these bytes are the front of this pack."""
    return len(data) == ref.front and _check(data) == ref.check


def _check(front: bytes) -> bytes:
    return blake3(front).digest(_CHECK_SIZE)


class Pack(Batch):
    """An open pack, of which the content may not have been fetched yet. For several threads."""

    __slots__ = ("_fetch", "_firsts", "_last", "_part", "_slots", "_starts", "ref",
                 "structure_ids")  # fmt: skip

    def __init__(self, ref: Ref, data: bytes, fetch: Fetch) -> None:
        """Data is the whole pack or its front, and has been checked. Raises Corrupt."""
        where = (f"pack {ref.id.hex()}", 0)
        self.ref, self.data, self.where, self.digest = ref, data, where, ref.id
        self.header = Header(data, where)
        self._dictionary = None
        self._fetch = fetch
        self._last: tuple[int, bytes] = (0, b"")
        self._part: tuple[int, bytes] = (0, b"")
        try:
            self._open()
        except (struct.error, IndexError) as error:
            raise Corrupt("a pack's directory makes no sense", path=where[0]) from error
        self._index()

    def _index(self) -> None:
        """Where each payload lies, so that picking one out does not cost the length of the pack."""
        self._firsts = [0, *accumulate(self._counts)]
        self._starts = [0, *accumulate(self.lengths)]
        contents = self.contents
        self.structure_ids = [
            object_id(self._structured(slot))
            for slot in range(contents + self.chunked, self.objects)
        ]
        self._slots = {object_id: slot for slot, object_id in enumerate(self.ids())}

    def ids(self) -> list[bytes]:
        """The ids of all objects, in the order of their slots."""
        known = self.contents + self.chunked
        joined = self._content_ids
        return [joined[32 * n : 32 * n + 32] for n in range(known)] + self.structure_ids

    @property
    def whole(self) -> bool:
        """Whether all of it has been fetched."""
        return len(self.data) == self.ref.size

    def slot(self, object_id: bytes) -> int | None:
        """The slot of an object; None when it is not in this pack."""
        return self._slots.get(object_id)

    def kind(self, object_id: bytes) -> int:
        """The kind of an object that is in this pack."""
        return self.kinds[self._slots[object_id]]

    def read(self, wanted: bytes) -> Obj:
        """The object of this id, which must be in the pack. Raises Corrupt."""
        slot = self._slots[wanted]
        o = Obj(wanted, self.kinds[slot], self.payload(slot))
        # A whole pack was checked against its name, and a front against the record.
        if o.kind == Kind.CONTENT and not self.whole and object_id(o.payload) != wanted:
            raise Corrupt(f"object {wanted.hex()} holds something else", path=self.where[0])
        return o

    def all(self) -> list[Obj]:
        """All objects, in the order of their slots."""
        return [self.read(object_id) for object_id in self.ids()]

    def range_of(self, slots: Sequence[int]) -> tuple[int, int] | None:
        """From where to where the content in these slots lies in what was not fetched yet."""
        if self.whole:
            return None
        blocks = [self._block_of(slot)[0] for slot in slots if slot < self.contents]
        if not blocks:
            return None
        (_, start), (entry, last) = self._blocks[min(blocks)], self._blocks[max(blocks)]
        return start, last + (entry >> 2)

    def hold(self, start: int, data: bytes) -> None:
        """Keep a part of the content at hand, from this offset on, in place of the last such."""
        self._part = (start, data)

    # --- how a batch finds its parts, for one that has thousands ----------------------------------

    def _structured(self, slot: int) -> bytes:
        starts = self._starts
        start = self._payloads_at + starts[slot] - starts[self.contents]
        return self._cut(self._structure, start, self.lengths[slot])

    def _content(self, slot: int) -> bytes:
        block, first, _ = self._block_of(slot)
        starts = self._starts
        return self._cut(self._block(block), starts[slot] - starts[first], self.lengths[slot])

    def _block_of(self, slot: int) -> tuple[int, int, int]:
        firsts = self._firsts
        at = bisect_right(firsts, slot) - 1
        if at + 1 >= len(firsts):
            raise Corrupt("a pack names a block that is not there", path=self.where[0])
        return at + 1, firsts[at], firsts[at + 1] - firsts[at]

    def _block(self, block: int) -> bytes:
        """Neighbours are read one after the other, so the block inflated last is remembered."""
        number, whole = self._last
        if number != block:
            whole = self._inflate(block)
            self._last = (block, whole)
        return whole

    def _inflate(self, block: int) -> bytes:
        entry, start = self._blocks[block]
        end = start + (entry >> 2)
        if end <= len(self.data):
            return super()._inflate(block)
        first, part = self._part
        at_hand = first <= start and end <= first + len(part)
        stored = part[start - first : end - first] if at_hand else self._fetch(start, end)
        return decompress(stored, self.where) if entry & 3 else stored
