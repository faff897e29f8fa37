"""Which moves of a ref count: those from its last purge on.

A purge writes anew what a ref led to, and then drops the moves that led to the old objects. When it
was cut off in between they are still there, and count no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from snapstore import refs
from snapstore.engine import Move

PURGED = "purged"
"""In the info of a purge's moves: at (when it took place), what was changed, and whether there is
more: the ref comes to stand where it stood only with a later move."""
MORE = "more"


def histories(moves: Iterable[Move]) -> dict[str, list[Move]]:
    """The moves of each ref that points at snapshots, oldest first, from its last purge on."""
    found: dict[str, list[Move]] = {}
    for move in moves:
        if move.ref.startswith(refs.OF_SNAPSHOTS):
            found.setdefault(move.ref, []).append(move)
    return {ref: _since_purge(moves[::-1]) for ref, moves in found.items()}


def _since_purge(moves: list[Move]) -> list[Move]:
    """The moves from the first one of the last purge on that came to its end."""
    end = len(moves)
    while end:
        last = moves[end - 1]
        first = begin_of_purge(moves, end - 1)
        follows = moves[end] if end < len(moves) else None
        if last.op == refs.PURGE and (
            not last.info[PURGED][MORE] or (follows is not None and follows.new is None)
        ):
            return moves[first:]
        end = first
    return moves


def begin_of_purge(moves: list[Move], at: int) -> int:
    """The index of the first move of the purge that a move belongs to; its own when to none."""
    purge = moves[at].info[PURGED]["at"] if moves[at].op == refs.PURGE else None
    while purge is not None and at and moves[at - 1].op == refs.PURGE:
        if moves[at - 1].info[PURGED]["at"] != purge:
            break
        at -= 1
    return at


def first_that_count(lines: Mapping[str, list[Move]]) -> dict[str, int]:
    """Of each ref that was purged the first move that stays."""
    firsts = {ref: moves[0] for ref, moves in lines.items()}
    return {ref: move.gen for ref, move in firsts.items() if move.op == refs.PURGE}
