"""Lists: chains of extents that share their beginnings.

A list is the id of its last node, its *tip*; the empty list is None. A node is a msgpack array

    [prev, jump, depth, total, ids]
    prev    the node before, 32 bytes; nil in the first node
    jump    a far ancestor (see skip), 32 bytes; nil when that is prev or nothing
    depth   how many nodes the list has, this one included
    total   how many items the list has, this node's included
    ids     this node's own items, 1 to 256 ids of 32 bytes joined in one byte string

and its content is the content of prev and then its own ids. So every node is a prefix of all that
are built on it, appending writes only what is new, and an edit starts from the deepest node that is
still a prefix. Nodes know nothing of time or names: equal lists that were cut alike are equal ids.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from snapstore.ids import SIZE
from snapstore.model.recent import Recent
from snapstore.model.skip import jump_depth, meet, next_jump, step
from snapstore.model.wire import Put, Read, damaged, is_link, pack, unpack

NODE_ITEMS = 256
"""Most items in one node; a longer append makes several nodes."""

_CACHED = 4096
_FIRST_STRIDE = 16


class Node(NamedTuple):
    """A decoded node. prev and jump are None where they lead to nothing."""

    prev: bytes | None
    jump: bytes | None
    depth: int
    total: int
    ids: bytes

    @property
    def start(self) -> int:
        """Index in the list of this node's first item."""
        return self.total - len(self.ids) // SIZE

    def encode(self) -> bytes:
        """The node as an object's content."""
        jump = None if self.jump == self.prev else self.jump
        return pack([self.prev, jump, self.depth, self.total, self.ids])

    @classmethod
    def decode(cls, content: bytes, node_id: bytes) -> Node:
        """The node in this content; raises Corrupt when it holds none."""
        prev, jump, depth, total, ids = _fields(content, node_id)
        if jump is None and depth & (depth + 1):
            # Only the depths 2^k - 1 jump to nothing, so here nil stands for prev.
            jump = prev
        return cls(prev, jump, depth, total, ids)


def _fields(content: bytes, node_id: bytes) -> tuple[bytes | None, bytes | None, int, int, bytes]:
    """The checked fields of a node as they are stored: cheaper than a Node, for long walks."""
    fields = unpack(content, node_id, most=5)
    if len(fields) != 5:
        raise damaged(node_id, f"a list node has 5 fields, not {len(fields)}")
    prev, jump, depth, total, ids = fields
    if not (is_link(prev) and is_link(jump) and type(depth) is type(total) is int):
        raise damaged(node_id, "a field of a list node has the wrong type")
    if type(ids) is not bytes or len(ids) % SIZE or not 0 < len(ids) <= NODE_ITEMS * SIZE:
        raise damaged(node_id, f"a list node holds 1 to {NODE_ITEMS} ids of {SIZE} bytes")
    before = total - len(ids) // SIZE
    first = prev is None
    if depth < 1 or before < depth - 1 or first != (depth == 1) or first != (before == 0):
        raise damaged(node_id, "depth, total and prev of a list node contradict each other")
    return prev, jump, depth, total, ids


