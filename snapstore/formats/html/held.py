"""What a whole store holds, and what of it gc would let go of, for a page to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snapstore.errors import SnapstoreError

if TYPE_CHECKING:
    from snapstore.store import Store


def held(store: Store) -> dict[str, Any]:
    """objects and bytes as the engine keeps them."""
    engine = store.engine.stats()
    return {"objects": engine.objects, "bytes": engine.bytes}


def collectable(store: Store) -> dict[str, int] | None:
    """objects and bytes that ``gc`` would let go of now, as it says itself; None when it cannot say
    for damage. Follows every link of the store."""
    try:
        found = store.gc()
    except SnapstoreError:
        return None
    return {"objects": found.objects, "bytes": found.bytes}
