"""Maps from byte strings to values, canonical: equal content is an equal root id.

A map is the id of its root node; the empty map is None. Up to 64 entries make a leaf. More make a
branch, whose 16 children are maps again, by the hash of the key: at level n (the root is level 0)
an entry belongs to the child of the n-th half byte of BLAKE3(key), high half first. A map that has
shrunk to 64 entries is a leaf again, so how it came about leaves no trace. Nodes are msgpack arrays

    [0, key, value, key, value, ...]        leaf: entries sorted by key, at least one
    [1, count, present, ids]                branch
    count     how many entries lie below, more than 64
    present   bit n is set when child n is not empty
    ids       the ids of these children, in order, joined in one byte string

A key is a byte string. A value is a byte string (inline) or ext type 1 with the 32 bytes of an id
(link). One changed entry of n costs O(log n) nodes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgpack

from snapstore.ids import SIZE, object_id
from snapstore.model.recent import Recent
from snapstore.model.wire import Put, Read, damaged, pack, unpack

LEAF_ENTRIES = 64
"""Most entries of a leaf."""

INLINE = 200
"""Up to so many bytes a value is best kept inline, longer ones as a link. Nothing enforces it."""

_HEX = "0123456789abcdef"
_FANOUT = len(_HEX)
_LEVELS = 2 * SIZE
_LEAF, _BRANCH = 0, 1
_LINK = 1
_CACHED = 256


@dataclass(frozen=True, slots=True)
class Inline:
    """A value that stands in the map itself."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Link:
    """A value that is an object of its own."""

    id: bytes


Value: TypeAlias = Inline | Link
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A decoded leaf. `entries` is sorted by key and must not be changed."""

    entries: Mapping[bytes, Value]

    @property
    def count(self) -> int:
        """How many entries it has."""
        return len(self.entries)

    @property
    def links(self) -> list[bytes]:
        """The ids that its values refer to."""
        return [value.id for value in self.entries.values() if isinstance(value, Link)]


@dataclass(frozen=True, slots=True)
class Branch:
    """A decoded branch: 16 children, None where empty."""

    count: int
    children: tuple[bytes | None, ...]


Node: TypeAlias = Leaf | Branch


class Change(NamedTuple):
    """One key whose values differ; None: it is not there."""

    key: bytes
    old: Value | None
    new: Value | None


def encode(node: Node) -> bytes:
    """The node as an object's content."""
    if isinstance(node, Branch):
        present = sum(1 << at for at, child in enumerate(node.children) if child is not None)
        joined = b"".join(child for child in node.children if child is not None)
        return pack([_BRANCH, node.count, present, joined])
    fields: list[Any] = [_LEAF]
    for key, value in node.entries.items():
        fields.append(key)
        fields.append(
            value.content if isinstance(value, Inline) else msgpack.ExtType(_LINK, value.id)
        )
    return pack(fields)


def decode(content: bytes, node_id: bytes) -> Node:
    """The node in this content; raises Corrupt when it holds none."""
    fields = unpack(content, node_id, most=1 + 2 * LEAF_ENTRIES)
    if not fields or type(fields[0]) is not int or fields[0] not in (_LEAF, _BRANCH):
        raise damaged(node_id, "it is neither leaf nor branch of a map")
    return (_leaf if fields[0] == _LEAF else _branch)(fields, node_id)


def _leaf(fields: tuple[Any, ...], node_id: bytes) -> Leaf:
    keys, values = fields[1::2], fields[2::2]
    if not keys or len(keys) != len(values):
        raise damaged(node_id, "a leaf of a map holds pairs of key and value")
    entries: dict[bytes, Value] = {}
    for key, value in zip(keys, values, strict=True):
        if type(key) is not bytes:
            raise damaged(node_id, "a key of a map is no byte string")
        if type(value) is bytes:
            entries[key] = Inline(value)
        elif type(value) is msgpack.ExtType and value.code == _LINK and len(value.data) == SIZE:
            entries[key] = Link(value.data)
        else:
            raise damaged(node_id, "a value of a map is neither byte string nor link")
    if list(keys) != sorted(entries):
        raise damaged(node_id, "the keys of a map are not sorted")
    return Leaf(entries)


