"""The batch: what one commit appends to a segment, byte for byte.

All integers are little-endian. A batch is

    header   36 bytes
        magic         4s   b"snpB"
        version       B    1
        flags         B    bit 0 START   first batch of a segment: it holds the refs as they are
                           bit 1 SEAL    last batch of a segment: writing goes on in the next one
                           bit 2 NARROW  lengths in the directory are u16, else u32
                           bit 3 LOOSE   its writer did not wait for a sync of it
        blocks        I    number of blocks; at least 1
        records       I    number of records
        body length   I    bytes between header and trailer
        number        I    0 for the first batch of a segment, then counting up
        durable end   I    offset in this segment that was known to be synced when this was written
        previous      6s   first bytes of the digest of the batch before (of the segment before)
        crc           I    CRC-32 of the 32 bytes above: no length is trusted unverified
    body
        block table   I x blocks   stored length << 2 | codec (0 as it is, 1 zstd)
        block 0       structure: the directory, then the payloads of structure records
        block 1..     content: payloads of CONTENT records, at most 64 KiB (or one record) each
    trailer  24 bytes
        digest        16s  first bytes of the BLAKE3 of header and body
        length        I    length of the whole batch, so that a log can be walked backwards
        end           4s   b"Bpns"

    directory, at the start of block 0
        kinds         B x records
        lengths       H or I x records      of each payload, uncompressed
        counts        H x (blocks - 1)      records in each content block
        ids           32s x records with an id

Record kinds: 1-4 are objects (``snapstore.engine.Kind``) and have an id; 16 is a ref move, 17 a
page of refs; neither has an id. A reader skips kinds from 128 up, which have no id and lie in
block 0, and refuses other kinds that it does not know.

Structure and content are compressed apart. Structure is mostly hashes, which do not compress but
repeat within a batch; text beside them would be coded worse. And walking a history, listing
sessions or indexing a segment never inflates a message.

The commit argument. A batch counts if its trailer verifies. If the machine dies while it is
written, some of its bytes are missing: the trailer does not verify and the batch never was. If it
dies after fdatasync returned, all of it is there. There is no third case, because the ref move
lies in the same batch as what it points at.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Sequence
from itertools import accumulate

import zstandard
from blake3 import blake3

from snapstore.engine import Kind, Obj
from snapstore.errors import Corrupt, UnsupportedFormat

MAGIC, END = b"snpB", b"Bpns"
VERSION = 1
START, SEAL, NARROW, LOOSE = 1, 2, 4, 8

MOVE, REFS = 16, 17
FIRST_SKIPPABLE = 128

_HEAD = struct.Struct("<4sBBIIIII6s")
_CRC = struct.Struct("<I")
_TRAIL = struct.Struct("<16sI4s")
HEADER_SIZE = _HEAD.size + _CRC.size
TRAILER_SIZE = _TRAIL.size
CHAIN_SIZE = 6

MAX_BODY = 1 << 30
"""No body is longer; a header that says so is damaged, so nothing is allocated for it."""
MAX_BLOCK = 64 << 10
"""Content is cut into blocks of this size, so that reading one message inflates no more."""
MAX_PER_BLOCK = 4096
COMPRESS_FROM = 128

_RAW, _ZSTD = 0, 1


class Header:
    """A verified header."""

    __slots__ = ("blocks", "body", "durable_end", "flags", "number", "previous", "records", "size")

    def __init__(self, data: bytes, where: tuple[str, int]) -> None:
        if len(data) < HEADER_SIZE:
            raise _bad("a batch header is cut short", where)
        (magic, version, self.flags, self.blocks, self.records, self.body, self.number,
         self.durable_end, self.previous) = _HEAD.unpack_from(data)  # fmt: skip
        if magic != MAGIC or _CRC.unpack_from(data, _HEAD.size)[0] != zlib.crc32(data[: _HEAD.size]):
            raise _bad("a batch header does not verify", where)
        if version != VERSION:
            raise UnsupportedFormat(f"batch version {version} is not known (in {where[0]})")
        if self.body > MAX_BODY or self.blocks < 1 or 4 * self.blocks > self.body:
            raise _bad("a batch header makes no sense", where)
        self.size = HEADER_SIZE + self.body + TRAILER_SIZE


class Batch:
    """A batch whose digest verified, opened so that its records can be picked out."""

    __slots__ = ("_blocks", "_contents", "_ids", "_starts", "_structure", "_table", "data",
                 "digest", "header", "kinds", "lengths", "where")  # fmt: skip

    def __init__(self, data: bytes, where: tuple[str, int]) -> None:
        """Verify and open the batch that data starts with. Raises Corrupt."""
        header = Header(data, where)
        end = header.size
        if len(data) < end:
            raise _bad("a batch is cut short", where)
        digest, length, mark = _TRAIL.unpack_from(data, end - TRAILER_SIZE)
        covered = memoryview(data)[: end - TRAILER_SIZE]
        if mark != END or length != end or blake3(covered).digest()[:16] != digest:
            raise _bad("a batch does not verify", where)
        self.data, self.header, self.digest, self.where = data, header, digest, where
        self._open()

    def _open(self) -> None:
        header, data = self.header, self.data
        n, blocks = header.records, header.blocks
        table = struct.unpack_from(f"<{blocks}I", data, HEADER_SIZE)
        start = HEADER_SIZE + 4 * blocks
        self._table = table
        self._starts = (start,) if blocks == 1 else tuple(
            accumulate((t >> 2 for t in table), initial=start))  # fmt: skip
        structure = self._inflate(0)
        wide = 2 if header.flags & NARROW else 4
        ids_at = n + wide * n + 2 * (blocks - 1)
        if len(structure) < ids_at:
            raise _bad("a batch directory is cut short", self.where)
        self.kinds = kinds = structure[:n]
        self.lengths = struct.unpack_from(f"<{n}{'H' if wide == 2 else 'I'}", structure, n)
        with_id = n
        for kind in kinds:
            if kind > Kind.SNAPSHOT:
                if kind < FIRST_SKIPPABLE and kind not in (MOVE, REFS):
                    raise UnsupportedFormat(f"record kind {kind} is not known (in {self.where[0]})")
                with_id -= 1
        self._ids = structure[ids_at : ids_at + 32 * with_id]
        self._structure = structure
        self._contents: list[bytes | None] = [None] * blocks
        self._blocks = struct.unpack_from(f"<{blocks - 1}H", structure, ids_at - 2 * (blocks - 1))

    def _inflate(self, block: int) -> bytes:
        entry, start = self._table[block], self._starts[block]
        stored = self.data[start : start + (entry >> 2)]
        if entry & 3 == _RAW:
            return stored
        return decompress(stored, self.where)

    # --- picking records out ------------------------------------------------------------------

    def find(self, object_id: bytes) -> int:
        """The slot of an object of this id, or -1. Objects come before records without an id."""
        ids = self._ids
        at = ids.find(object_id)
        while at >= 0 and at % 32:
            at = ids.find(object_id, at + 1)
        return at >> 5 if at >= 0 else -1

    def id_at(self, slot: int) -> bytes:
        """The id of the object in a slot."""
        return self._ids[32 * slot : 32 * slot + 32]

    def payload(self, slot: int) -> bytes:
        """The payload of the record in a slot."""
        if self.kinds[slot] == Kind.CONTENT:
            return self._content(slot)
        kinds, lengths = self.kinds, self.lengths
        start = self._structure_start()
        for i in range(slot):
            if kinds[i] != Kind.CONTENT:
                start += lengths[i]
        return self._cut(self._structure, start, lengths[slot])

    def _structure_start(self) -> int:
        header = self.header
        wide = 2 if header.flags & NARROW else 4
        return (1 + wide) * header.records + 2 * (header.blocks - 1) + len(self._ids)

    def _content(self, slot: int) -> bytes:
        # Content records come first in the batch, in the order of the blocks.
        block, first = 1, 0
        for count in self._blocks:
            if slot < first + count:
                break
            first += count
            block += 1
        else:
            raise _bad("a batch directory names a block that is not there", self.where)
        whole = self._contents[block]
        if whole is None:
            whole = self._contents[block] = self._inflate(block)
        if slot == first:
            return self._cut(whole, 0, self.lengths[slot])
        return self._cut(whole, sum(self.lengths[first:slot]), self.lengths[slot])

    def _cut(self, whole: bytes, start: int, length: int) -> bytes:
        if start + length > len(whole):
            raise _bad("a record reaches past its block", self.where)
        return whole if length == len(whole) else whole[start : start + length]

    def object(self, slot: int) -> Obj:
        """The object in a slot."""
        return Obj(self.id_at(slot), self.kinds[slot], self.payload(slot))

    def objects(self) -> int:
        """How many objects there are: slots 0 up to this number."""
        return len(self._ids) >> 5

    def payloads(self, kind: int) -> list[bytes]:
        """The payloads of all records of a kind that has no id."""
        first = len(self._ids) >> 5
        return [self.payload(i) for i in range(first, len(self.kinds)) if self.kinds[i] == kind]


class Writer:
    """Makes batches. Not to be used by two threads at once: the compressor keeps state."""

    def __init__(self) -> None:
        self._fast = zstandard.ZstdCompressor(level=1, write_content_size=True)
        self._good = zstandard.ZstdCompressor(level=3, write_content_size=True)

    def pack(
        self,
        objects: Sequence[Obj],
        extra: Sequence[tuple[int, bytes]],
        *,
        flags: int,
        number: int,
        durable_end: int,
        previous: bytes,
    ) -> tuple[bytes, list[Obj], bytes]:
        """The bytes of a batch, the objects in the order of their slots, and its digest."""
        content = [o for o in objects if o.kind == Kind.CONTENT]
        ordered = content + [o for o in objects if o.kind != Kind.CONTENT]
        counts, blocks = self._content_blocks(content)
        lengths = [len(o.payload) for o in ordered] + [len(p) for _, p in extra]
        n = len(lengths)
        narrow = not lengths or max(lengths) < 1 << 16
        structure = b"".join((
            bytes([o.kind for o in ordered] + [kind for kind, _ in extra]),
            struct.pack(f"<{n}{'H' if narrow else 'I'}", *lengths),
            struct.pack(f"<{len(counts)}H", *counts),
            *[o.id for o in ordered],
            *[o.payload for o in ordered[len(content):]],
            *[p for _, p in extra],
        ))  # fmt: skip
        blocks.insert(0, _smaller(structure, self._fast))
        table = [len(data) << 2 | codec for codec, data in blocks]
        body = struct.pack(f"<{len(table)}I", *table) + b"".join([data for _, data in blocks])
        if len(body) > MAX_BODY:
            raise ValueError("a batch this large must be split by the engine")
        head = _HEAD.pack(MAGIC, VERSION, flags | (NARROW if narrow else 0), len(blocks), n,
                          len(body), number, durable_end, previous)  # fmt: skip
        covered = b"".join((head, _CRC.pack(zlib.crc32(head)), body))
        digest = blake3(covered).digest()[:16]
        return covered + _TRAIL.pack(digest, len(covered) + TRAILER_SIZE, END), ordered, digest

    def _content_blocks(self, content: list[Obj]) -> tuple[list[int], list[tuple[int, bytes]]]:
        counts: list[int] = []
        blocks: list[tuple[int, bytes]] = []
        waiting: list[bytes] = []
        size = 0
        for o in content:
            grown = size + len(o.payload)
            if waiting and (grown > MAX_BLOCK or len(waiting) == MAX_PER_BLOCK):
                counts.append(len(waiting))
                blocks.append(_smaller(b"".join(waiting), self._good))
                waiting, grown = [], len(o.payload)
            waiting.append(o.payload)
            size = grown
        if waiting:
            counts.append(len(waiting))
            blocks.append(_smaller(b"".join(waiting), self._good))
        return counts, blocks


def _smaller(raw: bytes, compressor: zstandard.ZstdCompressor) -> tuple[int, bytes]:
    if len(raw) >= COMPRESS_FROM:
        packed = compressor.compress(raw)
        if len(packed) <= len(raw) * 0.9:
            return _ZSTD, packed
    return _RAW, raw


class _Decompressors(threading.local):
    """One for each thread: they keep state, and making one costs more than using it."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor()


_mine = _Decompressors()


def decompress(stored: bytes, where: tuple[str, int]) -> bytes:
    """Inflate a block. What it claims to become is checked before anything is allocated."""
    try:
        if zstandard.frame_content_size(stored) > MAX_BODY:
            raise _bad("a block claims to inflate beyond all bounds", where)
        return _mine.zstd.decompress(stored)
    except zstandard.ZstdError as error:
        raise _bad(f"a block does not inflate ({error})", where) from error


def _bad(what: str, where: tuple[str, int]) -> Corrupt:
    return Corrupt(what, path=where[0], offset=where[1])
