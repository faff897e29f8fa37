"""A forest of turns as a drawing: newest first, and a column for each line that is open.

* 8c1f turn 5 (a)           the line of the newest turn goes straight on
| * 77b0 turn 4 (b)         a side branch stands whole, right above the turn that it forks from,
|/
| * 90aa turn 4 (c)         so that the next one finds its column free
|/
* 3c2e turn 3

* 1f00 turn 2 (d)           a line that has nothing in common with the one above
~                           what it comes from is not listed
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """A turn to draw: who it is, what came before it, and when it was made."""

    id: str
    parent: str | None
    time: float


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The strokes of a drawing."""

    node: str
    hidden: str
    """A node in a column that is not drawn, for there are too many."""
    line: str
    join: str
    """A column that ends in the one to its left, from there on."""


ASCII = Glyphs(node="*", hidden="o", line="|", join="|/")
UNICODE = Glyphs(node="●", hidden="○", line="│", join="├─╯")
HERE = "@"
"""The node that somebody stands on."""
ELIDED = "~"
"""Below a node whose parent is not listed."""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a drawing: the strokes of each column, and the node to write beside them, if any.

    A column that ends in the one to its left takes its blank, too.
    """

    strokes: tuple[str, ...]
    node: Node | None = None

    @property
    def text(self) -> str:
        """The strokes as they are drawn."""
        return "".join(self.strokes)


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


def line_by_line(nodes: Sequence[Node]) -> list[Node]:
    """Nodes that come children first, so ordered that each side branch stands whole above its fork.

    The first of a tree comes first, with its line. On side branches the longest goes on and the
    others are side branches of it, so that there are never more open at once than the number of
    nodes has binary digits.
    """
    weight = {node.id: 1 for node in nodes}
    rank = {node.id: at for at, node in enumerate(nodes)}
    for node in nodes:
        if node.parent in weight:
            assert node.parent is not None
            weight[node.parent] += weight[node.id]
            rank[node.parent] = min(rank[node.id], rank[node.parent])
    above: dict[str | None, list[Node]] = {}
    for node in sorted(nodes, key=lambda node: rank[node.id]):
        above.setdefault(node.parent if node.parent in weight else None, []).append(node)
    upwards: list[Node] = []
    stack = [(node, True) for node in above.get(None, ())]
    while stack:
        node, is_first = stack.pop()
        upwards.append(node)
        forks = above.get(node.id, [])
        if not is_first:
            forks.sort(key=lambda fork: weight[fork.id], reverse=True)
        stack += [(fork, is_first and at == 0) for at, fork in enumerate(forks)]
    return upwards[::-1]


def draw(
    nodes: Iterable[Node],
    glyphs: Glyphs = ASCII,
    *,
    here: str | None = None,
    most: int | None = None,
) -> Iterator[Row]:
    """The rows of a drawing.

    ``here`` is the id of the node that has a mark of its own. Columns from number ``most`` on are
    not drawn; what is in them has another mark.
    """
    ordered = line_by_line(list(newest_first(nodes)))
    listed = {node.id for node in ordered}
    columns: list[str] = []
    """By column the node that it awaits. Only the last one can be met or opened next."""
    is_apart = False
    for node in ordered:
        if node.id not in columns[-1:]:
            if is_apart:  # or it would look like the child of the one above
                yield Row(())
            columns.append(node.id)
        is_hidden = most is not None and len(columns) > most
        mark = HERE if node.id == here else glyphs.hidden if is_hidden else glyphs.node
        lines = (glyphs.line + " ",) * (len(columns[:most]) - 1)
        yield Row((*lines, mark), node)
        is_apart = node.parent is None
        if node.parent not in listed:
            columns.pop()
            if node.parent is not None:
                yield Row((ELIDED,))
        elif node.parent in columns[-2:-1]:
            columns.pop()
            if not is_hidden:
                yield Row((*lines[1:], glyphs.join[:1], glyphs.join[1:]))
        else:
            assert node.parent is not None
            columns[-1] = node.parent
