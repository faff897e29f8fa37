"""The batch: what one commit appends to a segment, byte for byte.

All integers are little-endian. A batch is

    header   36 bytes
        magic         4s   b"snpB"
        version       B    1
        flags         B    bit 0 START   first batch of a segment: it holds the refs as they are
                           bit 1 SEAL    last batch of a segment: writing goes on in the next one
                           bit 2 NARROW  lengths in the directory are u16, else u32
                           bit 3 LOOSE   its writer did not wait for a sync of it
                           bit 4 PACKED  first batch of a segment that was packed: see pack.py
        blocks        I    number of blocks; at least 1
        records       I    number of records
        body length   I    bytes between header and trailer
        number        I    0 for the first batch of a segment, then counting up
        durable end   I    offset in this segment that was known to be synced when this was written
        previous      6s   first bytes of the digest of the batch before (of the segment before)
        crc           I    CRC-32 of the 32 bytes above: no length is trusted unverified
    body
        block table   I x blocks   stored length << 2 | codec (0 as it is, 1 zstd, 2 zstd
                                        with the dictionary of the segment: content only)
        block 0       structure: the directory, then the payloads of structure records
        block 1..     content: payloads of CONTENT records, at most 64 KiB (256 KiB in a packed
                      segment) or one record each
    trailer  24 bytes
        digest        16s  first bytes of the BLAKE3 of header and body
        length        I    length of the whole batch, so that a log can be walked backwards
        end           4s   b"Bpns"

    directory, at the start of block 0
        kinds         B x records
        lengths       H or I x records      of each payload, uncompressed
        counts        H x (blocks - 1)      records in each content block
        shared        I                     where in the structure payloads the ids of all CONTENT
                                            records stand, joined; 2^32 - 1: nowhere. Only there if
                                            there are content blocks
        ids           32s x CONTENT records (unless shared), then 32s x CHUNKED records

Record kinds: 1-4 are objects (``snapstore.engine.Kind``), 16 is a ref move, 17 a page of refs,
18 the dictionary of a packed segment.
Slots are numbered in the order of these kinds. The payload of a NODE or SNAPSHOT is its content, so
its id is its hash and stands nowhere else. Nor need the ids of the messages that a turn adds: the
list node of that turn holds them, joined, in their order.
A reader skips kinds from 128 up, which lie in block 0, and refuses others that it does not know.

Structure and content are compressed apart: structure is mostly hashes, which do not compress, and
text beside them would be coded worse. And walking a history, listing sessions or indexing a
segment never inflates a message.

The commit argument. A batch counts if its trailer verifies. If the machine dies while it is
written, some of its bytes are missing: the trailer does not verify and the batch never was. If it
dies after fdatasync returned, all of it is there. There is no third case, because the ref move
lies in the same batch as what it points at.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import itemgetter

import zstandard
from blake3 import blake3

from snapstore.engine import Kind, Obj
from snapstore.engines.log.codec import (
    RAW,
    SAVING,
    ZSTD,
    ZSTD_DICT,
    Density,
    Dictionary,
    decompress,
    smaller,
)
from snapstore.errors import Corrupt, UnsupportedFormat

MAGIC, END = b"snpB", b"Bpns"
VERSION = 1
START, SEAL, NARROW, LOOSE, PACKED = 1, 2, 4, 8, 16

MOVE, REFS, DICT = 16, 17, 18
FIRST_SKIPPABLE = 128

_HEAD = struct.Struct("<4sBBIIIII6s")
_U32 = struct.Struct("<I")
_TRAIL = struct.Struct("<16sI4s")
_NOT_SHARED = (1 << 32) - 1
# A member of an enumeration costs more to use than to count with.
_CONTENT, _CHUNKED, _NODE, _SNAPSHOT = map(int, Kind)
HEADER_SIZE = _HEAD.size + _U32.size
TRAILER_SIZE = _TRAIL.size
CHAIN_SIZE = 6

MAX_BODY = 1 << 30
"""No body is longer; a header that says so is damaged, so nothing is allocated for it."""
MAX_PER_BLOCK = 4096
COMPRESS_STRUCTURE_FROM = 2048
"""Below this, a block of hashes gains nothing that is worth the time of trying."""


class Header:
    """A verified header."""

    __slots__ = ("blocks", "body", "durable_end", "flags", "number", "previous", "records", "size")

    def __init__(self, data: bytes, where: tuple[str, int]) -> None:
        if len(data) < HEADER_SIZE:
            raise _bad("a batch header is cut short", where)
        (magic, version, self.flags, self.blocks, self.records, self.body, self.number,
         self.durable_end, self.previous) = _HEAD.unpack_from(data)  # fmt: skip
        (crc,) = _U32.unpack_from(data, _HEAD.size)
        if magic != MAGIC or crc != zlib.crc32(data[: _HEAD.size]):
            raise _bad("a batch header does not verify", where)
        if version != VERSION:
            raise UnsupportedFormat(f"batch version {version} is not known (in {where[0]})")
        if self.body > MAX_BODY or self.blocks < 1 or 4 * self.blocks > self.body:
            raise _bad("a batch header makes no sense", where)
        self.size = HEADER_SIZE + self.body + TRAILER_SIZE


class Batch:
    """A batch whose digest verified, opened so that its records can be picked out."""

    __slots__ = ("_blocks", "_content_ids", "_contents", "_counts", "_dictionary", "_payloads_at",
                 "_starts", "_structure", "chunked", "contents", "data", "digest", "header",
                 "kinds", "lengths", "objects", "where")  # fmt: skip

    def __init__(
        self,
        data: bytes,
        where: tuple[str, int],
        header: Header | None = None,
        dictionary: Callable[[], Dictionary] | None = None,
    ) -> None:
        """Verify and open the batch that data starts with, whose header may be known already.

        dictionary gives that of the segment, once a content is asked for that needs it.

        Raises Corrupt, and UnsupportedFormat for records of a later version.
        """
        header = header or Header(data, where)
        end = header.size
        if len(data) < end:
            raise _bad("a batch is cut short", where)
        digest, length, mark = _TRAIL.unpack_from(data, end - TRAILER_SIZE)
        covered = memoryview(data)[: end - TRAILER_SIZE]
        if mark != END or length != end or blake3(covered).digest(16) != digest:
            raise _bad("a batch does not verify", where)
        self.data, self.header, self.digest, self.where = data, header, digest, where
        self._dictionary = dictionary
        try:
            self._open()
        except (struct.error, IndexError) as error:
            raise _bad("a batch directory makes no sense", where) from error

    def _open(self) -> None:
        header, data = self.header, self.data
        n, blocks = header.records, header.blocks
        table = struct.unpack_from(f"<{blocks}I", data, HEADER_SIZE)
        start = HEADER_SIZE + 4 * blocks
        self._blocks = []
        for entry in table:
            self._blocks.append((entry, start))
            start += entry >> 2
        self._structure = structure = self._inflate(0)
        self.kinds = kinds = structure[:n]
        self.contents = kinds.count(_CONTENT)
        self.chunked = kinds.count(_CHUNKED)
        self.objects = self.contents + self.chunked + kinds.count(_NODE) + kinds.count(_SNAPSHOT)
        for kind in kinds[self.objects :]:
            if kind not in (MOVE, REFS, DICT) and kind < FIRST_SKIPPABLE:
                raise UnsupportedFormat(f"record kind {kind} is not known (in {self.where[0]})")
        narrow = header.flags & NARROW
        self.lengths = struct.unpack_from(f"<{n}{'H' if narrow else 'I'}", structure, n)
        self._starts = list(accumulate(self.lengths, initial=0))
        at = n + (2 if narrow else 4) * n
        self._counts = struct.unpack_from(f"<{blocks - 1}H", structure, at)
        self._open_ids(at + 2 * (blocks - 1))
        self._contents: list[bytes | None] = [None] * blocks

    def _open_ids(self, at: int) -> None:
        structure, wanted = self._structure, 32 * self.contents
        shared = _NOT_SHARED
        if self.contents:
            (shared,) = _U32.unpack_from(structure, at)
            at += 4
        alone = wanted if shared == _NOT_SHARED else 0
        self._payloads_at = after = at + alone + 32 * self.chunked
        if alone or not wanted:
            ids = structure[at:after]
        else:
            first = after + shared
            ids = structure[first : first + wanted] + structure[at:after]
        if len(ids) != wanted + 32 * self.chunked:
            raise IndexError
        self._content_ids = ids

    def _inflate(self, block: int) -> bytes:
        entry, start = self._blocks[block]
        stored = self.data[start : start + (entry >> 2)]
        codec = entry & 3
        if codec == RAW:
            return stored
        if codec == ZSTD_DICT and block and self._dictionary is not None:
            return decompress(stored, self.where, self._dictionary())
        if codec != ZSTD:
            raise _bad(f"a block says codec {codec}, which it cannot have", self.where)
        return decompress(stored, self.where)

    # --- picking records out ------------------------------------------------------------------

    def find_content(self, object_id: bytes) -> int:
        """The slot of a CONTENT or CHUNKED object of this id, or -1."""
        ids = self._content_ids
        at = ids.find(object_id)
        while at >= 0 and at % 32:
            at = ids.find(object_id, at + 1)
        return at >> 5 if at >= 0 else -1

    def id_at(self, slot: int) -> bytes:
        """The id of the object in a slot."""
        if slot < self.contents + self.chunked:
            return self._content_ids[32 * slot : 32 * slot + 32]
        return blake3(self._structured(slot)).digest()

    def ids(self) -> list[bytes]:
        """The ids of all objects, in the order of their slots."""
        return [self.id_at(slot) for slot in range(self.objects)]

    def payload(self, slot: int) -> bytes:
        """The payload of the record in a slot."""
        return self._content(slot) if slot < self.contents else self._structured(slot)

    def _structured(self, slot: int) -> bytes:
        start = self._payloads_at + self._starts[slot] - self._starts[self.contents]
        return self._cut(self._structure, start, self.lengths[slot])

    def run(self, slot: int, ids: bytes) -> list[bytes]:
        """The payloads of this CONTENT slot and those that follow, as long as their ids, joined,
        are those given, and they lie in one block."""
        block, first, count = self._block_of(slot)
        n = min(first + count - slot, len(ids) // 32)
        while self._content_ids[32 * slot : 32 * (slot + n)] != ids[: 32 * n]:
            n //= 2
        if not n:
            raise _bad("a record is not where it is said to be", self.where)
        whole, lengths = self._block(block), self.lengths
        at = self._starts[slot] - self._starts[first]
        found: list[bytes] = []
        for length in lengths[slot : slot + n]:
            found.append(whole[at : at + length])
            at += length
        if at > len(whole):
            raise _bad("a record reaches past its block", self.where)
        return found

    def in_one_block(self, slot: int) -> int:
        """How many CONTENT records, from this one on, lie in one block."""
        _, first, count = self._block_of(slot)
        return first + count - slot

    def _content(self, slot: int) -> bytes:
        block, first, _ = self._block_of(slot)
        whole = self._block(block)
        return self._cut(whole, self._starts[slot] - self._starts[first], self.lengths[slot])

    def _block_of(self, slot: int) -> tuple[int, int, int]:
        """The content block of a slot, the first slot in it, and how many it has."""
        first = 0
        for block, count in enumerate(self._counts, 1):
            if slot < first + count:
                return block, first, count
            first += count
        raise _bad("a batch directory names a block that is not there", self.where)

    def _block(self, block: int) -> bytes:
        whole = self._contents[block]
        if whole is None:
            whole = self._contents[block] = self._inflate(block)
        return whole

    def _cut(self, whole: bytes, start: int, length: int) -> bytes:
        if start + length > len(whole):
            raise _bad("a record reaches past its block", self.where)
        return whole[start : start + length]

    def object(self, slot: int, object_id: bytes | None = None) -> Obj:
        """The object in a slot; its id need not be computed again where it is known."""
        return Obj(object_id or self.id_at(slot), self.kinds[slot], self.payload(slot))

    def payloads(self, kind: int) -> list[bytes]:
        """The payloads of all records of a kind that is no object."""
        slots = range(self.objects, len(self.kinds))
        return [self._structured(slot) for slot in slots if self.kinds[slot] == kind]


class Writer:
    """Makes batches. Not to be used by two threads at once: the compressor keeps state."""

    def __init__(self, density: Density = SAVING, dictionary: Dictionary | None = None) -> None:
        self._block = density.block
        self._fast = zstandard.ZstdCompressor(
            level=density.structure_level, write_content_size=True
        )
        if dictionary is None:
            level = density.content_level
            self._good = zstandard.ZstdCompressor(level=level, write_content_size=True)
        else:
            self._good = dictionary.compressor(density.content_level)
        self._codec = ZSTD if dictionary is None else ZSTD_DICT

    def pack(
        self,
        objects: Sequence[Obj],
        extra: Sequence[tuple[int, bytes]],
        *,
        flags: int,
        number: int,
        durable_end: int,
        previous: bytes,
    ) -> tuple[bytes, bytes]:
        """The bytes of a batch and its digest. The objects come in the order of their slots."""
        ids, kinds, payloads = zip(*objects, strict=True) if objects else ((), (), ())
        for kind, payload in extra:
            kinds += (kind,)
            payloads += (payload,)
        contents, chunked = kinds.count(Kind.CONTENT), kinds.count(Kind.CHUNKED)
        lengths = tuple(map(len, payloads))
        blocks, counts = self._content_blocks(payloads[:contents], lengths)
        narrow = NARROW if not lengths or max(lengths) < 1 << 16 else 0
        joined = b"".join(payloads[contents:])
        structure = b"".join((
            bytes(kinds),
            struct.pack(f"<{len(lengths)}{'H' if narrow else 'I'}", *lengths),
            struct.pack(f"<{len(counts)}H", *counts),
            _shared(b"".join(ids[:contents]), joined),
            *ids[contents : contents + chunked],
            joined,
        ))  # fmt: skip
        blocks.insert(0, smaller(structure, self._fast, COMPRESS_STRUCTURE_FROM))
        body = bytearray()
        for codec, data in blocks:
            body += _U32.pack(len(data) << 2 | codec)
        for _, data in blocks:
            body += data
        if len(body) > MAX_BODY:
            raise ValueError("a batch this large must be split by the engine")
        head = _HEAD.pack(MAGIC, VERSION, flags | narrow, len(blocks), len(lengths), len(body),
                          number, durable_end, previous)  # fmt: skip
        covered = b"".join((head, _U32.pack(zlib.crc32(head)), body))
        digest = blake3(covered).digest(16)
        return covered + _TRAIL.pack(digest, len(covered) + TRAILER_SIZE, END), digest

    def _content_blocks(
        self, payloads: Sequence[bytes], lengths: Sequence[int]
    ) -> tuple[list[tuple[int, bytes]], list[int]]:
        """The compressed content blocks, and how many records are in each."""
        blocks: list[tuple[int, bytes]] = []
        counts: list[int] = []
        first, size = 0, 0
        for n, _ in enumerate(payloads):
            if n > first and (size + lengths[n] > self._block or n - first == MAX_PER_BLOCK):
                blocks.append(self._content_block(payloads[first:n]))
                counts.append(n - first)
                first, size = n, 0
            size += lengths[n]
        if payloads:
            blocks.append(self._content_block(payloads[first:]))
            counts.append(len(payloads) - first)
        return blocks, counts

    def _content_block(self, payloads: Sequence[bytes]) -> tuple[int, bytes]:
        codec, data = smaller(b"".join(payloads), self._good)
        return (self._codec if codec == ZSTD else codec), data


def _shared(ids: bytes, payloads: bytes) -> bytes:
    """The part of the directory that says where the ids of the contents stand, joined."""
    if not ids:
        return b""
    at = payloads.find(ids)
    return _U32.pack(at) if at >= 0 else _U32.pack(_NOT_SHARED) + ids


slot_order = itemgetter(1)
"""Sort key that puts objects in the order of slots: by kind."""


def _bad(what: str, where: tuple[str, int]) -> Corrupt:
    return Corrupt(what, path=where[0], offset=where[1])
