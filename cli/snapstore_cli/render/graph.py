"""A forest of turns as a drawing: newest first, a column a line, joined where lines fork.

* 8c1f turn 5 (a)           each node stands in the column that awaits it
| * 77b0 turn 4 (b)         a head that nothing awaits opens a column
* | 90aa turn 4
|/                          two columns that await the same node become one
* 3c2e turn 3
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """A turn to draw: who it is, what came before it, and when it was made."""

    id: str
    parent: str | None
    time: float


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The strokes of a drawing. ``close`` ends a column that joins one to its left."""

    node: str
    line: str
    fork: str
    across: str
    close: str


ASCII = Glyphs(node="*", line="|", fork="|", across="_", close="/")
UNICODE = Glyphs(node="●", line="│", fork="├", across="─", close="╯")


def newest_first(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes by time, newest first, but no node before one that came after it.

    Clocks go wrong, so a parent may claim to be younger than its child.
    """
    by_id = {node.id: node for node in nodes}
    children = dict.fromkeys(by_id, 0)
    for node in by_id.values():
        if node.parent in children:
            children[node.parent] += 1
    ready = [(-node.time, node.id) for node in by_id.values() if not children[node.id]]
    heapq.heapify(ready)
    while ready:
        node = by_id[heapq.heappop(ready)[1]]
        yield node
        if node.parent in children:
            children[node.parent] -= 1
            if not children[node.parent]:
                heapq.heappush(ready, (-by_id[node.parent].time, node.parent))


def draw(nodes: Iterable[Node], glyphs: Glyphs = ASCII) -> Iterator[tuple[str, Node | None]]:
    """The strokes of each line, and the node that is to be written beside them, if one is.

    The nodes come children first, as newest_first gives them.
    """
    columns: list[str | None] = []
    for node in nodes:
        waiting = [at for at, awaited in enumerate(columns) if awaited == node.id]
        for at in reversed(waiting[1:]):
            yield _join(columns, waiting[0], at, glyphs), None
            columns[at] = None
        at = waiting[0] if waiting else _free(columns)
        columns[at] = node.id
        _trim(columns)
        yield _row(columns, at, glyphs), node
        columns[at] = node.parent
        _trim(columns)


def _free(columns: list[str | None]) -> int:
    """The first empty column, made if there is none."""
    if None not in columns:
        columns.append(None)
    return columns.index(None)


def _trim(columns: list[str | None]) -> None:
    while columns and columns[-1] is None:
        columns.pop()


def _row(columns: list[str | None], node_at: int, glyphs: Glyphs) -> str:
    strokes = [glyphs.line if awaited else " " for awaited in columns]
    strokes[node_at] = glyphs.node
    return " ".join(strokes)


def _join(columns: list[str | None], left: int, right: int, glyphs: Glyphs) -> str:
    """A line on which column ``right`` runs into column ``left``."""
    strokes = list(" ".join(glyphs.line if awaited else " " for awaited in columns))
    strokes[2 * left] = glyphs.fork
    for place in range(2 * left + 1, 2 * right):
        if place % 2 or strokes[place] == " ":
            strokes[place] = glyphs.across
    if glyphs is ASCII:
        # A slash leans into the column on its left, so it takes that place and leaves its own.
        strokes[2 * right - 1], strokes[2 * right] = glyphs.close, " "
    else:
        strokes[2 * right] = glyphs.close
    return "".join(strokes).rstrip()