class Lists:
    """Reads lists, and makes new ones out of old. Safe to share between threads."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._recent: Recent[Node] = Recent(_CACHED)

    def node(self, node_id: bytes) -> Node:
        """The node with this id; raises ObjectMissing, or Corrupt when it is no list node."""
        node = self._recent.get(node_id)
        if node is None:
            node = Node.decode(self._read(node_id), node_id)
            self._recent.add(node_id, node)
        return node

    def length(self, tip: bytes | None) -> int:
        """How many items the list has."""
        return 0 if tip is None else self.node(tip).total

    def append(self, tip: bytes | None, ids: Sequence[bytes], put: Put) -> bytes | None:
        """The tip of the list with these ids at its end. The cost does not grow with the list."""
        joined = b"".join(ids)
        if len(joined) != len(ids) * SIZE:
            raise ValueError(f"every id must have {SIZE} bytes")
        for at in range(0, len(joined), NODE_ITEMS * SIZE):
            tip = self._grow(tip, joined[at : at + NODE_ITEMS * SIZE], put)
        return tip

    def replace(self, tip: bytes | None, keep: int, ids: Sequence[bytes], put: Put) -> bytes | None:
        """The tip of the list of the first `keep` items and then these ids.

        It is built on the deepest node that is a whole prefix; where `keep` cuts through a node,
        the items before the cut are written again. O(log n) reads. Raises ValueError when the
        list has fewer than `keep` items.
        """
        length = self.length(tip)
        if not 0 <= keep <= length:
            raise ValueError(f"cannot keep {keep} of {length} items")
        if keep == length:
            return self.append(tip, ids, put)
        cut = self._holder(tip, keep)
        repeated = _split(cut.ids[: (keep - cut.start) * SIZE])
        return self.append(cut.prev, [*repeated, *ids], put)

    def item(self, tip: bytes | None, index: int) -> bytes:
        """The id at this index: O(log n) reads. Raises IndexError outside of 0 to length - 1."""
        if not 0 <= index < self.length(tip):
            raise IndexError(f"no item {index} in a list of {self.length(tip)}")
        node = self._holder(tip, index)
        at = (index - node.start) * SIZE
        return node.ids[at : at + SIZE]

    def slice(self, tip: bytes | None, start: int, stop: int) -> list[bytes]:
        """The ids from start up to stop, in order; bounds beyond the list are moved to its ends.

        Reads the nodes that hold them and O(log n) others, newest first.
        """
        start, stop = max(start, 0), min(stop, self.length(tip))
        if start >= stop:
            return []
        last = self._holder(tip, stop - 1)
        parts = [last.ids[: (stop - last.start) * SIZE]]
        prev, depth, first = last.prev, last.depth, last.start
        while first > start:
            assert (
                prev is not None
            )  # Checked with the fields: only a node that starts at 0 has none.
            here = prev
            prev, _, found, total, ids = _fields(self._read(here), here)
            depth -= 1
            if found != depth or total != first:
                raise damaged(here, "it does not end where the node after it starts")
            parts.append(ids)
            first = total - len(ids) // SIZE
        parts.reverse()
        return _split(b"".join(parts)[(start - first) * SIZE :])

    def common_prefix(self, one: bytes | None, other: bytes | None) -> int:
        """How many items the two lists have in common from their beginning.

        The deepest node that both share is found in O(log n) reads, and the ids that follow are
        compared, in strides of doubling length: lists that were cut differently from the start
        cost as much as they have in common.
        """
        shared = meet(self.node, one, other)
        equal = self.length(shared)
        end = min(self.length(one), self.length(other))
        stride = _FIRST_STRIDE
        while equal < end:
            stop = min(equal + stride, end)
            left, right = self.slice(one, equal, stop), self.slice(other, equal, stop)
            if left != right:
                return equal + next(i for i, id in enumerate(left) if id != right[i])
            equal, stride = stop, 2 * stride
        return equal

    def reachable(
        self, tip: bytes | None, known: Container[bytes] = ()
    ) -> Iterator[tuple[bytes, Node]]:
        """Every node of the list with its id, newest first, up to the first that is in `known`."""
        above: Node | None = None
        while tip is not None and tip not in known:
            node = Node.decode(self._read(tip), tip)
            if above is not None and (node.depth, node.total) != (above.depth - 1, above.start):
                raise damaged(tip, "it does not end where the node after it starts")
            yield tip, node
            tip, above = node.prev, node

    def _grow(self, tip: bytes | None, ids: bytes, put: Put) -> bytes:
        """Puts one node on tip."""
        added = len(ids) // SIZE
        if tip is None:
            node = Node(None, None, 1, added, ids)
        else:
            before = self.node(tip)
            jump = next_jump(self.node, tip)
            node = Node(tip, jump, before.depth + 1, before.total + added, ids)
        node_id = put(node.encode())
        self._recent.add(node_id, node)
        return node_id

    def _holder(self, tip: bytes | None, index: int) -> Node:
        """The node that holds the item at this index, which must be there: O(log n) reads."""
        assert tip is not None
        here, node = tip, self.node(tip)
        while node.start > index:
            if node.jump is not None:
                far, jumped = step(self.node, here, node.jump, jump_depth(node.depth))
                if jumped.total > index:
                    here, node = far, jumped
                    continue
            start = node.start
            here, node = step(self.node, here, node.prev, node.depth - 1)
            if node.total != start:
                raise damaged(here, "it does not end where the node after it starts")
        return node


def _split(joined: bytes) -> list[bytes]:
    return [joined[at : at + SIZE] for at in range(0, len(joined), SIZE)]
