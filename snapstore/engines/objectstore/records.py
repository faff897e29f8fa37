"""Records: one move of one ref, as it stands under the key of its number in the ref's log.

A record is one batch (``snapstore.engines.log.batch``), so it proves itself. It holds

    MOVE        the move, as local segments hold it, and after it the move that created the ref
                in its present life, unless it is that itself
    kind 129    a msgpack array [txn, writer, written, packs]
        txn       16 random bytes, the same in all tries to write this record
        writer    the host and process that wrote it
        written   when, in microseconds since the epoch by the writer's clock
        packs     [[id, size, front, check, tier], ...], see ``packs.Ref``; oldest first
    SNAPSHOT    what the move points at, and
    NODE        the other structure of its save, unless it is too much: so that the state of a
                session is known from its record alone. Both lie in a pack as well.

The packs of a record hold everything that can be reached from where its ref stands, and from where
it stood at any move before: what a later record names holds at least what an earlier one named, but
for what was dropped for good. So the packs of older records do not matter, and undo and rewind need
nothing but a record.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgpack

from snapstore.engine import AGAIN, Kind, Move, Obj
from snapstore.engines.log import batch
from snapstore.engines.log.batch import MOVE, Batch, Writer
from snapstore.engines.log.records import encode_move, moves_in
from snapstore.engines.objectstore.packs import Ref
from snapstore.errors import Corrupt

_DROPPED = "dropped"

INLINE = 1 << 10
"""Most bytes of structure that a record repeats."""

_HOLDING = 129


@dataclass(frozen=True, slots=True)
class Record:
    """A move, and where the objects are that its ref reaches."""

    move: Move
    packs: tuple[Ref, ...]
    txn: bytes
    writer: str
    written: int
    inline: tuple[Obj, ...] = ()
    origin: Move | None = None
    """The move that created the ref in its present life; None when it is this one."""

    @property
    def expired(self) -> bool:
        """Whether it is what a collection leaves of a ref that was deleted long ago: the number
        that a new ref of this name goes on from, and nothing to undo."""
        move = self.move
        return move.new is None and move.base == 0 and move.gen > 1 and not self.packs

    @property
    def dropped(self) -> bool:
        """Whether it only stands in the place of one that was dropped for good."""
        return self.move.op == _DROPPED

    @property
    def begins_anew(self) -> bool:
        """Whether nothing leads back beyond it, so that what was before may have been dropped."""
        return self.move.base == 0 and self.move.born == self.move.gen

    def again(self, gen: int) -> Record:
        """A record under a later number that repeats this move, with the same packs."""
        move = self.move._replace(gen=gen, info={**self.move.info, AGAIN: True})
        origin = self.origin or self.move
        return replace(self, move=move, txn=secrets.token_bytes(16), origin=origin)

    def without_effect(self) -> Record:
        """What takes the place of this record, the first of its ref, when the move is withdrawn."""
        bare = self.move._replace(new=None, base=0, redo=0, info={AGAIN: True})
        return Record(bare, (), secrets.token_bytes(16), self.writer, self.written)

    def encode(self) -> bytes:
        """The record's bytes: the same ones each time."""
        packs = [list(ref) for ref in self.packs]
        moves = [self.move] if self.origin is None else [self.move, self.origin]
        holding = msgpack.packb([self.txn, self.writer, self.written, packs])
        data, _ = Writer().pack(
            sorted(self.inline, key=batch.slot_order),
            [*((MOVE, encode_move(move)) for move in moves), (_HOLDING, holding)],
            flags=0,
            number=0,
            durable_end=0,
            previous=bytes(batch.CHAIN_SIZE),
        )
        return data

    def is_of(self, txn: bytes) -> bool:
        """Whether it was written by the save with this txn."""
        return self.txn == txn


def decode(data: bytes, key: str) -> Record:
    """The record in these bytes. Raises Corrupt, and UnsupportedFormat for a later version's."""
    opened = Batch(data, (key, 0))
    moves, holding = moves_in(opened), opened.payloads(_HOLDING)
    if len(moves) not in (1, 2) or len(holding) != 1:
        raise Corrupt("a record of a ref does not hold a move", path=key)
    try:
        txn, writer, written, packs = msgpack.unpackb(holding[0])
        refs = tuple(Ref(*fields) for fields in packs)
    except (ValueError, TypeError) as error:
        raise Corrupt("a record of a ref does not decode", path=key) from error
    if not all(map(_is_pack, refs)):
        raise Corrupt("a record of a ref names something that is no pack", path=key)
    inline = tuple(opened.object(slot) for slot in range(opened.objects))
    origin = moves[1] if len(moves) == 2 else None
    return Record(moves[0], refs, txn, writer, written, inline, origin)


def in_place_of(ref: str, gen: int) -> Record:
    """What is left of a move that was dropped for good: its number stays taken."""
    return Record(Move(ref, gen, None, _DROPPED, 0), (), secrets.token_bytes(16), "", 0)


def _is_pack(ref: Ref) -> bool:
    numbers: tuple[Any, ...] = (ref.size, ref.front, ref.tier)
    return isinstance(ref.id, bytes) and len(ref.id) == 16 and all(type(n) is int for n in numbers)


def inlined(objects: Sequence[Obj]) -> tuple[Obj, ...]:
    """The structure among these objects that a record repeats: little, and snapshots first."""
    by_id = {o.id: o for o in objects if o.kind in (Kind.SNAPSHOT, Kind.NODE)}
    kept: list[Obj] = []
    size = 0
    for o in sorted(by_id.values(), key=batch.slot_order, reverse=True):
        size += len(o.payload)
        if size > INLINE:
            break
        kept.append(o)
    return tuple(kept)
