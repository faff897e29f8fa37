"""Opening a store for as long as something is made of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Generic, TypeVar

from snapstore.store import Store, open_store

T = TypeVar("T")

IN_MEMORY = ":memory:"
"""What the frameworks' own backends call a store that is gone when it is closed."""


def open_place(where: str | Path) -> Store:
    """The store at a path or URL, or a new one in memory."""
    return open_store("memory://" if str(where) == IN_MEMORY else where)


class Opened(AbstractContextManager[T], AbstractAsyncContextManager[T], Generic[T]):
    """A store and what is made of it, for ``with`` and for ``async with``."""

    def __init__(self, where: str | Path, make: Callable[[Store], T]) -> None:
        """Nothing is opened yet."""
        self._where = where
        self._make = make
        self._store: Store | None = None

    def __enter__(self) -> T:
        self._store = open_place(self._where)
        return self._make(self._store)

    def __exit__(self, *exc: object) -> None:
        if self._store is not None:
            self._store.close()

    async def __aenter__(self) -> T:
        return self.__enter__()

    async def __aexit__(self, *exc: object) -> None:
        self.__exit__()
