"""Records as lines: aligned columns on a terminal, fields parted by tabs elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from snapstore_cli.render import words
from snapstore_cli.render.style import Look, Role

_LEAST = 14
"""Columns that a field keeps which gives way to others, its gap included."""
_TOGETHER = 500
"""Records that are aligned before the first of them is shown: of many, nobody waits for all."""

Cell = tuple[Role, str]
"""A field: what it means, and its text without any line end."""


def lines(
    records: Iterable[Sequence[Cell]],
    look: Look,
    *,
    flexible: int | None = None,
    run_on: int | None = None,
) -> Iterator[str]:
    """One line a record, whatever it holds; on a terminal it is cut to fit, elsewhere nothing is.

    The field ``flexible``, a name say, gives way to those behind it; without one they are cut from
    the right. Fields from number ``run_on`` on are not aligned: each follows the one before.
    """
    on_one = ([(role, words.one_line(text)) for role, text in record] for record in records)
    if look.width is None:
        for record in on_one:
            yield "\t".join(look.style(role, text) for role, text in record).rstrip("\t")
        return
    widths: list[int] = []
    while table := list(islice(on_one, _TOGETHER)):
        if flexible is not None:
            _make_room(table, flexible, look.width)
        needed = [max(map(words.cells, column)) for column in _columns(table)]
        widths = [max(pair) for pair in zip_longest(widths, needed, fillvalue=0)]
        for record in table:
            yield _aligned(record, widths[:run_on], look)


def _make_room(table: list[list[Cell]], at: int, width: int) -> None:
    """Cut the field ``at`` of each record so that the others fit, but for the last: it may hold a
    text of any length, of which a beginning is enough."""
    if not table:
        return
    taken = [max(map(words.cells, column)) + 2 for column in _columns(table)]
    others = sum(taken) - sum(taken[at : at + 1]) - sum(taken[at + 1 :][-1:])
    room = max(_LEAST, width - others - min(_LEAST, *taken[-1:]))
    for record in table:
        role, text = record[at]
        record[at] = role, words.cut_middle(text, room - 2)


def _columns(table: list[list[Cell]]) -> Iterator[list[str]]:
    for at in range(max(map(len, table), default=0)):
        yield [record[at][1] if at < len(record) else "" for record in table]


def _aligned(record: list[Cell], widths: list[int], look: Look) -> str:
    """``widths`` are those of the fields that are aligned."""
    assert look.width is not None
    drawn, used = "", 0
    for at, (role, text) in enumerate(record):
        room = look.width - used
        if room <= 0:
            break
        shown = words.cut(text, room)
        taken = words.cells(shown)
        width, gap = (widths[at], 2) if at < len(widths) else (taken, 1)
        fill = width - taken + (gap if width else 0)
        drawn += look.style(role, shown) + " " * fill
        used += taken + fill
    return drawn.rstrip(" ")
