"""How much of an id is enough to name it."""

from __future__ import annotations

from snapstore import Store
from snapstore.engine import Kind
from snapstore.ids import MIN_PREFIX, SIZE


def shortest(store: Store, digits: str) -> int:
    """The fewest of these digits that no other snapshot begins with; all of them if need be."""
    for enough in range(MIN_PREFIX, len(digits)):
        prefix = bytes.fromhex(digits[:enough].ljust(2 * SIZE, "0"))
        found = (one for one, kind in store.engine.ids(prefix, enough) if kind == Kind.SNAPSHOT)
        if next(found, None) is None or next(found, None) is None:
            return enough
    return len(digits)
