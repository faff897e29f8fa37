"""Bodies of values as objects: pieces in a tree of chunk lists that grows at its end.

A body is content like any other: its id is the hash of its bytes, and whoever walks the store
meets a chunk list. How its pieces are grouped follows from their number alone: every 8 make a list,
every 8 of these a longer one, and so on; the body itself lists the longest of these and what is
left over.

    19 pieces    [0..7] [8..15] 16 17 18

So a body that goes on from another shares every full list with it, and a piece more of n costs
O(log n) ids. Prefix sharing is safe because the other body is reachable from the thread that the
new one is committed to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from snapstore.engine import Kind, Obj
from snapstore.ids import object_id
from snapstore.integrations.langgraph.cuts import Cut, common_prefix
from snapstore.objects import Objects, Stage

FAN_OUT = 8
_BUDGET = 64 << 20


@dataclass(frozen=True, slots=True)
class Body:
    """A body with what is known about it."""

    id: bytes
    data: bytes
    cut: Cut
    levels: list[list[bytes]]
    """Ids: of the pieces, of the lists of 8, of the lists of 64, ..."""


class Bodies:
    """Keeps and reads bodies, and remembers the last ones. Safe to share between threads."""

    def __init__(self, objects: Objects, budget: int = _BUDGET) -> None:
        """Budget is how many bytes may be remembered."""
        self._objects = objects
        self._budget = budget
        self._mutex = threading.Lock()
        self._recent: OrderedDict[bytes, bytes | Body] = OrderedDict()
        self._size = 0

    def known(self, body_id: bytes) -> Body | None:
        """A body that was kept not long ago."""
        found = self._get(body_id)
        return found if isinstance(found, Body) else None

    def read(self, body_id: bytes) -> bytes:
        """The bytes of a body. Raises ObjectMissing or Corrupt."""
        found = self._get(body_id)
        if found is None:
            found = self._objects.content(body_id)
            self._add(body_id, found)
        return found.data if isinstance(found, Body) else found

    def keep(self, data: bytes, cut: Cut, stage: Stage, before: Body | None = None) -> bytes:
        """Stage what is new of a body; its id. Before is one that may begin alike."""
        levels = _shared(data, cut, before)
        same = len(levels[0])
        start = cut.ends[same - 1] if same else 0
        for end in cut.ends[same:]:
            levels[0].append(stage.put_content(data[start:end]))
            start = end
        _fill(levels, data, cut.ends, stage)
        body_id = _top(levels, data, stage)
        self._add(body_id, Body(body_id, data, cut, levels))
        return body_id

    def _get(self, body_id: bytes) -> bytes | Body | None:
        with self._mutex:
            found = self._recent.get(body_id)
            if found is not None:
                self._recent.move_to_end(body_id)
            return found

    def _add(self, body_id: bytes, body: bytes | Body) -> None:
        with self._mutex:
            self._size += _size(body) - _size(self._recent.get(body_id, b""))
            self._recent[body_id] = body
            self._recent.move_to_end(body_id)
            while self._size > self._budget and len(self._recent) > 1:
                self._size -= _size(self._recent.popitem(last=False)[1])


def _size(body: bytes | Body) -> int:
    return len(body.data) if isinstance(body, Body) else len(body)


def _shared(data: bytes, cut: Cut, before: Body | None) -> list[list[bytes]]:
    """The ids that the new body has in common with another, level by level."""
    same = 0
    if before is not None:
        shared = common_prefix(data, before.data)
        for mine, theirs in zip(cut.ends, before.cut.ends, strict=False):
            if mine != theirs or mine > shared:
                break
            same += 1
    if before is None or same == 0:
        return [[]]
    return [
        ids[: same // FAN_OUT**level]
        for level, ids in enumerate(before.levels)
        if level == 0 or same >= FAN_OUT**level
    ]


def _fill(levels: list[list[bytes]], data: bytes, ends: Sequence[int], stage: Stage) -> None:
    """Stage the full lists that are not there yet."""
    level = 0
    while len(levels[level]) >= FAN_OUT:
        if level + 1 == len(levels):
            levels.append([])
        below, here = levels[level], levels[level + 1]
        span = FAN_OUT ** (level + 1)
        while (len(here) + 1) * FAN_OUT <= len(below):
            first = len(here)
            start = ends[first * span - 1] if first else 0
            members = below[first * FAN_OUT : (first + 1) * FAN_OUT]
            here.append(_list(data[start : ends[(first + 1) * span - 1]], members, stage))
        level += 1


def _top(levels: list[list[bytes]], data: bytes, stage: Stage) -> bytes:
    members: list[bytes] = []
    covered = 0
    for level in range(len(levels) - 1, -1, -1):
        rest = levels[level][covered // FAN_OUT**level :]
        members += rest
        covered += len(rest) * FAN_OUT**level
    return members[0] if len(members) == 1 else _list(data, members, stage)


def _list(data: bytes, members: Sequence[bytes], stage: Stage) -> bytes:
    return stage.put(Obj(object_id(data), Kind.CHUNKED, b"".join(members)))
