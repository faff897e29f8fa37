"""Sheets of what batches hold, checked against their ids.

Most batches hold the few objects of a turn, so several make a sheet: whoever takes it goes through
one kind of thing after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from blake3 import blake3

from snapstore.engine import Move, Obj, Problem
from snapstore.engines.log.batch import REFS
from snapstore.engines.log.laid import Laid
from snapstore.engines.log.records import decode_page, moves_in
from snapstore.engines.sheet import Sheet
from snapstore.errors import Corrupt

_MOST = 1 << 20
"""Bytes of contents from which on a sheet is full."""


class Sheets:
    """Takes batches of a file apart; hands out sheets of them, and what was wrong."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._new_sheet()

    def _new_sheet(self) -> None:
        self._size = 0
        self._ids: list[bytes] = []
        self._sizes: list[int] = []
        self._contents: list[bytes] = []
        self._objects: list[Obj] = []
        self._moves: list[Move] = []

    def add(self, offset: int, laid: Laid, wanted: bool) -> Iterator[Problem | Sheet]:
        """Take the batch at an offset; wanted: whether its contents are to be read."""
        try:
            blocks, objects = laid.blocks(), laid.take_structure().objects
            ids, moves = laid.content_ids(), moves_in(laid)
            for page in laid.payloads(REFS):
                decode_page(page)
        except Corrupt as error:
            yield Problem("damaged_record", self._path, offset, None, str(error))
            return
        for block, slots in enumerate(blocks):
            mine = ids[slots.start : slots.stop]
            self._ids += mine
            self._sizes += laid.lengths[slots.start : slots.stop]
            if wanted:
                yield from self._read(offset, laid, block, slots, mine)
            if self._size > _MOST:
                yield from self.rest()
        self._objects += objects
        self._moves += moves

    def _read(
        self, offset: int, laid: Laid, block: int, slots: range, ids: list[bytes]
    ) -> Iterator[Problem]:
        """A block that cannot be read is as many problems as it has objects."""
        try:
            contents = laid.contents_of(block, slots)
        except Corrupt as error:
            for object_id in ids:
                yield Problem("damaged_record", self._path, offset, object_id, str(error))
            return
        found = [blake3(content).digest() for content in contents]
        if found != ids:
            for is_id, object_id in zip(found, ids, strict=True):
                if is_id != object_id:
                    message = f"object {object_id.hex()} holds something else"
                    yield Problem("wrong_content", self._path, offset, object_id, message)
        self._contents += contents
        self._size += sum(map(len, contents))

    def rest(self) -> Iterator[Sheet]:
        """What was taken and not handed out yet."""
        contents = self._contents if len(self._contents) == len(self._ids) else ()
        yield Sheet(self._ids, self._sizes, contents, self._objects, self._moves)
        self._new_sheet()
