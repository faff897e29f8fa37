"""Messages of files that are too large to be held in memory: read again when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from snapstore.formats.jsonl import Row

Whole = Callable[[Row], Any]
"""Gives all of a row's value. Who asks for the same rows again may hand in one that remembers."""


class Recall:
    """In place of a message: the rows that tell it, and how."""

    __slots__ = ("_rows", "_tell")

    def __init__(self, rows: Sequence[Row], tell: Callable[[Sequence[Any]], Any]) -> None:
        """Tell makes the message, given the whole values of the rows."""
        self._rows = rows
        self._tell = tell

    def message(self, whole: Whole = Row.whole) -> Any:
        """The message."""
        return self._tell(list(map(whole, self._rows)))


class Told(Sequence[Any]):
    """Messages some of which are recalled each time that they are looked at."""

    __slots__ = ("_items",)

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = tuple(items)

    def recalled(self, whole: Whole) -> Iterator[Any]:
        """The messages, in order, of rows that whole gives."""
        for item in self._items:
            yield item.message(whole) if isinstance(item, Recall) else item

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return list(Told(self._items[index]))
        item = self._items[index]
        return item.message() if isinstance(item, Recall) else item

    def __iter__(self) -> Iterator[Any]:
        return self.recalled(Row.whole)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def told(items: Sequence[Any]) -> Sequence[Any]:
    """Messages as they are, or as Told where some are to be recalled."""
    return Told(items) if any(type(item) is Recall for item in items) else tuple(items)
