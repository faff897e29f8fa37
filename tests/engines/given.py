"""What the tests of the engines commit: small objects, and wishes to move a ref."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from snapstore.engine import Engine, Kind, Move, Obj, Update
from snapstore.ids import object_id

NOWHERE = bytes(32)
"""The id of no object."""


def content(data: bytes) -> Obj:
    """A message or a piece of a file."""
    return Obj(object_id(data), Kind.CONTENT, data)


def node(data: bytes) -> Obj:
    """Structure."""
    return Obj(object_id(data), Kind.NODE, data)


def snapshot(data: bytes) -> Obj:
    """What a ref points at."""
    return Obj(object_id(data), Kind.SNAPSHOT, data)


def chunked(*chunks: Obj) -> Obj:
    """A content in chunks, named by the hash of the whole."""
    whole = b"".join(chunk.payload for chunk in chunks)
    return Obj(object_id(whole), Kind.CHUNKED, b"".join(chunk.id for chunk in chunks))


def save(ref: str, new: bytes | None, expect: bytes | None, **more: object) -> Update:
    """The wish to move ref from expect to new."""
    return Update(ref, new, expect, "save", 1_700_000_000_000_000, **more)  # type: ignore[arg-type]


def head(engine: Engine, ref: str) -> bytes | None:
    """Where a ref points."""
    tip = engine.tip(ref)
    return tip.new if tip else None


def turn(engine: Engine, ref: str, text: str, *extra: Obj) -> Move:
    """Commit one turn on top of wherever ref stands: a message, a snapshot and the move."""
    snap = snapshot(f"snapshot of {text}".encode())
    update = save(ref, snap.id, head(engine, ref))
    move = engine.commit([content(f"message of {text}".encode()), snap, *extra], update)
    assert move is not None
    return move


def holds_turn(engine: Engine, text: str) -> bool:
    """Whether both objects of a turn can be read, and are what was committed."""
    wanted = [content(f"message of {text}".encode()), snapshot(f"snapshot of {text}".encode())]
    if not all(engine.contains(o.id) for o in wanted):
        return False
    return engine.read_many([o.id for o in wanted]) == wanted


class Keeping:
    """Keeps everything but some objects; moves stay. Calls back when asked, and when the first of
    what was committed since is met."""

    def __init__(self, gone: Collection[bytes] = (), asked: Callable[[], None] | None = None):
        self.gone = set(gone)
        self.asked = asked or (lambda: None)

    def begin(self) -> None:
        self.asked()

    def meet(self, objects: Sequence[Obj], moves: Sequence[Move]) -> Collection[bytes]:
        self.asked()
        return ()

    def keeps(self, object_id: bytes) -> bool:
        return object_id not in self.gone

    def becomes(self, move: Move) -> Move | None:
        return move

    def confirm(self, tips: Sequence[Move]) -> None:
        """Nothing speaks against it."""
