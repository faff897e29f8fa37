"""How much of an id is enough to name it."""

from __future__ import annotations

from snapstore import Store
from snapstore.engine import Kind
from snapstore.ids import MIN_PREFIX, SIZE

_MOST = 500
"""Ids that are looked up: more than a person reads, and so few that no command takes longer."""


class Shortest:
    """Answers for the ids of one store, the first ones that it is asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left = _MOST

    def __call__(self, digits: str) -> int | None:
        """The fewest of these digits that no other snapshot begins with; all of them if need be.

        None when too many ids were asked for.
        """
        if not self._left:
            return None
        self._left -= 1
        lengths = range(MIN_PREFIX, len(digits))
        return next((n for n in lengths if self._is_unique(digits[:n])), len(digits))

    def _is_unique(self, digits: str) -> bool:
        prefix = bytes.fromhex(digits.ljust(2 * SIZE, "0"))
        found = self._store.engine.ids(prefix, len(digits))
        return sum(kind == Kind.SNAPSHOT for _, kind in found) <= 1
