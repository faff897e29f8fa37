"""A segment from its first batch to its last, each opened to take everything out of it.

Who looks up records one by one inflates and cuts out no more than was asked for. Here everything
is wanted, in the order in which it lies.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from blake3 import blake3

from snapstore.engine import Obj
from snapstore.engines.log.batch import HEADER_SIZE, TRAILER_SIZE, Batch, Header
from snapstore.engines.log.segment import Segment
from snapstore.errors import Corrupt
from snapstore.ids import SIZE

_WINDOW = 1 << 20
_SMALL = 64 << 10
"""A batch up to this size is read whole even if only its structure is wanted: that costs no more,
and then it verifies."""


class Structure(NamedTuple):
    """What lies in block 0 of a batch."""

    objects: list[Obj]
    """CHUNKED objects, nodes and snapshots, in the order of their slots."""
    extra: list[tuple[int, bytes]]
    """Kind and payload of the records that are no objects."""


class Laid(Batch):
    """A batch, opened to take everything out of it."""

    __slots__ = ("_taken",)
    _taken: Structure

    @classmethod
    def structure_of(cls, segment: Segment, offset: int, header: Header) -> Laid:
        """A batch without its contents, which are not even read. Its digest cannot be checked: that
        it is sound shows in its ids, and in what refers to them. Raises as Batch does."""
        first = os.pread(segment.fd, 4, offset + HEADER_SIZE)
        stored = int.from_bytes(first, "little") >> 2
        end = HEADER_SIZE + 4 * header.blocks + stored
        laid = cls.__new__(cls)
        laid.data = os.pread(segment.fd, min(end, header.size), offset)
        laid.header, laid.where = header, (segment.name, offset)
        laid.digest = os.pread(segment.fd, 16, offset + header.size - TRAILER_SIZE)
        laid._dictionary = segment.dictionary
        try:
            laid._open()
        except (struct.error, IndexError) as error:
            raise laid._damaged("a batch directory makes no sense") from error
        return laid

    def content_ids(self) -> list[bytes]:
        """The ids of the CONTENT records, in order."""
        ids = self._content_ids
        return [ids[at : at + SIZE] for at in range(0, SIZE * self.contents, SIZE)]

    def blocks(self) -> list[range]:
        """The slots of each content block. Raises Corrupt."""
        found: list[range] = []
        slot = 0
        for count in self._counts:
            found.append(range(slot, slot + count))
            slot += count
        if slot != self.contents:
            raise self._damaged("a batch directory does not say where all records are")
        return found

    def contents_of(self, block: int, slots: range) -> list[bytes]:
        """What the records of a content block hold; the first is number 0. Raises Corrupt."""
        whole, at = self._inflate(block + 1), 0
        found: list[bytes] = []
        for length in self.lengths[slots.start : slots.stop]:
            found.append(whole[at : at + length])
            at += length
        if at > len(whole):
            raise self._damaged("a record reaches past its block")
        return found

    def id_at(self, slot: int) -> bytes:
        """See ``Batch.id_at``; after take_structure no hash is made twice."""
        at = slot - self.contents
        return self._taken.objects[at].id if at >= 0 else super().id_at(slot)

    def payloads(self, kind: int) -> list[bytes]:
        """See ``Batch.payloads``; after take_structure."""
        return [payload for found, payload in self._taken.extra if found == kind]

    def take_structure(self) -> Structure:
        """All that is no CONTENT. Raises Corrupt."""
        first, count = self.contents, self.objects
        starts = self._starts
        base = self._payloads_at - starts[first]
        structure = self._structure
        payloads = [structure[base + a : base + b] for a, b in pairwise(starts[first:])]
        if base + starts[-1] > len(structure):
            raise self._damaged("a record reaches past its block")
        known = self._content_ids[SIZE * first :]
        ids = [known[at : at + SIZE] for at in range(0, len(known), SIZE)]
        ids += [blake3(payload).digest() for payload in payloads[self.chunked : count - first]]
        objects = list(map(Obj, ids, self.kinds[first:count], payloads))
        extra = list(zip(self.kinds[count:], payloads[count - first :], strict=True))
        self._taken = Structure(objects, extra)
        return self._taken

    def _damaged(self, what: str) -> Corrupt:
        return Corrupt(what, path=self.where[0], offset=self.where[1])


def batches(
    segment: Segment, start: int, stop: int, share: float
) -> Iterator[tuple[int, Laid, bool]]:
    """(offset, batch, whether its contents are wanted) from one offset to another; share: of how
    many batches they are, from 0 to 1.

    Ends with what Batch raises at the first one that does not verify.
    """
    begin, window = start, b""
    ahead = _WINDOW if share >= 1 else _SMALL
    while start < stop:
        at = start - begin
        if at + HEADER_SIZE > len(window):
            begin, at, window = start, 0, os.pread(segment.fd, min(ahead, stop - start), start)
        where = segment.name, start
        header = Header(window[at : at + HEADER_SIZE], where)
        size = header.size
        if start + size > stop:
            raise Corrupt("a batch is cut short", path=segment.name, offset=start)
        wanted = share >= 1 or random.random() < share
        if wanted or size <= _SMALL:
            if at + size > len(window):
                most = min(max(ahead, size), stop - start)
                begin, at, window = start, 0, os.pread(segment.fd, most, start)
            laid = Laid(window[at : at + size], where, header, segment.dictionary)
        else:
            laid = Laid.structure_of(segment, start, header)
        yield start, laid, wanted
        start += size
