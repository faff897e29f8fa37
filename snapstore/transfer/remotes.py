"""Other stores by name, as a store remembers them.

They stand in one object, an encoded value (see values), that the ref ``state/remotes`` points at:
``{name: {"place": PATH|URL, "auto_push": bool}}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

from snapstore import refs, values
from snapstore.engine import Update
from snapstore.errors import Corrupt, InvalidInput, NotFound, RefMoved, Refused
from snapstore.names import valid_name
from snapstore.objects import Stage
from snapstore.store import Store

REF = "state/remotes"
DEFAULT = "origin"
"""The remote that is meant when none is named."""

_Change = Callable[[dict[str, "Remote"]], dict[str, "Remote"]]
_PASSWORD = re.compile(r"://[^/@]*:[^/@]*@")


@dataclass(frozen=True, slots=True)
class Remote:
    """Another store."""

    place: str
    """A path or URL."""
    auto_push: bool = False
    """Whether sessions are to be pushed there as they are saved."""


def remotes(store: Store) -> dict[str, Remote]:
    """The remotes of a store, by name. Raises Corrupt."""
    tip = refs.live(store.engine, REF)
    if tip is None or tip.new is None:
        return {}
    known = values.decode(store.objects.content(tip.new))
    try:
        return {name: Remote(str(r["place"]), bool(r["auto_push"])) for name, r in known.items()}
    except (AttributeError, KeyError, TypeError):
        raise Corrupt("the remotes of this store are not of the form they must have") from None


def remote(store: Store, name: str) -> Remote:
    """The remote of this name. Raises NotFound."""
    known = remotes(store)
    if name not in known:
        raise NotFound(
            f"there is no remote {name}", hint=f"`snapstore remote add {name} STORE` makes it"
        )
    return known[name]


def add_remote(store: Store, name: str, place: str, *, auto_push: bool = False) -> None:
    """Remember another store. Raises Refused when there is another of that name.

    Raises InvalidInput for a place with a password in it: it would be saved, and carried along.
    """
    valid_name(name)
    if _PASSWORD.search(place):
        raise InvalidInput("a remote is kept without a password", hint="give it in the environment")

    def change(known: dict[str, Remote]) -> dict[str, Remote]:
        if name in known and known[name].place != place:
            raise Refused(
                f"there is a remote {name} already: {known[name].place}",
                hint="choose another name, or remove it first",
            )
        return {**known, name: Remote(place, auto_push)}

    _change(store, "remote add", change)


def set_auto_push(store: Store, name: str, on: bool) -> None:
    """Say whether sessions are to be pushed to a remote as they are saved. Raises NotFound."""
    remote(store, name)

    def change(known: dict[str, Remote]) -> dict[str, Remote]:
        return {n: replace(r, auto_push=on) if n == name else r for n, r in known.items()}

    _change(store, "remote set", change)


def remove_remote(store: Store, name: str) -> None:
    """Forget another store; nothing is changed there. Raises NotFound."""
    remote(store, name)
    _change(store, "remote remove", lambda known: {n: r for n, r in known.items() if n != name})


def _change(store: Store, op: str, change: _Change) -> None:
    while True:
        tip = store.engine.tip(REF)
        expect = tip.new if tip is not None else None
        changed: Mapping[str, Remote] = change(remotes(store))
        with Stage(store.objects) as stage:
            new = stage.put_content(values.encode({n: asdict(r) for n, r in changed.items()}))
            if new == expect:
                return
            try:
                stage.commit(Update(REF, new, expect, op, store.clock()))
                return
            except RefMoved:  # another change came first: make this one on top of it
                continue
