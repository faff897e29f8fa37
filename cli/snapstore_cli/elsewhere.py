"""Other stores, and bundles: where they are, and what came from there or went there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from snapstore import NotFound, Store, StoreNotFound
from snapstore.transfer.carry import Carried, Outcome
from snapstore.transfer.remotes import DEFAULT, Remote, remotes
from snapstore_cli.invocation import Invocation
from snapstore_cli.opening import open_store
from snapstore_cli.place import store_at
from snapstore_cli.render import columns
from snapstore_cli.render.words import count, short, size

_OUTCOMES = {
    Outcome.NEW: "new",
    Outcome.MOVED: "moved on",
    Outcome.SAME: "unchanged",
    Outcome.AHEAD: "ahead there already",
    Outcome.BESIDE: "both went on: kept beside",
}


def place_of(run: Invocation, other: str | None) -> str:
    """Where the other store is. Raises NotFound when none is named and none is known."""
    known = _known(run)
    if other is None and DEFAULT not in known:
        raise NotFound(
            "there is no remote to go to",
            hint=f"name a store, or `snapstore remote add {DEFAULT} STORE`",
        )
    named = known.get(other or DEFAULT)
    return named.place if named is not None else absolute(other or "")


def _known(run: Invocation) -> dict[str, Remote]:
    try:
        return remotes(run.store)
    except StoreNotFound:  # a pull makes it
        return {}


def absolute(place: str) -> str:
    """A place as it is found from any directory."""
    return place if "://" in place else str(Path(place).expanduser().absolute())


def opened(run: Invocation, place: str, *, create: bool) -> Store:
    """Another store. Raises StoreNotFound when it is not there and is not to be made."""
    if run.settings.verbose:
        run.out.note(f"store {place}")
    return open_store(store_at(place), create=create)


def tell(run: Invocation, done: list[Carried]) -> None:
    """Say what became of each session and tag."""
    if run.out.json:
        run.out.document({"carried": [_document(one) for one in done]})
        return
    run.out.lines(columns.lines(map(_cells, done), run.out.look))
    objects, held = sum(one.objects for one in done), sum(one.bytes for one in done)
    run.out.note(f"{count(objects, 'object')}, {size(held)}")


def _document(one: Carried) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "source": one.source,
        "name": one.name,
        "head": one.head,
        "turn": one.turn,
        "outcome": one.outcome.value,
        "objects": one.objects,
        "bytes": one.bytes,
    }


def _cells(one: Carried) -> list[columns.Cell]:
    new = one.outcome in (Outcome.NEW, Outcome.MOVED, Outcome.BESIDE)
    return [
        ("name", one.name if one.kind == "session" else f"tag {one.name}"),
        ("", f"turn {one.turn}"),
        ("id", short(one.head)),
        ("added" if new else "dim", _OUTCOMES[one.outcome]),
    ]
