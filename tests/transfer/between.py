"""Stores that sessions are brought from and to, on every pair of engines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from stores import Place, place_on

from snapstore import Store, refs
from snapstore.engine import Obj, Update

PAIRS = [("memory", "log"), ("log", "memory"), ("log", "log"), ("log", "object store"),
         ("object store", "log")]  # fmt: skip


def two_places(kinds: tuple[str, str], folder: Path) -> tuple[Place, Place]:
    """Places for two stores, with nothing in them yet."""
    paths: Iterator[Path] = (folder / f"{n}" for n, _ in product(range(9), range(1)))
    return place_on(kinds[0], paths), place_on(kinds[1], paths)


def filled(store: Store, name: str, *messages: Any) -> Store:
    """A turn of a session for each message."""
    session = store.session(name)
    for message in messages:
        session.history.append(message)
        session.save()
    return store


def heads(store: Store) -> dict[str, str]:
    """Where every session and tag stands."""
    return {
        tip.ref: tip.new.hex()
        for kind in (refs.SESSIONS, refs.TAGS)
        for tip in store.engine.tips(kind)
        if tip.new
    }


def is_whole(store: Store) -> bool:
    """Whether a new look at a store finds nothing wrong with it."""
    return [problem for problem in store.verify() if not problem.harmless] == []


class CutOffError(Exception):
    """The line to the other store went down."""


class Failing:
    """An engine whose commits begin to fail after some."""

    def __init__(self, engine: Any, commits: int) -> None:
        self._engine = engine
        self._left = commits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def commit(self, objects: list[Obj], update: Update | None = None) -> Any:
        if self._left == 0:
            raise CutOffError
        self._left -= 1
        return self._engine.commit(objects, update)
