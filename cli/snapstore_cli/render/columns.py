"""Records as lines: aligned columns on a terminal, fields parted by tabs elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest

from snapstore_cli.render import words
from snapstore_cli.render.style import Look, Role

_LEAST = 14
"""Columns that a name is given at least, and a last field where it holds as much; with the gap."""
_TOGETHER = 500
"""Records that are aligned before the first of them is shown: of many, nobody waits for all."""

Cell = tuple[Role, str]
"""A field: what it means, and its text without any line end."""


def lines(
    records: Iterable[Sequence[Cell]],
    look: Look,
    *,
    whole: int | None = None,
    run_on: int | None = None,
) -> Iterator[str]:
    """One line a record, whatever it holds; on a terminal it is cut to fit, elsewhere nothing is.

    On a terminal lines are cut from the right. The field ``whole`` is a name that must be typed to
    be of use: where it is too long to stand in a column, the others make way. Fields from number
    ``run_on`` on are not aligned: each follows the one before.
    """
    on_one = ([(role, words.one_line(text)) for role, text in record] for record in records)
    if look.width is None:
        for record in on_one:
            yield "\t".join(look.style(role, text) for role, text in record).rstrip("\t")
        return
    widths: list[int] = []
    while table := list(islice(on_one, _TOGETHER)):
        room = look.width if whole is None else _room(table, whole, look.width)
        needed = [
            max((n for n in map(words.cells, column) if at != whole or n <= room), default=0)
            for at, column in enumerate(_columns(table))
        ]
        widths = [max(pair) for pair in zip_longest(widths, needed, fillvalue=0)]
        for record in table:
            if whole is None or words.cells(record[whole][1]) <= room:
                yield _aligned(record, widths[:run_on], look)
            else:
                yield _around(record, whole, look)


def _room(table: list[list[Cell]], at: int, width: int) -> int:
    """Columns for the field ``at`` beside which the others fit, but for the last: it may hold a
    text of any length, of which a beginning is enough."""
    taken = [max(map(words.cells, column)) + 2 for column in _columns(table)]
    others = sum(taken) - sum(taken[at : at + 1]) - sum(taken[at + 1 :][-1:])
    return max(_LEAST, width - others - min(_LEAST, *taken[-1:])) - 2


def _around(record: list[Cell], at: int, look: Look) -> str:
    """A record that does not stand in columns: the field ``at``, and what of the others fits beside
    it. Those that matter least go first; it is cut only where the terminal is narrower."""
    assert look.width is not None
    role, name = record[at]
    before, behind = record[:at], [cell for cell in record[at + 1 :] if cell[1]]
    if _taken([*before, *behind[:-1]]) + words.cells(name) > look.width:
        before, behind = ([c for c in side if c[0] != "dim"] for side in (before, behind))
    drawn = "".join(look.style(*cell) + "  " for cell in before if cell[1])
    left = look.width - _taken(before)
    name = words.cut_middle(name, max(1, left))
    drawn, left = drawn + look.style(role, name), left - words.cells(name)
    for role, text in behind:
        if left < 3:
            break
        shown = words.cut(text, left - 1)
        drawn, left = f"{drawn} {look.style(role, shown)}", left - words.cells(shown) - 1
    return drawn


def _taken(cells: Sequence[Cell]) -> int:
    return sum(words.cells(text) + 2 for _, text in cells if text)


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
