"""Layouts: how a file that was imported is put together again from the pages of its turns.

A layout is a msgpack array

    [heads, rest, end]
    heads   snapshots of the last turns of all lines of the session, the live one first, joined; at
            the end, if there are any, the snapshot of the files beside it (see transfer.beside)
    rest    page of the rows that no turn of these lines holds, 32 bytes; nil for none
    end     what stands behind the last row, the id of a content object; nil for one line feed

It stands in the info of the move that imported the file, under ``LAYOUT``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from snapstore.ids import SIZE
from snapstore.model.wire import damaged, is_link, pack, unpack

LAYOUT = "layout"
"""The key in the info of a move."""

_LINE_FEED = b"\n"
_FIELDS = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """A decoded layout."""

    heads: tuple[bytes, ...]
    rest: bytes | None
    end: bytes | None

    @classmethod
    def of(
        cls,
        heads: Sequence[bytes],
        rest: bytes | None,
        end: bytes,
        put: Callable[[bytes], bytes],
    ) -> Layout:
        """The layout of a file that ends with these bytes, which put keeps."""
        return cls(tuple(heads), rest, None if end == _LINE_FEED else put(end))

    def encode(self) -> bytes:
        """The layout as an object's content."""
        return pack([b"".join(self.heads), self.rest, self.end])

    @classmethod
    def decode(cls, content: bytes, layout_id: bytes) -> Layout:
        """The layout in this content; raises Corrupt when it holds none."""
        fields = unpack(content, layout_id, most=_FIELDS)
        if len(fields) != _FIELDS:
            raise damaged(layout_id, f"a layout has {_FIELDS} fields, not {len(fields)}")
        heads, rest, end = fields
        if type(heads) is not bytes or len(heads) % SIZE or not heads:
            raise damaged(layout_id, "a layout names the last turn of each line")
        if not (is_link(rest) and is_link(end)):
            raise damaged(layout_id, "a link of a layout is no id")
        ids = tuple(heads[at : at + SIZE] for at in range(0, len(heads), SIZE))
        return cls(ids, rest, end)
