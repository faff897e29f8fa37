"""Records as lines: aligned columns on a terminal, fields parted by tabs elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from snapstore_cli.render import words
from snapstore_cli.render.style import Look, Role

Cell = tuple[Role, str]
"""A field: what it means, and its text without any line end."""


def lines(records: Iterable[Sequence[Cell]], look: Look) -> Iterator[str]:
    """One line a record. On a terminal the last field is cut to fit; elsewhere nothing is."""
    if look.width is None:
        for record in records:
            yield "\t".join(look.style(role, text) for role, text in record).rstrip("\t")
        return
    table = [list(record) for record in records]
    widths = [max(map(words.cells, column)) for column in _columns(table)]
    for record in table:
        yield _aligned(record, widths, look)


def _columns(table: list[list[Cell]]) -> Iterator[list[str]]:
    for at in range(max(map(len, table), default=0)):
        yield [record[at][1] if at < len(record) else "" for record in table]


def _aligned(record: list[Cell], widths: list[int], look: Look) -> str:
    assert look.width is not None
    drawn, used = "", 0
    for at, (role, text) in enumerate(record):
        room = look.width - used
        if room <= 0:
            break
        shown = words.cut(text, room)
        drawn += look.style(role, shown)
        if at < len(record) - 1:
            gap = widths[at] - words.cells(shown) + (2 if widths[at] else 0)
            drawn += " " * gap
            used += words.cells(shown) + gap
    return drawn.rstrip(" ")
