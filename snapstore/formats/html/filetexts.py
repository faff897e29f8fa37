"""The contents of files over the turns, most of them as what changed since the turn before.

A content is a text, or ``[base, head, tail, middle, count]``: the first ``head`` and the last
``tail`` lines of the content number ``base``, and between them the ``count`` lines of ``middle``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from snapstore.errors import SnapstoreError
from snapstore.formats.html.blobs import Blobs
from snapstore.objects import Objects
from snapstore.worktree import tree
from snapstore.worktree.files import content_of
from snapstore.worktree.tree import Entry

BINARY, LARGE, MISSING = -1, -2, -3
"""In place of a number: contents that the page does not carry."""

LARGEST = 256 << 10
"""Bytes of one file that a page carries."""
_MOST_KEPT = 4 << 20
"""Characters of texts that are held for what comes after them to be told by."""
_LONGEST_CHAIN = 40
"""Steps from a content to one that is whole: what the page has to read for one look."""


class _Before(NamedTuple):
    number: int
    lines: list[str]
    size: int
    chain: int


class FileTexts:
    """Takes in contents, each once."""

    def __init__(self, objects: Objects, blobs: Blobs, change: Callable[[bytes], bytes]) -> None:
        self._objects = objects
        self._blobs = blobs
        self._change = change
        self._numbers: dict[bytes, int] = {}
        self._last: OrderedDict[bytes, _Before] = OrderedDict()
        self._kept = 0

    def number(self, path: bytes, entry: Entry) -> int:
        """The number of what a file holds, or why there is none."""
        assert entry.kind == tree.FILE and entry.target is not None
        if entry.target not in self._numbers:
            self._numbers[entry.target] = self._taken(path, entry.target, entry.size)
        return self._numbers[entry.target]

    def _taken(self, path: bytes, content_id: bytes, size: int) -> int:
        if size > LARGEST:
            return LARGE
        try:
            content = b"".join(content_of(self._objects, content_id))
        except SnapstoreError:
            return MISSING
        if b"\0" in content[:8192]:
            return BINARY
        return self._added(path, self._change(content).decode("utf-8", "replace"))

    def _added(self, path: bytes, text: str) -> int:
        lines = text.split("\n")
        before = self._last.pop(path, None)
        chain = 0
        if before is not None:
            self._kept -= before.size
        if before is None or before.chain >= _LONGEST_CHAIN:
            number = self._blobs.add(text)
        else:
            head, tail = _common_ends(before.lines, lines)
            middle = "\n".join(lines[head : len(lines) - tail])
            number = self._blobs.add([before.number, head, tail, middle, len(lines) - head - tail])
            chain = before.chain + 1
        self._last[path] = _Before(number, lines, len(text), chain)
        self._kept += len(text)
        while self._kept > _MOST_KEPT:
            self._kept -= self._last.popitem(last=False)[1].size
        return number


def _common_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    least = min(len(old), len(new))
    head = next((n for n in range(least) if old[n] != new[n]), least)
    rest = least - head
    tail = next((n for n in range(rest) if old[-1 - n] != new[-1 - n]), rest)
    return head, tail
