"""The narrow waist: what an engine must do, and all that the layers above may ask of one.

An engine holds immutable objects named by the hash of their content, and refs that move. Nothing
above this module knows files, buckets or tables; one behaviour suite runs over every engine.

The contract
    commit is all or nothing: objects and the ref move appear together or not at all. When it
    returns they are durable. When it raises RefMoved or DiskError nothing has changed; when it
    raises UnknownOutcome the handle is dead and reopening shows one of the two complete states.
    A commit moves at most one ref: an object store cannot do more.
    Committing an object that is already there is a success and may write nothing.
    Objects never change and never vanish while something refers to them, so reads need no lock.
    What read returns was verified against a hash; damage raises Corrupt.
    Several threads may use one engine. Nobody holds a lock while a caller iterates.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from snapstore.errors import Corrupt, RefMoved


class Kind(enum.IntEnum):
    """How an object is kept. It is said by who commits it, never guessed from bytes."""

    CONTENT = 1
    """Bytes that hash to the id: a message, a piece of a file."""
    CHUNKED = 2
    """A list of chunk ids; the chunks joined hash to the id."""
    NODE = 3
    """Structure: a node of a list or a map. Read often and early, so kept apart from content."""
    SNAPSHOT = 4
    """Structure: a session after one turn. What an abbreviated id may stand for."""


class Obj(NamedTuple):
    """An object as it is committed and read: payload is its content, or its chunk list."""

    id: bytes
    kind: int
    payload: bytes


AGAIN = "again"
"""In the info of a move that only repeats the one before it: an engine had to write that anew."""


class Move(NamedTuple):
    """One move of one ref. The moves of a ref, in order of gen, are its reflog."""

    ref: str
    gen: int
    """1 for the first move of this ref, then counting up, also past a deletion."""
    new: bytes | None
    """Where the ref points from now on; None: it was deleted."""
    op: str
    """What was done: save, rewind, undo, redo, fork, rename, delete, ..."""
    time: int
    """Microseconds since the epoch, UTC."""
    base: int = 0
    """The move that an undo goes back to; 0: the ref did not exist before."""
    redo: int = 0
    """The move that a redo goes forward to; 0: there is none."""
    born: int = 0
    """The move that created the ref in its present life; its info tells what it was forked from."""
    info: Mapping[str, Any] = {}
    """Further facts of this op, as msgpack can carry them."""


class Update(NamedTuple):
    """A wish to move a ref. It is granted only if the ref is where ``expect`` says."""

    ref: str
    new: bytes | None
    expect: bytes | None
    """The head that the ref must have now; None: it must not exist."""
    op: str
    time: int
    info: Mapping[str, Any] = {}
    at: int | None = None
    """When given, the ref's last move must be this one, whatever its head."""
    base: int | None = None
    """Where undo leads from here; None: to the move before this one."""
    redo: int = 0
    born: int | None = None
    """When given, the move that counts as the ref's creation (undoing a deletion keeps it)."""
    fresh: bool = False
    """Whether the objects that come with it are new by nature, as a turn's are: an engine need not
    look whether it has them. That costs a search for each, more than writing a small one again."""


class Stats(NamedTuple):
    """What the engine holds."""

    objects: int
    bytes: int
    """Bytes on disk (or in memory), indexes and caches not counted."""


class Touch(NamedTuple):
    """Turns of the line that a ref leads to."""

    ref: str
    first: int
    last: int
    """Both included; 0 when the head itself cannot be read, so that all of the line is touched."""


class Problem(NamedTuple):
    """One thing that verification found."""

    kind: str
    path: str | None
    offset: int | None
    id: bytes | None
    message: str
    harmless: bool = False
    """True for what costs nothing that was acknowledged, such as a torn tail."""
    touches: tuple[Touch, ...] = ()
    """The turns that are not whole for it; where no ref leads to any, where one led before."""
    position: int | None = None
    """The position of the message in the history of these turns, when it is about one."""


Progress = Callable[[int, int], None]
"""Called with (done, total) in bytes, now and then, by what may take a while."""


class Engine(Protocol):
    """Where objects and refs live."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user of this engine should know, such as a network file system below it."""

    @property
    def cut_off(self) -> Corrupt | None:
        """The damage that hides what was saved last, when there is any: what is read meanwhile is
        known to be older than what was acknowledged."""

    def exists(self) -> bool:
        """Whether the store has been made."""

    def create(self) -> None:
        """Make the store now, if it is not there yet; else the first commit does."""

    def read(self, object_id: bytes) -> Obj:
        """The object. Raises ObjectMissing or Corrupt."""

    def read_many(self, object_ids: Sequence[bytes]) -> list[Obj]:
        """The objects in the order asked for; as read, but quicker for neighbours."""

    def contains(self, object_id: bytes) -> bool:
        """Whether the object is there (its content is not verified)."""

    def ids(self, prefix: bytes, digits: int) -> Iterator[tuple[bytes, int]]:
        """(id, kind) of every object whose id starts with the first hex digits of prefix."""

    def commit(self, objects: Sequence[Obj], update: Update | None = None) -> Move | None:
        """Store the objects and grant the update; see the contract above."""

    def tip(self, ref: str) -> Move | None:
        """The last move of a ref, also when that deleted it; None for one that never was."""

    def move(self, ref: str, gen: int) -> Move | None:
        """Move number gen of a ref."""

    def tips(self, prefix: str = "") -> Iterator[Move]:
        """The last move of every ref whose name starts with prefix, deleted ones too, by name."""

    def reflog(self) -> Iterator[Move]:
        """All moves of all refs, newest first."""

    def verify(self, progress: Progress | None = None) -> Iterator[Problem]:
        """Read everything again and check it against its hashes, indexes included."""

    def stats(self) -> Stats:
        """How much there is."""

    def close(self) -> None:
        """Give everything back. Closing twice is allowed; any other use afterwards is an error."""


@runtime_checkable
class Discarding(Protocol):
    """An engine that can let go of what nothing is to reach any more."""

    def discard(
        self,
        objects: Collection[bytes],
        before: Mapping[str, int],
        tips: Mapping[str, int] | None = None,
    ) -> int:
        """Drop these objects, and of each ref here the moves before the given one, for good.

        No byte of them is left in any file when it returns. How many of the objects there were
        comes back; one that is not there is passed over. Nothing that stays refers to them, as
        long as no ref has moved since: with tips, the gen of the last move of every ref, that is
        made sure of while nobody else can write. Raises RefMoved.
        """


def check_update(update: Update, tip: Move | None) -> Move:
    """The move that grants an update, given the ref's last move. Raises RefMoved.

    Engines call this where they have excluded other writers, so that what it decides still holds
    when the move is written.
    """
    head = tip.new if tip else None
    moved_on = update.at is not None and update.at != (tip.gen if tip else 0)
    if head != update.expect or moved_on:
        raise RefMoved(update.ref, update.expect, head)
    last = tip.gen if tip else 0
    gen = last + 1
    born = tip.born if tip is not None and tip.new is not None else gen
    return Move(
        update.ref,
        gen,
        update.new,
        update.op,
        update.time,
        last if update.base is None else update.base,
        update.redo,
        born if update.born is None else update.born,
        update.info,
    )


def check_tips(known: Mapping[str, int], tips: Iterable[Move]) -> None:
    """Raise RefMoved unless these are the last moves of all refs, known by their gens.

    Engines call this where they have excluded other writers.
    """
    left = dict(known)
    for tip in tips:
        if left.pop(tip.ref, None) != tip.gen:
            raise RefMoved(tip.ref, None, tip.new)
    if left:
        raise RefMoved(next(iter(left)), None, None)
