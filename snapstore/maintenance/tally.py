"""How long histories are, added up while all that a store holds passes by."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterable

from snapstore.chunks import pieces_of
from snapstore.engine import Kind, Move, Obj
from snapstore.engines.sheet import Sheet
from snapstore.errors import Corrupt, ObjectMissing
from snapstore.ids import SIZE
from snapstore.model.extents import Node
from snapstore.model.snapshot import Record
from snapstore.objects import Objects

_NO_TURN = -1
_MOST = (1 << 63) - 1
"""What a column takes; only lists made to look longer than they are exceed it."""


class Tally:
    """Takes in sheet by sheet; then counts the turns of lines. What is not whole is not counted:
    what is wrong with it is for verify to say."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._sizes: dict[bytes, int] = {}
        """Bytes of contents; of those that a list was seen to hold, ``~`` of it."""
        self._messages = self._contents = self._structure = 0
        self._lists: dict[bytes | None, int] = {None: 0}
        """Bytes of the contents of lists, by their last nodes."""
        self._turns: dict[bytes, int] = {}
        """Where each snapshot stands in the two columns."""
        self._parents = array("q")
        self._bytes = array("q")
        self._later: list[bytes] = []

    def add(self, sheet: Sheet) -> None:
        """Take in what comes next."""
        self._sizes.update(zip(sheet.ids, sheet.sizes, strict=True))
        self._contents += sum(sheet.sizes)
        self._structure += sum(len(o.payload) for o in sheet.others)
        for o in sheet.others:
            if not self._takes(o):
                self._later.append(o.id)

    def settle(self) -> None:
        """Look again at what came before something that it is built on. A line of which a turn is
        missing begins behind that; a history that is not whole counts as empty."""
        for object_id in self._later:
            with contextlib.suppress(Corrupt, ObjectMissing):
                self._takes(self._objects.engine.read(object_id), as_it_is=True)

    @property
    def kinds(self) -> dict[str, int]:
        """Bytes of the messages of all lists, each counted once; of other contents; of all else."""
        others = max(0, self._contents - self._messages)
        return {"messages": self._messages, "contents": others, "structure": self._structure}

    def size(self, tip: Move) -> int:
        """Bytes of the history that a ref leads to; 0 when it is not whole."""
        at = self._turns.get(tip.new or b"", _NO_TURN)
        return 0 if at == _NO_TURN else self._bytes[at]

    def count(self, tips: Iterable[Move]) -> tuple[int, int]:
        """Turns of these lines, those that they share once, and bytes of all their histories."""
        counted = bytearray(len(self._parents))
        turns = size = 0
        for tip in tips:
            at = self._turns.get(tip.new or b"", _NO_TURN)
            while at != _NO_TURN and not counted[at]:
                counted[at] = True
                turns += 1
                size += self._bytes[at]
                at = self._parents[at]
        return turns, size

    def _takes(self, o: Obj, *, as_it_is: bool = False) -> bool:
        """Whether all that an object is built on is known, or need not be."""
        try:
            if o.kind == Kind.SNAPSHOT:
                self._snapshot(o, as_it_is)
            elif o.kind == Kind.CHUNKED:
                pieces = pieces_of(o.payload, o.id)
                self._sizes[o.id] = sum(map(self._size, pieces))
            else:
                self._node(o)
        except (Corrupt, KeyError):
            return False
        return True

    def _snapshot(self, o: Obj, as_it_is: bool) -> None:
        record = Record.decode(o.payload, o.id)
        parent = record.parent
        if as_it_is:
            before = self._turns.get(parent or b"", _NO_TURN)
            size = self._lists.get(record.history, 0)
        else:
            before = _NO_TURN if parent is None else self._turns[parent]
            size = self._lists[record.history]
        self._turns[o.id] = len(self._parents)
        self._parents.append(before)
        self._bytes.append(min(size, _MOST))

    def _node(self, o: Obj) -> None:
        try:
            node = Node.decode(o.payload, o.id)
        except Corrupt:
            return  # of a map, whose size nobody asks for
        ids = node.ids
        held = [ids[at : at + SIZE] for at in range(0, len(ids), SIZE)]
        self._lists[o.id] = self._lists[node.prev] + sum(map(self._size, held))
        for one in held:
            if (size := self._sizes[one]) >= 0:
                self._messages += size
                self._sizes[one] = ~size

    def _size(self, content_id: bytes) -> int:
        size = self._sizes[content_id]
        return size if size >= 0 else ~size
