"""A bounded cache of decoded objects that threads may share without a lock."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Recent(Generic[T]):
    """Remembers at least the last `limit` objects that were added or got, at most twice as many.

    Two generations: when the young one is full it becomes the old one, and the old one is dropped.
    Each step is a single dict operation, so threads can at worst forget an object too early, which
    costs a read and never an answer.
    """

    __slots__ = ("_limit", "_old", "_young")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._young: dict[bytes, T] = {}
        self._old: dict[bytes, T] = {}

    def get(self, object_id: bytes) -> T | None:
        """The decoded object, or None when it is not remembered."""
        found = self._young.get(object_id)
        if found is None:
            found = self._old.get(object_id)
            if found is not None:
                self.add(object_id, found)
        return found

    def add(self, object_id: bytes, decoded: T) -> None:
        """Remembers it."""
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
        self._young[object_id] = decoded
