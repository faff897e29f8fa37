"""Tool results that answer nothing, found while all messages pass by.

Each list node adds messages to those of the node before it, so the calls that wait for a result
behind a node follow from those behind the one before: no history is read. What is found says what a
model's API will refuse, not that anything was lost. A call without a result is none of it: its
result may still come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from snapstore import values
from snapstore.engine import Move
from snapstore.errors import SnapstoreError
from snapstore.ids import SIZE
from snapstore.model.extents import Node
from snapstore.model.skip import at_depth
from snapstore.objects import Objects
from snapstore.toolshapes import parts

_Part: TypeAlias = tuple[bool, str]
"""Whether it is a call, and the call's id."""

_Waiting: TypeAlias = "tuple[str, _Waiting] | None"
"""The ids of the calls without a result, the latest first; behind a node it is what it was behind
the node before, with few changes, so they share."""


class Odd(NamedTuple):
    """A result that has no call before it, or whose call has one already."""

    call: str
    message: bytes
    """Id of the message that holds it."""
    node: bytes
    """The list node that holds this message: it is in every history that is built on that."""
    position: int
    """Position of the message in these histories."""


class Pairs:
    """Takes in contents and lists as they come; each list after the one that it is built on."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._parts: dict[bytes, tuple[_Part, ...]] = {}
        self._waiting: dict[bytes | None, _Waiting] = {}
        self._tip: bytes | None = None
        self._first: dict[str, int] = {}
        self.found: list[Odd] = []

    def contents(self, ids: Sequence[bytes], contents: Sequence[bytes]) -> None:
        """Take in objects, which may be messages."""
        if _may_have_parts(b"".join(contents)):
            for object_id, content in zip(ids, contents, strict=False):
                if _may_have_parts(content):
                    self._take(object_id, content)

    def large(self, ids: Iterable[bytes]) -> None:
        """Take in messages that come in pieces, and are read for it."""
        for object_id in ids:
            if object_id not in self._parts:
                self._take(object_id, self._objects.content(object_id))

    def _take(self, object_id: bytes, content: bytes) -> None:
        try:
            held = tuple((part.is_call, part.id) for part in parts(values.decode(content)))
        except SnapstoreError:
            return  # no value, so no message
        if held:
            self._parts[object_id] = held

    def extent(self, node_id: bytes, node: Node, ids: Sequence[bytes]) -> None:
        """Take in a node of a list, which these are the messages of."""
        waiting = self._waiting.get(node.prev)
        for index, message in enumerate(ids, node.start):
            for is_call, call in self._parts.get(message, ()):
                if is_call:
                    waiting = call, waiting
                elif _waits(waiting, call):
                    waiting = _without(waiting, call)
                else:
                    self.found.append(Odd(call, message, node_id, index))
        if waiting is not None:
            self._waiting[node_id] = waiting

    def told(self, odd: Odd) -> str:
        """What is odd about it. Reads the history up to there, unless the one before was asked of
        the same history and further on."""
        if not self._is_before(odd.node, self._tip):
            self._tip, self._first = odd.node, self._first_calls(odd.node)
        if self._first.get(odd.call, odd.position + 1) <= odd.position:
            return f"the result of {odd.call} comes a second time"
        return f"the result of {odd.call} has no call before it"

    def _is_before(self, node_id: bytes, tip: bytes | None) -> bool:
        """Whether a list node is among those of a list."""
        read = self._objects.lists.node
        depth = read(node_id).depth
        return (
            tip is not None and read(tip).depth >= depth and at_depth(read, tip, depth) == node_id
        )

    def _first_calls(self, tip: bytes) -> dict[str, int]:
        """Where in a history each id was first called."""
        lists = self._objects.lists
        found: dict[str, int] = {}
        for position, message in enumerate(lists.slice(tip, 0, lists.length(tip))):
            for is_call, call in self._parts.get(message, ()):
                if is_call:
                    found.setdefault(call, position)
        return found


def _may_have_parts(encoded: bytes) -> bool:
    """Whether there may be a message with calls or results in it: each has one of these, and few
    others do."""
    return b"tool_" in encoded or b"_call" in encoded or b"\xa4role\xa8function" in encoded


def read_pairs(pairs: Pairs, objects: Objects, tips: Iterable[Move]) -> None:
    """Give pairs the histories of these turns, where lists do not come by themselves."""
    seen: set[bytes] = set()
    for tip in tips:
        assert tip.new is not None
        history = objects.snapshots.record(tip.new).history
        nodes = list(objects.lists.reachable(history, seen))
        for node_id, node in reversed(nodes):
            ids = [node.ids[at : at + SIZE] for at in range(0, len(node.ids), SIZE)]
            pairs.contents(ids, objects.contents(ids))
            pairs.extent(node_id, node, ids)
        seen.update(node_id for node_id, _ in nodes)


def _waits(waiting: _Waiting, call: str) -> bool:
    while waiting is not None:
        latest, waiting = waiting
        if latest == call:
            return True
    return False


def _without(waiting: _Waiting, call: str) -> _Waiting:
    """The same without the latest call of this id, which is among them."""
    later: list[str] = []
    while waiting is not None:
        latest, waiting = waiting
        if latest == call:
            break
        later.append(latest)
    for other in reversed(later):
        waiting = other, waiting
    return waiting
