"""The history of a session: a mutable sequence of messages over what is saved.

A history is the first ``kept`` messages of a saved list, and a tail of items that may be new. An
item is an id, with the encoded message if that is not in the store yet. So appending costs the new
message only, whatever the length; editing further back moves ids, not messages, into the tail.
Messages are encoded when they come in: later changes to the caller's own dict are not seen, and
what cannot be stored is refused where it is appended. What is read is read-only (see frozen).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from typing import Any, NamedTuple, overload

from snapstore import values
from snapstore.errors import UnsupportedValue
from snapstore.frozen import freeze
from snapstore.ids import object_id
from snapstore.objects import Objects, Stage

_BLOCK = 2048
"""Messages that iterating reads at a time."""


class _Item(NamedTuple):
    id: bytes
    new: bytes | None


class SavedHistory(Sequence[Any]):
    """The messages of a snapshot, read when they are looked at. Read only."""

    def __init__(self, objects: Objects, tip: bytes | None) -> None:
        self._objects = objects
        self._tip = tip
        self._kept = self._saved = objects.lists.length(tip)
        self._tail: list[_Item] = []

    def __len__(self) -> int:
        return self._kept + len(self._tail)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._range(start, stop)
            return [self[i] for i in range(start, stop, step)]
        at = self._index(index)
        if at < self._kept:
            return self._objects.value(self._objects.lists.item(self._tip, at))
        return self._value(self._tail[at - self._kept])

    def _index(self, index: int) -> int:
        index = operator.index(index)
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"no message {index} in a history of {len(self)}")
        return at

    def _value(self, item: _Item) -> Any:
        if item.new is None:
            return self._objects.value(item.id)
        return freeze(values.decode(item.new))

    def _range(self, start: int, stop: int) -> list[Any]:
        kept = self._kept
        found: list[Any] = []
        if start < min(stop, kept):
            ids = self._objects.lists.slice(self._tip, start, min(stop, kept))
            found = self._objects.values(ids)
        found += map(self._value, self._tail[max(0, start - kept) : max(0, stop - kept)])
        return found

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self), _BLOCK):
            yield from self._range(start, min(start + _BLOCK, len(self)))

    def __reversed__(self) -> Iterator[Any]:
        for stop in range(len(self), 0, -_BLOCK):
            yield from reversed(self._range(max(0, stop - _BLOCK), stop))

    def ids(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """The ids of the messages, in order."""
        stop = len(self) if stop is None else min(stop, len(self))
        kept = self._kept
        found = self._objects.lists.slice(self._tip, start, min(stop, kept))
        return found + [i.id for i in self._tail[max(0, start - kept) : max(0, stop - kept)]]

    def _items(self, start: int) -> list[_Item]:
        kept = self._kept
        saved = self._objects.lists.slice(self._tip, start, kept) if start < kept else []
        return [_Item(i, None) for i in saved] + self._tail[max(0, start - kept) :]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, SavedHistory)):
            return NotImplemented
        if len(self) != len(other):
            return False
        if isinstance(other, SavedHistory) and self.ids() == other.ids():
            return True
        return all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} messages>"


class History(SavedHistory, MutableSequence[Any]):
    """The messages of a session as the next save will keep them."""

    def append(self, value: Any) -> None:
        """Add a message at the end. Raises UnsupportedValue with the place of what is no JSON."""
        encoded = values.encode(value, path=f"messages[{len(self)}]")
        self._tail.append(_Item(object_id(encoded), encoded))

    def extend(self, messages: Iterable[Any]) -> None:
        """Add messages at the end: all of them, or none if one is refused."""
        self._tail += self._encoded(messages, len(self))

    def _encoded(self, messages: Iterable[Any], first: int) -> list[_Item]:
        if isinstance(messages, SavedHistory) and messages._objects is self._objects:
            return messages._items(0)
        if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
            kind = type(messages).__name__
            raise UnsupportedValue("messages", f"is a {kind}, not a list of messages")
        items: list[_Item] = []
        for n, message in enumerate(messages, first):
            encoded = values.encode(message, path=f"messages[{n}]")
            items.append(_Item(object_id(encoded), encoded))
        return items

    def extend_json(self, messages: Iterable[Any]) -> None:
        """As extend, for values that json.loads has just made: they need less checking."""
        items: list[_Item] = []
        for n, message in enumerate(messages, len(self)):
            encoded = values.encode_json(message, path=f"messages[{n}]")
            items.append(_Item(object_id(encoded), encoded))
        self._tail += items

    def insert(self, index: int, value: Any) -> None:
        """Put a message before the one at index."""
        index = operator.index(index)
        at = min(max(index + len(self) if index < 0 else index, 0), len(self))
        self._splice(at, at, self._encoded([value], at))

    @overload
    def __setitem__(self, index: int, value: Any) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[Any]) -> None: ...
    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            items = self._encoded(value, start)
            if step == 1:
                self._splice(start, max(start, stop), items)
                return
            places = range(start, stop, step)
            if len(items) != len(places):
                raise ValueError(f"{len(items)} messages cannot replace {len(places)}")
            first = min(places, default=len(self))
            changed = self._items(first)
            for at, item in zip(places, items, strict=True):
                changed[at - first] = item
            self._splice(first, len(self), changed)
            return
        at = self._index(index)
        self._splice(at, at + 1, self._encoded([value], at))

    def __delitem__(self, index: int | slice) -> None:
        if isinstance(index, slice):
            places = range(*index.indices(len(self)))
            first = min(places, default=len(self))
            items = enumerate(self._items(first), first)
            self._splice(first, len(self), [item for at, item in items if at not in places])
            return
        at = self._index(index)
        self._splice(at, at + 1, [])

    def clear(self) -> None:
        """Remove every message."""
        self._splice(0, len(self), [])

    def reverse(self) -> None:
        """Turn the order around."""
        self._splice(0, len(self), self._items(0)[::-1])

    def _splice(self, start: int, stop: int, items: list[_Item]) -> None:
        behind = self._items(stop)
        if start <= self._kept:
            self._kept = start
            self._tail = items + behind
        else:
            del self._tail[start - self._kept :]
            self._tail += items + behind

    # --- for the session that owns it -----------------------------------------------------------

    @property
    def changed(self) -> bool:
        """Whether it differs from the saved list."""
        self._keep_what_is_equal()
        return bool(self._tail) or self._kept != self._saved

    def stage(self, stage: Stage) -> bytes | None:
        """Stage what is new; the tip of the list as it is now."""
        if not self.changed:
            return self._tip
        for item in self._tail:
            if item.new is not None:
                stage.put_content(item.new, item.id)
        ids = [item.id for item in self._tail]
        lists = self._objects.lists
        if self._kept == self._saved:
            return lists.append(self._tip, ids, stage.put_node)
        return lists.replace(self._tip, self._kept, ids, stage.put_node)

    def _keep_what_is_equal(self) -> None:
        """Whoever assigns the whole history each turn still shares what did not change."""
        if self._kept == self._saved:
            return
        saved = self._objects.lists.slice(self._tip, self._kept, self._kept + len(self._tail))
        equal = 0
        for mine, theirs in zip(self._tail, saved, strict=False):
            if mine.id != theirs:
                break
            equal += 1
        self._kept += equal
        del self._tail[:equal]
