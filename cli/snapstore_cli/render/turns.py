"""Turns as lines of a log, and as the head of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from snapstore import Snapshot
from snapstore.textdiff import first_line, render_value, visible
from snapstore_cli.documents import Names
from snapstore_cli.render import columns, words
from snapstore_cli.render import files as rendered_files
from snapstore_cli.render.columns import Cell
from snapstore_cli.render.graph import HERE, Row
from snapstore_cli.render.style import LANES, Look

_LEAST_NAMES = 8
"""Columns of the names at a turn that a graph shows, however narrow the terminal."""
_LEAST_TOLD = 20
"""Columns for names and label below which a graph leaves out the time."""
_HEAD = 10
"""Columns before the facts at the head of a page."""
_ALIGNED = 5
"""Fields of a log that stand in columns: id, turn, time, messages added, files changed."""


def fields(snapshot: Snapshot, at: Names, look: Look) -> list[Cell]:
    """A turn as the fields of a line: id, turn, time, label, messages added, who stands there,
    and files changed, where it changed any."""
    added = snapshot.added()
    standing = at.get(snapshot.id, ())
    cells: list[Cell] = [
        ("id", words.short(snapshot.id)),
        ("heading", f"turn {snapshot.turn}"),
        ("dim", look.time(snapshot.time)),
    ]
    label = _label(snapshot, look)
    files = rendered_files.changed(snapshot)
    if not look.terminal:
        cells += [("", label), ("", f"+{added}"), ("name", ", ".join(standing)), ("", files)]
        return cells if files else cells[:-1]
    cells += [("added", f"+{added}" if added else ""), ("added", files)]
    return [*cells, _names(standing), ("", label)]


def log(
    snapshots: Iterable[Snapshot], at: Names, look: Look, *, one_line: bool = False
) -> Iterator[str]:
    """A line a turn. ``one_line`` leaves only the id and the label."""
    if one_line:
        return columns.lines((_short_fields(s, at, look) for s in snapshots), look, run_on=1)
    return columns.lines((fields(s, at, look) for s in snapshots), look, run_on=_ALIGNED)


def strokes(row: Row, look: Look) -> str:
    """The strokes of a row of a graph, each line of it in a colour of its own."""
    roles = (
        "here" if stroke == HERE else LANES[at % len(LANES)]
        for at, stroke in enumerate(row.strokes)
    )
    return "".join(map(look.style, roles, row.strokes))


def beside(row: Row, snapshot: Snapshot, at: Names, look: Look, *, one_line: bool) -> str:
    """A turn to the right of the strokes of a graph, cut to fit a terminal."""
    cells = _short_fields(snapshot, at, look) if one_line else _graph_fields(snapshot, at, look)
    if look.width is not None:
        cells = _fitted(cells, look.width - words.cells(row.text) - 1)
    return " ".join([strokes(row, look), *(look.style(*cell) for cell in cells if cell[1])])


def _fitted(cells: list[Cell], width: int) -> list[Cell]:
    """Fields that fit, of which names and label come last. Where little is left for them, the time
    goes. Names that fit are whole, and the label has what they leave, else half of it."""
    *fixed, (role, names), (_, label) = cells
    room, needed = width - _taken(fixed), words.cells(names)
    if room < max(_LEAST_TOLD, needed):
        fixed = [cell for cell in fixed if cell[0] != "dim"]
        room = width - _taken(fixed)
    if needed > room:
        needed = max(_LEAST_NAMES, room - min(words.cells(label), room // 2) - 1)
    told = words.cut(names, needed)
    left = room - words.cells(told) - (1 if told else 0)
    return [*fixed, (role, told), ("", words.cut(label, left) if left > 1 else "")]


def _taken(cells: Sequence[Cell]) -> int:
    return sum(words.cells(text) + 1 for _, text in cells)


def _graph_fields(snapshot: Snapshot, at: Names, look: Look) -> list[Cell]:
    return [
        ("id", words.short(snapshot.id)),
        ("heading", f"turn {snapshot.turn}"),
        ("dim", look.time(snapshot.time)),
        _names(at.get(snapshot.id, ())),
        ("", _label(snapshot, look)),
    ]


def _short_fields(snapshot: Snapshot, at: Names, look: Look) -> list[Cell]:
    label = words.one_line(snapshot.label) or f"turn {snapshot.turn}"
    names = _names(at.get(snapshot.id, ()))
    if not look.terminal:
        return [("id", words.short(snapshot.id)), ("", f"{names[1]} {label}".lstrip())]
    return [("id", words.short(snapshot.id)), names, ("", label)]


def _names(standing: Sequence[str]) -> Cell:
    return "name", f"({', '.join(standing)})" if standing else ""


def _label(snapshot: Snapshot, look: Look) -> str:
    """The label; on a terminal, where there is none, the first message that the turn added."""
    label = words.one_line(snapshot.label)
    if label or look.width is None or not (added := snapshot.added()):
        return label
    message = snapshot.history[len(snapshot.history) - added]
    return words.one_line(first_line(message, look.width).removeprefix("user: "))


def head(snapshot: Snapshot, session: str | None, at: Names, look: Look) -> Iterator[str]:
    """The first lines of a turn's page."""
    number = words.short(snapshot.id)
    title = f"turn {snapshot.turn}" + (f" of {session}" if session else "")
    title = look.style("heading", look.cut_middle(title, len(number) + 2))
    yield f"{title}  {look.style('id', number)}"
    dated = snapshot.time.timestamp() != 0
    saved = words.rfc3339(snapshot.time, "seconds") if dated else look.time(None)
    if look.terminal and dated:
        saved += f" ({words.ago(snapshot.time, look.now)})"
    rows: dict[str, Cell] = {
        "label": ("", words.one_line(snapshot.label)),
        "saved": ("", saved),
        "parent": ("id", words.short(snapshot.parent or "")),
        "here": ("name", ", ".join(at.get(snapshot.id, ()))),
        "files": ("", rendered_files.held(snapshot)),
        "meta": ("", ", ".join(map(visible, snapshot.meta))),
    }
    for name, (role, text) in rows.items():
        told = f"{name:<7}"
        for row in words.wrap(text, look.within(_HEAD)) if text else ():
            yield f"  {look.style('dim', told)} {look.style(role, row)}"
            told = " " * len(told)


def scratchpad(snapshot: Snapshot, look: Look) -> Iterator[str]:
    """The scratchpad of a turn's page; nothing when it is empty."""
    entries = snapshot.scratchpad
    if not entries:
        return
    yield look.style("heading", "scratchpad")
    for key, value in entries.items():
        told, key = render_value(value), words.one_line(key)
        name = look.style("name", key)
        is_short = look.width is None or words.cells(f"  {key}: {told}") <= look.width
        if "\n" not in told and not isinstance(value, (dict, list)) and is_short:
            yield f"  {name}: {told}"
            continue
        yield f"  {name}:"
        yield from (f"    {row}" for row in words.wrap(told, look.within(4)))
