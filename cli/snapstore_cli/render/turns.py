"""Turns as lines of a log, and as the head of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from snapstore import Snapshot
from snapstore.textdiff import first_line, render_value, visible
from snapstore_cli.documents import Names
from snapstore_cli.render import columns, words
from snapstore_cli.render.columns import Cell
from snapstore_cli.render.style import Look

_LEAST_NAMES = 8
"""Columns of the names at a turn that a graph shows, however narrow the terminal."""


def fields(snapshot: Snapshot, at: Names, look: Look) -> list[Cell]:
    """A turn as the fields of a line: id, turn, time, label, messages added, who stands there."""
    added = snapshot.added()
    told = [words.one_line(snapshot.label)] if snapshot.label else _said(snapshot, added, look)
    standing = at.get(snapshot.id, ())
    cells: list[Cell] = [
        ("id", words.short(snapshot.id)),
        ("heading", f"turn {snapshot.turn}"),
        ("dim", look.time(snapshot.time)),
    ]
    if not look.terminal:
        return [*cells, ("", "".join(told)), ("", f"+{added}"), ("name", ", ".join(standing))]
    cells.append(("added", f"+{added}" if added else ""))
    if standing:
        told.insert(0, f"({', '.join(standing)})")
    return [*cells, ("", " ".join(told))]


def log(
    snapshots: Iterable[Snapshot], at: Names, look: Look, *, one_line: bool = False
) -> Iterator[str]:
    """A line a turn. ``one_line`` leaves only the id and the label."""
    if one_line:
        return columns.lines((_short_fields(s, at) for s in snapshots), look)
    return columns.lines((fields(s, at, look) for s in snapshots), look)


def beside(strokes: str, snapshot: Snapshot, at: Names, look: Look, *, one_line: bool) -> str:
    """A turn to the right of the strokes of a graph, cut to fit a terminal."""
    cells = list(_short_fields(snapshot, at)) if one_line else _graph_fields(snapshot, at, look)
    if look.width is not None and not one_line:
        _cut_names(cells, look.width - words.cells(strokes))
    before = [text for _, text in cells[:-1] if text]
    used = words.cells(" ".join([strokes, *before, ""]))
    role, last = cells.pop()
    shown = [look.style(*cell) for cell in [*cells, (role, look.cut(last, used))] if cell[1]]
    return " ".join([strokes, *shown])


def _cut_names(cells: list[Cell], width: int) -> None:
    """Leave the label, which comes last, at least half of what the fields before names leave."""
    role, names = cells[-2]
    room = width - sum(words.cells(text) + 1 for _, text in cells[:-2]) - 2
    label = min(words.cells(cells[-1][1]), room // 2)
    cells[-2] = role, words.cut(names, max(_LEAST_NAMES, room - label))


def _graph_fields(snapshot: Snapshot, at: Names, look: Look) -> list[Cell]:
    names = at.get(snapshot.id, ())
    return [
        ("id", words.short(snapshot.id)),
        ("heading", f"turn {snapshot.turn}"),
        ("dim", look.time(snapshot.time)),
        ("name", f"({', '.join(names)})" if names else ""),
        ("", words.one_line(snapshot.label) or "".join(_said(snapshot, snapshot.added(), look))),
    ]


def _said(snapshot: Snapshot, added: int, look: Look) -> list[str]:
    """On a terminal, what stands in for a label: the first message that the turn added."""
    if look.width is None or not added:
        return []
    message = snapshot.history[len(snapshot.history) - added]
    return [words.one_line(first_line(message, look.width).removeprefix("user: "))]


def _short_fields(snapshot: Snapshot, at: Names) -> Sequence[Cell]:
    names = at.get(snapshot.id, ())
    refs = f"({', '.join(names)}) " if names else ""
    label = words.one_line(snapshot.label) or f"turn {snapshot.turn}"
    return [("id", words.short(snapshot.id)), ("", refs + label)]


def head(snapshot: Snapshot, session: str | None, at: Names, look: Look) -> Iterator[str]:
    """The first lines of a turn's page."""
    of = f" of {session}" if session else ""
    title = look.style("heading", f"turn {snapshot.turn}{of}")
    yield f"{title}  {look.style('id', words.short(snapshot.id))}"
    dated = snapshot.time.timestamp() != 0
    saved = words.rfc3339(snapshot.time, "seconds") if dated else look.time(None)
    if look.terminal and dated:
        saved += f" ({words.ago(snapshot.time, look.now)})"
    rows = {
        "label": words.one_line(snapshot.label),
        "saved": saved,
        "parent": words.short(snapshot.parent or ""),
        "here": ", ".join(at.get(snapshot.id, ())),
        "meta": ", ".join(map(visible, snapshot.meta)),
    }
    for name, text in rows.items():
        if text:
            yield f"  {look.style('dim', f'{name:<7}')} {text}"


def scratchpad(snapshot: Snapshot, look: Look) -> Iterator[str]:
    """The scratchpad of a turn's page; nothing when it is empty."""
    entries = snapshot.scratchpad
    if not entries:
        return
    yield look.style("heading", "scratchpad")
    for key, value in entries.items():
        told = render_value(value)
        name = look.style("name", words.one_line(key))
        if "\n" not in told and not isinstance(value, (dict, list)):
            yield f"  {name}: {told}"
            continue
        yield f"  {name}:"
        yield from (f"    {row}" for row in told.split("\n"))
