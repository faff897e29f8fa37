"""Dictionaries: what the messages of a store have in common, so that small blocks compress well.

A packed segment has one of its own, trained from its first messages. It stands in the first batch
of the segment and again in the last, for without it no message of the segment can be read.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import zstandard

SIZE = 64 << 10
"""Bytes of a dictionary. Larger ones gain little: the blocks are large themselves."""
SAMPLE = 16 << 10
"""Of longer messages only the beginning is learnt from."""
_FEWEST, _MOST = 64, 2000
"""Samples below which training finds nothing worth its place, and beyond which nothing new."""


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
    if sum(map(len, contents)) < 16 * SIZE:
        return None
    step = max(1, len(contents) // _MOST)
    samples: list[bytes | bytearray | memoryview] = [c[:SAMPLE] for c in contents[::step]]
    if len(samples) < _FEWEST:
        return None
    try:
        return Dictionary(zstandard.train_dictionary(SIZE, samples).as_bytes())
    except zstandard.ZstdError:
        return None  # nothing repeats
