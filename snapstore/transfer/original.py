"""Files that were imported, and the rows of their turns, as they stood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from snapstore import values
from snapstore.errors import Corrupt
from snapstore.formats import jsonl
from snapstore.formats.jsontext import write
from snapstore.model.layout import Layout
from snapstore.model.pages import RAW, PageRow, Part, decode_page, parts_of
from snapstore.objects import Objects

_PAGES_AT_ONCE = 64


class FileRow(NamedTuple):
    """A row of a file that was imported."""

    place: int
    gap: bytes
    raw: bytes
    value: Any
    beside: bool
    """Whether it is no part of the conversation."""


def original(objects: Objects, layout_id: bytes) -> Iterator[bytes]:
    """The bytes of a file, piece by piece. Raises ObjectMissing or Corrupt."""
    layout = Layout.decode(objects.content(layout_id), layout_id)
    pages = dict.fromkeys(page for head in layout.heads for page in pages_of_line(objects, head))
    if layout.rest is not None:
        pages[layout.rest] = None
    texts: dict[int, tuple[bytes, bytes]] = {}
    for row in rows_of(objects, list(pages)):
        texts[row.place] = row.gap, row.raw
    for place in range(len(texts)):
        if place not in texts:
            raise Corrupt(f"row {place + 1} of an imported file is in none of its pages")
        yield from texts.pop(place)
    yield b"\n" if layout.end is None else objects.content(layout.end)


def pages_of_line(objects: Objects, head: bytes) -> list[bytes]:
    """The pages of the turns of a line, in their order; turns that have none are passed over."""
    pages = [record.rows for _, record in objects.snapshots.line(head) if record.rows]
    return pages[::-1]


def rows_of(objects: Objects, pages: Sequence[bytes]) -> Iterator[FileRow]:
    """The rows of these pages, page by page. Raises ObjectMissing or Corrupt."""
    for first in range(0, len(pages), _PAGES_AT_ONCE):
        some = pages[first : first + _PAGES_AT_ONCE]
        rows = [row for page in some for row in decode_page(objects.content(page), page)]
        wanted = list(dict.fromkeys(parts_of(rows)))
        parts = dict(zip(wanted, objects.contents(wanted), strict=True))
        for row in rows:
            yield _file_row(row, parts)


def _file_row(row: PageRow, parts: dict[bytes, bytes]) -> FileRow:
    if row.style != RAW:
        value = _whole(row.value, parts)
        return FileRow(row.place, row.gap, write(value, row.style), value, row.beside)
    raw = parts[row.value.id] if type(row.value) is Part else row.value
    if type(raw) is not bytes:
        raise Corrupt(f"row {row.place + 1} of an imported file is not bytes, as its page says")
    read = jsonl.parse(raw).rows
    return FileRow(row.place, row.gap, raw, read[0].value if read else None, row.beside)


def _whole(value: Any, parts: dict[bytes, bytes]) -> Any:
    kind = type(value)
    if kind is Part:
        return values.decode(parts[value.id])
    if kind is dict:
        return {key: _whole(member, parts) for key, member in value.items()}
    if kind is list:
        return [_whole(member, parts) for member in value]
    return value
