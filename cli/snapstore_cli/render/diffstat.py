"""A difference between two turns in numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from snapstore.diff import Diff
from snapstore_cli.render import columns, words
from snapstore_cli.render.columns import Cell
from snapstore_cli.render.style import Look

_LONGEST_NAME = 20
_LONGEST_BAR = 24
_FIRST, _GAPS = len("scratchpad"), 10
"""Columns of what a row is about; and of the gaps between its fields, and of bars rounded up."""


@dataclass(frozen=True, slots=True)
class _Count:
    """Of turns or messages: how many both sides have, and how many only one."""

    what: str
    shared: int
    left: int
    right: int


@dataclass(frozen=True, slots=True)
class _Changes:
    """Of keys or paths: how many were added, removed, changed."""

    what: str
    added: int
    removed: int
    changed: int


def stat(diff: Diff, left: str, right: str, parts: Collection[str], look: Look) -> Iterator[str]:
    """A line each for turns, messages, scratchpad and files; a table on a terminal."""
    counts = list(_counts(diff)) if "messages" in parts else []
    changes = [row for row in _changes(diff) if row.what in parts]
    if look.terminal:
        yield from _tables(counts, changes, left, right, look)
        return
    for row in counts:
        told = f"{row.shared} shared, {row.left} only in {left}, {row.right} only in {right}"
        yield f"{row.what:<10}  {told}"
    for one in changes:
        told = f"{one.added} added, {one.removed} removed, {one.changed} changed"
        yield f"{one.what:<10}  {told}"


def _counts(diff: Diff) -> Iterator[_Count]:
    yield _Count("turns", diff.base.turn if diff.base else 0, len(diff.left), len(diff.right))
    held = diff.history
    yield _Count("messages", held.shared, len(held.left), len(held.right))


def _changes(diff: Diff) -> Iterator[_Changes]:
    pad, held = diff.scratchpad, diff.files
    yield _Changes("scratchpad", len(pad.added), len(pad.removed), len(pad.changed))
    if held is not None:
        yield _Changes("files", len(held.added), len(held.removed), len(held.changed))


# --- as tables -----------------------------------------------------------------------------------


def _tables(
    counts: Sequence[_Count], changes: Sequence[_Changes], left: str, right: str, look: Look
) -> Iterator[str]:
    names = [words.cut_middle(words.one_line(name), _LONGEST_NAME) for name in (left, right)]
    rows: list[list[Cell]] = []
    if counts:
        rows.append([("", ""), ("dim", "shared"), ("removed", names[0]), ("added", names[1])])
        rows += [_numbers(row.what, row.shared, row.left, row.right) for row in counts]
    if counts and changes:
        rows.append([("", "")])
    if changes:
        rows.append([("", ""), ("added", "added"), ("removed", "removed"), ("", "changed")])
        rows += [_numbers(one.what, one.added, one.removed, one.changed) for one in changes]
    if not rows:
        return
    widths = [max(words.cells(row[at][1]) for row in rows if at < len(row)) for at in range(1, 4)]
    room = (look.width or 0) - _FIRST - sum(widths) - _GAPS
    most = max((one.left + one.right for one in counts), default=0)
    bars = [_bar(row, min(1.0, min(room, _LONGEST_BAR) / max(most, 1)), look) for row in counts]
    for row in rows:
        for at, (role, text) in enumerate(row[1:]):
            row[at + 1] = role, " " * (widths[at] - words.cells(text)) + text
    for row, bar in zip(rows[1:], bars, strict=False):
        row += bar
    yield from columns.lines(rows, look, run_on=4)


def _numbers(what: str, *numbers: int) -> list[Cell]:
    return [("heading", what), *(("" if number else "dim", f"{number:,}") for number in numbers)]


def _bar(row: _Count, scale: float, look: Look) -> list[Cell]:
    """What each side has alone, as two bars, of so many columns for each one."""
    marks = "██" if look.unicode else "-+"
    ours, theirs = (
        mark * ceil(number * scale)
        for mark, number in zip(marks, (row.left, row.right), strict=True)
    )
    return [("removed", ours), ("added", theirs)] if scale > 0 else []
