"""How the blocks of a batch are made small, and large again.

A packed segment has a dictionary of its own: what its messages have in common, trained from the
first of them. It stands in the first batch of the segment and again in the last, for without it no
message of the segment can be read.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import zstandard

from snapstore.errors import Corrupt

RAW, ZSTD, ZSTD_DICT = 0, 1, 2
"""The codec of a block: as it is, compressed, compressed with the dictionary of its segment."""

MAX_INFLATED = 1 << 30
"""No block becomes larger; one that says so is damaged, so nothing is allocated for it."""
COMPRESS_FROM = 128

DICTIONARY_SIZE = 64 << 10
"""Larger ones gain little: the blocks are large themselves."""
SAMPLE = 16 << 10
"""Of longer messages only the beginning is learnt from."""
_FEWEST, _MOST = 64, 2000
"""Samples below which training finds nothing worth its place, and beyond which nothing new."""


@dataclass(frozen=True, slots=True)
class Density:
    """How much time goes into making batches small."""

    structure_level: int
    content_level: int
    block: int
    """Content is cut into blocks of this size, so that reading one message inflates no more."""


SAVING = Density(structure_level=1, content_level=3, block=64 << 10)
"""While somebody waits for a save."""
PACKED = Density(structure_level=9, content_level=9, block=256 << 10)
"""Higher levels make it a few percent smaller and take twenty times as long."""


class Dictionary:
    """A zstd dictionary. Safe to share between threads."""

    def __init__(self, data: bytes) -> None:
        """Raises zstandard.ZstdError or ValueError when the data is no dictionary."""
        self.data = data
        self._zstd = zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_FULLDICT)
        self._mine = threading.local()
        self._decompressor()

    def compressor(self, level: int) -> zstandard.ZstdCompressor:
        """A compressor that uses it, for one thread."""
        return zstandard.ZstdCompressor(
            level=level, dict_data=self._zstd, write_content_size=True, write_dict_id=False
        )

    def decompress(self, stored: bytes) -> bytes:
        """What was compressed with it. Raises zstandard.ZstdError."""
        return self._decompressor().decompress(stored)

    def _decompressor(self) -> zstandard.ZstdDecompressor:
        # They keep state, and making one costs more than using it.
        made: zstandard.ZstdDecompressor | None = getattr(self._mine, "made", None)
        if made is None:
            made = self._mine.made = zstandard.ZstdDecompressor(dict_data=self._zstd)
        return made


def train(contents: Sequence[bytes]) -> Dictionary | None:
    """A dictionary of what these have in common; None when there is too little to learn from."""
    if sum(map(len, contents)) < 16 * DICTIONARY_SIZE:
        return None
    step = max(1, len(contents) // _MOST)
    samples: list[bytes | bytearray | memoryview] = [c[:SAMPLE] for c in contents[::step]]
    if len(samples) < _FEWEST:
        return None
    try:
        return Dictionary(zstandard.train_dictionary(DICTIONARY_SIZE, samples).as_bytes())
    except zstandard.ZstdError:
        return None  # nothing repeats


def smaller(
    raw: bytes, compressor: zstandard.ZstdCompressor, worthwhile: int = COMPRESS_FROM
) -> tuple[int, bytes]:
    """(codec, bytes) of a block: compressed when it is as long as is worthwhile and gains by it."""
    if len(raw) >= worthwhile:
        packed = compressor.compress(raw)
        if len(packed) <= len(raw) * 0.9:
            return ZSTD, packed
    return RAW, raw


class _Decompressors(threading.local):
    """One for each thread: they keep state, and making one costs more than using it."""

    def __init__(self) -> None:
        self.zstd = zstandard.ZstdDecompressor()


_mine = _Decompressors()


def decompress(
    stored: bytes, where: tuple[str, int], dictionary: Dictionary | None = None
) -> bytes:
    """Inflate a block. What it claims to become is checked before anything is allocated."""
    path, offset = where
    try:
        if zstandard.frame_content_size(stored) > MAX_INFLATED:
            what = "a block claims to inflate beyond all bounds"
            raise Corrupt(what, path=path, offset=offset)
        return (dictionary or _mine.zstd).decompress(stored)
    except zstandard.ZstdError as error:
        what = f"a block does not inflate ({error})"
        raise Corrupt(what, path=path, offset=offset) from error
