"""What an engine hands out when all that it holds is looked through, in its own order.

Following links from object to object costs a search for each. Whoever has to see everything anyway
takes it as it lies, and finds out afterwards whether it fits together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from snapstore.engine import Move, Obj, Problem, Progress


class Sheet(NamedTuple):
    """Some objects that lie together, and the moves beside them."""

    ids: Sequence[bytes]
    """Of the CONTENT objects."""
    sizes: Sequence[int]
    """How long each of these is, in bytes."""
    contents: Sequence[bytes]
    """What they hold; empty where contents were not read."""
    others: Sequence[Obj]
    """The objects of all other kinds."""
    moves: Sequence[Move]


@runtime_checkable
class Scanned(Protocol):
    """An engine that can be looked through."""

    def scan(self, share: float, progress: Progress | None = None) -> Iterator[Problem | Sheet]:
        """Everything once, objects before what was built on them, checked against its hashes.

        share: how large a part of the contents, chosen at random, is read, from 0 to 1. Of the rest
        the ids and sizes are taken from where they stand. What cannot be read is a Problem, and so
        is all that is wrong with the files themselves; with share 1 each of them is looked at.
        """
