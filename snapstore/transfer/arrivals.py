"""Objects on their way into a store from elsewhere: each is hashed again before it is let in.

They are committed in portions: what a transfer that is cut off has brought stays, and the next one
goes on from there. The last portion comes with the ref that makes all of it count.
"""

from __future__ import annotations

from blake3 import blake3

from snapstore.chunks import stream
from snapstore.engine import Engine, Kind, Move, Obj, Update
from snapstore.errors import Corrupt
from snapstore.ids import object_id

PORTION = 4 << 20
"""Bytes from which on what waits is to be committed."""
_MOST = 8
"""Portions that wait at most, whoever may be to hold them."""


class Arrivals:
    """Objects that come into one store, in an order in which each follows what it refers to."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: dict[bytes, Obj] = {}
        self._size = 0
        self.objects = 0
        """How many came in."""
        self.bytes = 0

    def take(self, o: Obj) -> None:
        """Let an object in. Raises Corrupt for one that is not what its id says."""
        self.verify(o)
        self._waiting[o.id] = o
        self._size += len(o.payload)
        self.objects += 1
        self.bytes += len(o.payload)
        if self._size >= _MOST * PORTION:
            self.settle()

    @property
    def are_many(self) -> bool:
        """Whether what waits should be committed."""
        return self._size >= PORTION

    def settle(self, update: Update | None = None) -> Move | None:
        """Commit what waits, and grant the update. Raises RefMoved; then all still waits."""
        if not self._waiting and update is None:
            return None
        move = self._engine.commit(list(self._waiting.values()), update)
        self._waiting, self._size = {}, 0
        return move

    def verify(self, o: Obj) -> None:
        """Hash an object whose pieces have come before it. Raises Corrupt."""
        if o.kind == Kind.CHUNKED:
            whole = blake3()
            for piece in stream(o, self._read):
                whole.update(piece)
            found = whole.digest()
        else:
            found = object_id(o.payload)
        if found != o.id:
            raise Corrupt(f"object {o.id.hex()} came as something else")

    def _read(self, content_id: bytes) -> Obj:
        return self._waiting.get(content_id) or self._engine.read(content_id)
