"""Whether all is well with a store, and what to do if not: one page, without reading all of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from snapstore import sizes
from snapstore.errors import Corrupt, ObjectMissing
from snapstore.maintenance.gc import collect
from snapstore.maintenance.stranded import stranded
from snapstore.worktree.interrupted import interrupted

if TYPE_CHECKING:
    from snapstore.store import Store


class Sign(NamedTuple):
    """One thing that was looked at."""

    well: bool
    text: str
    advice: str = ""


@runtime_checkable
class Examined(Protocol):
    """An engine that can tell how its files are."""

    def signs(self) -> Iterator[Sign]:
        """What a look at them tells."""


def examine(store: Store) -> Iterator[Sign]:
    """Everything that was looked at, well or not."""
    engine = store.engine
    if not engine.exists():
        yield Sign(True, "nothing has been saved yet")
        return
    told: set[str] = set()
    if isinstance(engine, Examined):
        for sign in engine.signs():
            told.add(sign.text)
            yield Sign(*sign)
    if engine.cut_off is None:  # else the signs have told of what is worse
        for warning in engine.warnings:
            if warning not in told:
                yield Sign(False, warning, "keep the store on a local disk")
    yield from _restores(store)
    yield from _sessions(store)
    yield from _unreached(store)


def _restores(store: Store) -> Iterator[Sign]:
    for cut_off in interrupted(store.here, store.engine):
        yield Sign(cut_off.at_work, str(cut_off), cut_off.advice)
    for one in stranded(store):
        yield Sign(False, str(one), "snapstore repair --apply puts the files where they are seen")


def _sessions(store: Store) -> Iterator[Sign]:
    infos = store.sessions()
    for info in infos:
        if info.problem is not None:
            text = f"session {info.name} cannot be read: {info.problem}"
            yield Sign(False, text, "snapstore repair --apply")
    readable = sum(info.problem is None for info in infos)
    yield Sign(True, f"{readable} of {len(infos)} sessions can be read")


def _unreached(store: Store) -> Iterator[Sign]:
    try:
        found = collect(store)
    except (Corrupt, ObjectMissing) as error:
        yield Sign(False, f"something is missing: {error}", "snapstore verify")
        return
    advice = "snapstore gc --apply" if found.objects else ""
    what = "1 object" if found.objects == 1 else f"{found.objects:,} objects"
    text = f"{what}, {sizes.told(found.bytes)}, that nothing reaches"
    yield Sign(True, text, advice)
