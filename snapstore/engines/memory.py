"""The memory engine: the contract in its plainest form, and what tests compare the others with."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence

from snapstore.engine import Move, Obj, Problem, Progress, Stats, Update, check_tips, check_update
from snapstore.errors import Corrupt, ObjectMissing, SnapstoreError


class MemoryEngine:
    """Objects and refs in dictionaries; gone with the process. See ``snapstore.engine.Engine``."""

    warnings: tuple[str, ...] = ()
    cut_off: Corrupt | None = None

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._objects: dict[bytes, Obj] = {}
        self._moves: list[Move] = []
        self._by_ref: dict[str, list[Move | None]] = {}
        """The moves of each ref, number gen at gen - 1; None for one that was discarded."""
        self._closed = False

    def exists(self) -> bool:
        """A store in memory is there from the start."""
        return True

    def create(self) -> None:
        """Nothing to make."""
        self._usable()

    def close(self) -> None:
        """Forget everything."""
        self._closed = True

    def _usable(self) -> None:
        if self._closed:
            raise SnapstoreError("this store handle is closed", hint="open the store again")

    def read(self, object_id: bytes) -> Obj:
        """See ``snapstore.engine.Engine.read``."""
        self._usable()
        try:
            return self._objects[object_id]
        except KeyError:
            raise ObjectMissing(object_id) from None

    def read_many(self, object_ids: Sequence[bytes]) -> list[Obj]:
        """See ``snapstore.engine.Engine.read_many``."""
        return [self.read(object_id) for object_id in object_ids]

    def contains(self, object_id: bytes) -> bool:
        """See ``snapstore.engine.Engine.contains``."""
        self._usable()
        return object_id in self._objects

    def ids(self, prefix: bytes, digits: int) -> Iterator[tuple[bytes, int]]:
        """See ``snapstore.engine.Engine.ids``."""
        self._usable()
        text = prefix.hex()[:digits]
        with self._mutex:
            found = sorted((o.id, o.kind) for o in self._objects.values())
        yield from ((i, kind) for i, kind in found if i.hex().startswith(text))

    def commit(self, objects: Sequence[Obj], update: Update | None = None) -> Move | None:
        """See ``snapstore.engine.Engine.commit``."""
        with self._mutex:
            self._usable()
            move = check_update(update, self.tip(update.ref)) if update else None
            for o in objects:
                self._objects.setdefault(o.id, o)
            if move is not None:
                moves = self._by_ref.setdefault(move.ref, [])
                # Both without a call, so that Ctrl-C comes before or after.
                self._moves += [move]
                moves += [move]
            return move

    def tip(self, ref: str) -> Move | None:
        """See ``snapstore.engine.Engine.tip``."""
        self._usable()
        moves = self._by_ref.get(ref)
        return moves[-1] if moves else None

    def move(self, ref: str, gen: int) -> Move | None:
        """See ``snapstore.engine.Engine.move``."""
        self._usable()
        moves = self._by_ref.get(ref, [])
        return moves[gen - 1] if 1 <= gen <= len(moves) else None

    def tips(self, prefix: str = "") -> Iterator[Move]:
        """See ``snapstore.engine.Engine.tips``."""
        self._usable()
        with self._mutex:
            found = [moves[-1] for moves in self._by_ref.values()]
        named = (move for move in found if move is not None and move.ref.startswith(prefix))
        yield from sorted(named, key=lambda move: move.ref)

    def reflog(self) -> Iterator[Move]:
        """See ``snapstore.engine.Engine.reflog``."""
        self._usable()
        yield from reversed(list(self._moves))

    def verify(self, progress: Progress | None = None) -> Iterator[Problem]:
        """See ``snapstore.engine.Engine.verify``. Memory has no place where it could rot."""
        self._usable()
        yield from ()

    def stats(self) -> Stats:
        """See ``snapstore.engine.Engine.stats``."""
        self._usable()
        with self._mutex:
            return Stats(len(self._objects), sum(len(o.payload) for o in self._objects.values()))

    def discard(
        self,
        objects: Collection[bytes],
        before: Mapping[str, int],
        tips: Mapping[str, int] | None = None,
    ) -> int:
        """See ``snapstore.engine.Discarding``."""
        with self._mutex:
            self._usable()
            if tips is not None:
                check_tips(tips, self.tips())
            doomed = frozenset(objects)
            left = {i: o for i, o in self._objects.items() if i not in doomed}
            dropped = len(self._objects) - len(left)
            moves = [move for move in self._moves if move.gen >= before.get(move.ref, 0)]
            by_ref = dict(self._by_ref)
            for ref, first in before.items():
                by_ref[ref] = [*[None] * (first - 1), *by_ref[ref][first - 1 :]]
            # At once and without a call, so that Ctrl-C comes before or after it.
            self._objects, self._moves, self._by_ref = left, moves, by_ref
            return dropped