def _branch(fields: tuple[Any, ...], node_id: bytes) -> Branch:
    if len(fields) != 4:
        raise damaged(node_id, f"a branch of a map has 4 fields, not {len(fields)}")
    _, count, present, joined = fields
    if not (type(count) is type(present) is int and type(joined) is bytes):
        raise damaged(node_id, "a field of a branch of a map has the wrong type")
    if count <= LEAF_ENTRIES or not 0 < present < 1 << _FANOUT:
        raise damaged(node_id, "a branch of a map has an impossible count or set of children")
    if len(joined) != present.bit_count() * SIZE:
        raise damaged(node_id, "a branch of a map names more or fewer children than it has")
    ids = (joined[at : at + SIZE] for at in range(0, len(joined), SIZE))
    return Branch(count, tuple(next(ids) if present >> at & 1 else None for at in range(_FANOUT)))


@dataclass(frozen=True, slots=True)
class _Unstored:
    """A branch in the making: children that changed are not objects yet."""

    count: int
    children: tuple[_Tree, ...]


_Tree: TypeAlias = "bytes | Leaf | _Unstored | None"


class Maps:
    """Reads maps, and makes new ones out of old. Safe to share between threads."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._recent: Recent[Node] = Recent(_CACHED)

    def node(self, node_id: bytes) -> Node:
        """The node with this id; raises ObjectMissing, or Corrupt when it is no map node."""
        node = self._recent.get(node_id)
        if node is None:
            node = decode(self._read(node_id), node_id)
            self._recent.add(node_id, node)
        return node

    def count(self, root: bytes | None) -> int:
        """How many entries the map has."""
        return 0 if root is None else self.node(root).count

    def get(self, root: bytes | None, key: bytes) -> Value | None:
        """The value of this key, None when it is not there: O(log n) reads."""
        level = 0
        while root is not None:
            node = self._at(root, level)
            if isinstance(node, Leaf):
                return node.entries.get(key)
            root = node.children[_digit(key, level)]
            level += 1
        return None

    def items(self, root: bytes | None) -> list[tuple[bytes, Value]]:
        """All entries, sorted by key."""
        entries = self._entries(root, "")
        if root is not None and len(entries) != self.count(root):
            raise damaged(root, f"it counts {self.count(root)} entries and has {len(entries)}")
        return sorted(entries.items(), key=lambda entry: entry[0])

    def update(
        self, root: bytes | None, changes: Mapping[bytes, Value | None], put: Put
    ) -> bytes | None:
        """The root of the map with these values set, and the keys that have None removed.

        Reads and puts O(changed * log n) nodes; puts none when nothing differs.
        """
        if not changes:
            return root
        return self._store(self._edit(root, 0, changes), put)

    def diff(self, old: bytes | None, new: bytes | None) -> Iterator[Change]:
        """The keys whose values differ, sorted. Parts that both maps share are not read."""
        yield from sorted(self._changes(old, new, ""), key=lambda change: change.key)

    def reachable(
        self, root: bytes | None, known: Container[bytes] = ()
    ) -> Iterator[tuple[bytes, Node]]:
        """Every node of the map with its id, leaving out the parts whose root is in `known`.

        What the entries refer to is in the `links` of the leaves.
        """
        return self._nodes(root, "", known)

    def _at(self, node_id: bytes, level: int) -> Node:
        """The node, which is met at this level on the way to one key."""
        node = self.node(node_id)
        if level >= _LEVELS and isinstance(node, Branch):
            raise damaged(node_id, "a branch of a map lies deeper than hashes are long")
        return node

    def _nodes(
        self, root: bytes | None, path: str, known: Container[bytes] = ()
    ) -> Iterator[tuple[bytes, Node]]:
        """The nodes below one that is reached by these digits of the hash.

        Every key is checked to belong where it is met, so no node is met in two places and hostile
        maps cannot make the walk longer than they are.
        """
        todo = [] if root is None else [(root, path)]
        while todo:
            here, path = todo.pop()
            if here in known:
                continue
            node = self.node(here)
            if isinstance(node, Branch):
                todo += [
                    (child, path + digit)
                    for digit, child in zip(_HEX, node.children, strict=True)
                    if child is not None
                ]
            elif path and not all(object_id(key).hex().startswith(path) for key in node.entries):
                raise damaged(here, "a key of a map is not where its hash belongs")
            yield here, node

    def _entries(self, root: bytes | None, path: str) -> dict[bytes, Value]:
        """All entries of the map that is reached by these digits, in no particular order."""
        entries: dict[bytes, Value] = {}
        for _, node in self._nodes(root, path):
            if isinstance(node, Leaf):
                entries.update(node.entries)
        return entries

    def _changes(self, old: bytes | None, new: bytes | None, path: str) -> Iterator[Change]:
        if old == new:
            return
        left, right = (None if id is None else self._at(id, len(path)) for id in (old, new))
        if isinstance(left, Branch) and isinstance(right, Branch):
            for digit, one, other in zip(_HEX, left.children, right.children, strict=True):
                yield from self._changes(one, other, path + digit)
            return
        before, after = self._entries(old, path), self._entries(new, path)
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                yield Change(key, before.get(key), after.get(key))

    def _edit(self, root: bytes | None, level: int, changes: Mapping[bytes, Value | None]) -> _Tree:
        """The map at this level after the changes; its own id when nothing differs."""
        node = Leaf({}) if root is None else self._at(root, level)
        if isinstance(node, Leaf):
            merged = {**node.entries, **changes}
            after = {key: value for key, value in merged.items() if value is not None}
            return root if after == node.entries else _plant(after, level)
        children: list[_Tree] = list(node.children)
        count = node.count
        for at, part in _by_digit(changes, level).items():
            was, children[at] = children[at], self._edit(node.children[at], level + 1, part)
            count += self._count(children[at]) - self._count(was)
        if tuple(children) == node.children:
            return root
        if count <= LEAF_ENTRIES:
            return _plant({k: v for tree in children for k, v in self._gather(tree)}, level)
        return _Unstored(count, tuple(children))

    def _count(self, tree: _Tree) -> int:
        return tree.count if isinstance(tree, Leaf | _Unstored) else self.count(tree)

    def _gather(self, tree: _Tree) -> Iterator[tuple[bytes, Value]]:
        if isinstance(tree, _Unstored):
            for child in tree.children:
                yield from self._gather(child)
        else:
            entries = tree.entries if isinstance(tree, Leaf) else self._entries(tree, "")
            yield from entries.items()

    def _store(self, tree: _Tree, put: Put) -> bytes | None:
        """Puts what is not stored yet, children before parents."""
        if tree is None or isinstance(tree, bytes):
            return tree
        node: Node
        if isinstance(tree, Leaf):
            node = tree
        else:
            node = Branch(tree.count, tuple(self._store(child, put) for child in tree.children))
        node_id = put(encode(node))
        self._recent.add(node_id, node)
        return node_id


def _plant(entries: Mapping[bytes, Value], level: int) -> _Tree:
    """The one shape that a map of these entries has at this level."""
    if not entries:
        return None
    if len(entries) <= LEAF_ENTRIES:
        return Leaf({key: entries[key] for key in sorted(entries)})
    children: list[_Tree] = [None] * _FANOUT
    for at, part in _by_digit(entries, level).items():
        children[at] = _plant(part, level + 1)
    return _Unstored(len(entries), tuple(children))


def _by_digit(entries: Mapping[bytes, V], level: int) -> dict[int, dict[bytes, V]]:
    """The entries by the child of a branch at this level that they belong to."""
    parts: dict[int, dict[bytes, V]] = {}
    for key, value in entries.items():
        parts.setdefault(_digit(key, level), {})[key] = value
    return parts


def _digit(key: bytes, level: int) -> int:
    byte = object_id(key)[level // 2]
    return byte & 15 if level % 2 else byte >> 4
