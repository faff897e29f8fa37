"""What stays when segments are written anew: what a rewriting asks, and is answered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from snapstore.engine import Move, Obj, check_tips


class Selection(Protocol):
    """Says what stays."""

    def begin(self) -> None:
        """Called first: find out what stays."""

    def meet(self, objects: Sequence[Obj], moves: Sequence[Move]) -> Collection[bytes]:
        """These were committed since, and stay; the ids of others that stay from now on because
        of them and would not have before. Called with the store's lock held, too: to be quick."""

    def keeps(self, object_id: bytes) -> bool:
        """Whether an object stays."""

    def becomes(self, move: Move) -> Move | None:
        """What becomes of a move: the same, one that says less, or None for nothing."""

    def confirm(self, tips: Sequence[Move]) -> None:
        """Called last, with the lock held and the last moves of all refs: what it raises gives the
        rewriting up, and nothing has happened."""


class AllBut:
    """Everything stays but some objects, and of some refs the moves before a certain one."""

    def __init__(
        self,
        objects: Collection[bytes],
        before: Mapping[str, int],
        tips: Mapping[str, int] | None,
    ) -> None:
        """With tips, the gen of each ref's last move, only if none has moved since."""
        self._objects = frozenset(objects)
        self._before = before
        self._tips = tips

    def begin(self) -> None:
        """See ``Selection``."""

    def meet(self, objects: Sequence[Obj], moves: Sequence[Move]) -> Collection[bytes]:
        """See ``Selection``."""
        return ()

    def keeps(self, object_id: bytes) -> bool:
        """See ``Selection``."""
        return object_id not in self._objects

    def becomes(self, move: Move) -> Move | None:
        """See ``Selection``."""
        return move if move.gen >= self._before.get(move.ref, 0) else None

    def confirm(self, tips: Sequence[Move]) -> None:
        """See ``Selection``. Raises RefMoved."""
        if self._tips is not None:
            check_tips(self._tips, tips)


@dataclass(slots=True)
class Dropped:
    """What a rewriting leaves out, or would: distinct objects, and bytes of their contents."""

    sizes: dict[bytes, int] = field(default_factory=dict)

    @property
    def objects(self) -> int:
        """How many."""
        return len(self.sizes)

    @property
    def bytes(self) -> int:
        """How much they held, before compression."""
        return sum(self.sizes.values())
