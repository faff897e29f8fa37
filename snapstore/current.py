"""The current session: which one is meant when none is named.

A store on this machine remembers it. Of a store that other machines use too, each user has one of
his own on each machine: else two who work side by side would take it from each other.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from snapstore import refs
from snapstore.engine import Update
from snapstore.errors import RefMoved
from snapstore.names import valid_name
from snapstore.objects import Stage

if TYPE_CHECKING:
    from snapstore.store import Store


def chosen(store: Store) -> str | None:
    """The current session; None when none was chosen. It need not be there any more."""
    own = _own(store)
    if own is not None and own.is_file():
        return own.read_text("utf-8", "replace")
    tip = refs.live(store.engine, refs.CURRENT)
    if tip is None or tip.new is None:
        return None
    return store.objects.content(tip.new).decode()


def choose(store: Store, name: str) -> None:
    """Make a session the current one. Writes nothing when it is already."""
    valid_name(name)
    own = _own(store)
    if own is not None and store.here is not None:
        if chosen(store) != name:
            store.here.disk.make_dir(own.parent)
            store.here.disk.write_file(own, name.encode())
        return
    with Stage(store.objects) as stage:
        wanted = stage.put_content(name.encode())
        while True:
            tip = store.engine.tip(refs.CURRENT)
            expect = tip.new if tip else None
            if expect == wanted:
                return
            update = Update(refs.CURRENT, wanted, expect, "switch", store.clock())
            # Of two who switch at once the last has its way, as if they had come one by one.
            with contextlib.suppress(RefMoved):
                stage.commit(update)
                return


def _own(store: Store) -> Path | None:
    """The file in which this machine remembers it; None where the store does."""
    here = store.here
    return here.root / "current" if here is not None and store.local is None else None


def follow_rename(store: Store) -> None:
    """Let the current session stay the same one when a rename, or its undoing, took its name."""
    name = chosen(store)
    if name is not None:
        present = refs.successor(store.engine, refs.SESSIONS + name).removeprefix(refs.SESSIONS)
        if present != name:
            choose(store, present)
