"""Which session was saved last: what "go on" means when no session is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapstore import refs

if TYPE_CHECKING:
    from snapstore.store import SessionInfo, Store


def last_saved(store: Store, leaving_out: tuple[str, ...] = ()) -> str | None:
    """The session that was saved last and is still there; None when there are no sessions.

    Of sessions that only came in otherwise, by an import say, it is the one whose last turn is the
    newest. Names that begin with one of ``leaving_out`` do not count.
    """
    for move in refs.moves_before_damage(store.engine):
        if move.op != "save" or not move.ref.startswith(refs.SESSIONS):
            continue
        name = refs.successor(store.engine, move.ref).removeprefix(refs.SESSIONS)
        if not name.startswith(leaving_out) and store.exists(name):
            return name
    found = (info for info in store.sessions() if not info.name.startswith(leaving_out))
    newest = max(found, key=saved_at, default=None)
    return newest.name if newest else None


def saved_at(info: SessionInfo) -> float:
    """When the last turn of a session was saved, in seconds since the epoch; 0 if nobody knows."""
    return info.time.timestamp() if info.time else 0.0
