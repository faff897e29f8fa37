"""Read-only views of stored values: what reading a history or a scratchpad gives.

A message that was read and then changed in place would be lost without a word, for a save looks
only at what is new. So a stored value is handed out as a dict or list that refuses every change,
at any depth, and says how to make it instead. In all else it is a dict or a list: it prints,
compares, pickles and goes through ``json.dumps`` like one.

Freezing copies the top level only. A container inside is frozen when something first reaches it,
and from then on stands frozen in its place. So each method that hands out members freezes them
first; those that hand out keys, counts or comparisons are the base type's own. Whatever makes a new
container in Python (``copy``, a slice, ``+``, ``|``) makes a plain one here, with frozen members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from snapstore.errors import ReadOnlyValue

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values


def freeze(value: Any) -> Any:
    """A read-only view of a value: FrozenDict or FrozenList; scalars are given back as they are.

    What is inside a container is shared with the view until it is first reached, so a value that is
    frozen must have no other owner who changes it.
    """
    if isinstance(value, dict):
        return value if type(value) is FrozenDict else FrozenDict(value)
    if isinstance(value, list):
        return value if type(value) is FrozenList else FrozenList(value)
    return value


def thaw(value: Any) -> Any:
    """A deep copy of a value, frozen or not, in plain dicts and lists, of any depth."""
    if not isinstance(value, (dict, list)):
        return value
    root = _shell(value)
    unvisited = [root]
    while unvisited:
        node = unvisited.pop()
        for place, member in node.items() if type(node) is dict else enumerate(node):
            if isinstance(member, (dict, list)):
                node[place] = copied = _shell(member)
                unvisited.append(copied)
    return root


def _shell(container: Any) -> Any:
    """A plain copy of the top level, its members neither copied nor frozen."""
    if type(container) is FrozenDict:
        return dict(dict.items(container))
    if type(container) is FrozenList:
        return list.copy(container)
    return dict(container) if isinstance(container, dict) else list(container)


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise ReadOnlyValue(
        "a stored value is read only: change a copy and assign it, as in "
        'm = copy.deepcopy(history[3]); m["content"] = "new"; history[3] = m, '
        'or for a list in the scratchpad pad["files"] = [*pad["files"], x]',
        hint="copy.deepcopy() of what was read gives a plain value to change",
    )


class FrozenDict(dict[str, Any]):
    """A dict that was stored: reads as one, raises ReadOnlyValue at every change."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def _freeze_members(self) -> None:
        for key, member in dict.items(self):
            if isinstance(member, (dict, list)):
                # An assignment to a key that is there: it leaves every iterator valid.
                dict.__setitem__(self, key, freeze(member))

    def __getitem__(self, key: str) -> Any:
        member = dict.__getitem__(self, key)
        if isinstance(member, (dict, list)):
            member = freeze(member)
            dict.__setitem__(self, key, member)
        return member

    def get(self, key: str, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def __iter__(self) -> Iterator[str]:
        # Defined so that dict(x), {**x} and x | y ask __getitem__ for the members: CPython takes
        # them straight out of a dict subclass only if its __iter__ is dict's own.
        return dict.__iter__(self)

    def items(self) -> dict_items[str, Any]:
        self._freeze_members()
        return dict.items(self)

    def values(self) -> dict_values[str, Any]:
        self._freeze_members()
        return dict.values(self)

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> dict[str, Any]:
        plain: dict[str, Any] = thaw(self)
        return plain

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return dict, (), None, None, iter(self.items())


class FrozenList(list[Any]):
    """A list that was stored: reads as one, raises ReadOnlyValue at every change."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def _freeze_members(self) -> None:
        for index, member in enumerate(list.__iter__(self)):
            if isinstance(member, (dict, list)):
                list.__setitem__(self, index, freeze(member))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            self._freeze_members()
            return list.__getitem__(self, index)
        member = list.__getitem__(self, index)
        if isinstance(member, (dict, list)):
            member = freeze(member)
            list.__setitem__(self, index, member)
        return member

    def __iter__(self) -> Iterator[Any]:
        self._freeze_members()
        return list.__iter__(self)

    def __reversed__(self) -> Iterator[Any]:
        self._freeze_members()
        return list.__reversed__(self)

    def copy(self) -> list[Any]:
        return list(self)

    __copy__ = copy

    def __add__(self, other: Any) -> Any:
        return self.copy() + list(other) if isinstance(other, list) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return other + self.copy() if isinstance(other, list) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> list[Any]:
        return self.copy() * times

    __rmul__ = __mul__

    def __deepcopy__(self, memo: object) -> list[Any]:
        plain: list[Any] = thaw(self)
        return plain

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return list, (), None, iter(self)
