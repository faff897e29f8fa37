"""Sessions as a forest of forks: each under the session whose own turn it was forked from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

AtTurn = Callable[[str, int], str]
"""(head, turn) -> id of that turn of the head's line."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A session: where it stands, and the turn it was forked from."""

    name: str
    head: str
    turn: int
    forked_from: str | None
    fork_turn: int
    """Number of that turn; 0 for none."""


def forest(
    branches: Sequence[Branch], at_turn: AtTurn, *, unicode: bool
) -> Iterator[tuple[str, str]]:
    """(what to draw before the name, name) of each session, parents before their forks."""
    below: dict[str | None, list[Branch]] = {}
    origins = _origins(branches, at_turn)
    for branch in branches:
        below.setdefault(origins[branch.name], []).append(branch)
    strokes = ("├─ ", "└─ ", "│  ") if unicode else ("|- ", "`- ", "|  ")
    yield from _draw(below, None, "", strokes)


def _draw(
    below: dict[str | None, list[Branch]],
    parent: str | None,
    indent: str,
    strokes: tuple[str, str, str],
) -> Iterator[tuple[str, str]]:
    forks = below.get(parent, [])
    for fork in forks:
        last = fork is forks[-1]
        yield indent + ("" if parent is None else strokes[last]), fork.name
        deeper = "" if parent is None else indent + ("   " if last else strokes[2])
        yield from _draw(below, fork.name, deeper, strokes)


def _origins(branches: Sequence[Branch], at_turn: AtTurn) -> dict[str, str | None]:
    """The parent of each session: the one whose line holds the fork point, and passed it by itself.

    A session that was forked at the same turn or later holds that turn too, but did not make it.
    """
    origins: dict[str, str | None] = {branch.name: None for branch in branches}
    if not any(branch.forked_from for branch in branches):
        return origins
    by_root: dict[str, list[Branch]] = {}
    for branch in branches:
        if branch.turn:
            by_root.setdefault(at_turn(branch.head, 1), []).append(branch)
    for relatives in by_root.values():
        for fork in relatives:
            if fork.forked_from is not None:
                origins[fork.name] = next(
                    (b.name for b in relatives if _made(b, fork, at_turn)), None
                )
    return origins


def _made(branch: Branch, fork: Branch, at_turn: AtTurn) -> bool:
    if branch is fork or not branch.fork_turn < fork.fork_turn <= branch.turn:
        return False
    return at_turn(branch.head, fork.fork_turn) == fork.forked_from
