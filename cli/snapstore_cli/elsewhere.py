"""Other stores, and bundles: where they are, and what came from there or went there."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from snapstore import NotFound, Store, StoreNotFound, revisions
from snapstore.transfer.carry import Carried, Outcome
from snapstore.transfer.remotes import DEFAULT, Remote, remotes
from snapstore_cli.invocation import Invocation
from snapstore_cli.opening import open_store
from snapstore_cli.place import store_at
from snapstore_cli.render import columns
from snapstore_cli.render.words import count, short, size

_LISTED = "`snapstore sessions`"
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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are told below, in the command's own way
            other = open_store(store_at(place), create=create)
    except StoreNotFound as error:
        if error.hint == StoreNotFound.hint:
            known = ", ".join(sorted(_known(run)))
            named = f"a remote ({known})" if known else "a remote (there are none yet)"
            error.hint = f"name the path or URL of a store, or {named}"
        raise
    for text in other.engine.warnings:
        run.out.warn(f"{place}: {text}")
    return other


def require(store: Store, names: Sequence[str], other: str | None = None) -> None:
    """Raise NotFound for a name that no session and no tag of a store has; other is where the store
    is when it is not the one that the command runs on."""
    for name in names:
        if store.exists(name) or name in store.tags():
            continue
        missing = revisions.unknown(store, name)
        if other is None:
            raise missing
        missing.hint = missing.hint.replace(_LISTED, f"`snapstore sessions --store {quote(other)}`")
        raise NotFound(f"{missing} in {other}", hint=missing.hint)


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
