"""What a session object stands on: a turn, and under what its caller changes, that turn's history
and scratchpad. They change together, or not at all.

Ctrl-C may come with any call, so all that is needed is looked up first, and put in place without
one. And it may come when the turn of a save is committed and the caller was not told; an object
store may lose the answer, too. So the turn that is being saved is remembered. When HEAD is then
found to be that turn, it is what the object stands on, and what was changed since is a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapstore.history import History
from snapstore.objects import Objects
from snapstore.scratchpad import Scratchpad

if TYPE_CHECKING:
    from snapstore.snapshot import Snapshot


class Standing:
    """The history and the scratchpad of a session object, and the turn below them."""

    def __init__(self, objects: Objects) -> None:
        self.head: Snapshot | None = None
        self.history = History(objects, None)
        self.scratchpad = Scratchpad(objects, None)
        self.attempt: Snapshot | None = None
        """The turn of a save of which it is not known whether it was committed."""
        self._length = objects.lists.length
        self._kept = 0

    def move(self, head: Snapshot | None) -> None:
        """Stand on a turn; changes are dropped."""
        tip = head.record.history if head else None
        root = head.record.scratchpad if head else None
        length = self._length(tip)
        history, scratchpad = self.history, self.scratchpad
        # No call from here on.
        history._tip, history._kept, history._saved, history._tail = tip, length, length, []
        scratchpad._root, scratchpad._changes = root, {}
        self.head, self.attempt = head, None

    def try_to(self, turn: Snapshot) -> None:
        """A commit of this turn is about to be tried."""
        self._kept = self.history._kept
        self.attempt = turn

    def settle(self, actual: bytes | None) -> None:
        """HEAD was found to be there: if that is the turn that was tried, stand on it."""
        turn = self.attempt
        if turn is None or turn.raw_id != actual:
            return
        history, scratchpad = self.history, self.scratchpad
        # Of what the history has in common with the saved one it was only tried to keep so many.
        kept = min(self._kept, history._kept)
        tip, tail = turn.record.history, history._items(kept)
        length = self._length(tip)
        # No call from here on.
        history._tip, history._kept, history._saved, history._tail = tip, kept, length, tail
        scratchpad._root = turn.record.scratchpad
        self.head, self.attempt = turn, None
