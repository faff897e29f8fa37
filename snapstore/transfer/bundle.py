"""Bundles: sessions and tags, with all that they lead to, in one file.

    snapstore bundle 1            a line of text: the version
    needs ID                      and one for each turn that whoever reads this must have already
                                  (hex); an empty line ends them
    batches                       as in a segment of a log (see engines.log.batch), numbered from 0
                                  and chained by their digests: the objects, each in the same batch
                                  as what it refers to or in a later one
    last batch                    flagged SEAL, without objects: pages of refs, one move each, with
                                  what goes along with a ref in its info
    digest                        BLAKE3 of everything before, 32 bytes

A bundle is read as an engine that cannot be written to. It is verified as a whole when it is
opened, before anything of it is used: one that is cut short or changed anywhere is refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from blake3 import blake3

from snapstore import refs
from snapstore.engine import Engine, Kind, Move, Obj, Problem, Progress, Stats, Update
from snapstore.engines.log.batch import (
    CHAIN_SIZE,
    HEADER_SIZE,
    REFS,
    SEAL,
    Batch,
    Header,
    Writer,
    slot_order,
)
from snapstore.engines.log.records import decode_page, encode_pages
from snapstore.errors import (
    Corrupt,
    InvalidInput,
    NotFound,
    ObjectMissing,
    Refused,
    UnsupportedFormat,
)
from snapstore.ids import SIZE
from snapstore.names import valid_name
from snapstore.store import Store
from snapstore.transfer.arrivals import Arrivals
from snapstore.transfer.carry import facts_of, links_of
from snapstore.transfer.closure import Closure, Link, Type

MAGIC = b"snapstore bundle "
VERSION = 1
OP = "bundle"

_NEEDS = b"needs "
_BATCH = 1 << 20
"""Bytes of content in one batch."""
_LONGEST_HEADER = 1 << 20
_OPEN_BATCHES = 16


# --- writing ---------------------------------------------------------------------------------


def bundled(store: Store, ref: str, head: bytes) -> Move:
    """A ref as it stands in a bundle, at this turn of its line, with what goes along with it."""
    tip = refs.live(store.engine, ref)
    facts = facts_of(store, tip) if tip is not None else {}
    return Move(ref, 1, head, OP, store.clock(), born=1, info=facts)


def bundle(store: Store, moves: Sequence[Move], since: Sequence[bytes] = ()) -> Iterator[bytes]:
    """The bytes of a bundle of these refs (see bundled), piece by piece.

    What the turns ``since`` lead to is left out: whoever reads the bundle must have them.
    Raises ObjectMissing and Corrupt when the store is not whole.
    """
    digest = blake3()
    for piece in _pieces(store, moves, since):
        digest.update(piece)
        yield piece
    yield digest.digest()


def _pieces(store: Store, moves: Sequence[Move], since: Sequence[bytes]) -> Iterator[bytes]:
    yield b"%s%d\n" % (MAGIC, VERSION)
    yield from (b"%s%s\n" % (_NEEDS, turn.hex().encode()) for turn in since)
    yield b"\n"
    packer = _Packer()
    waiting: list[Obj] = []
    size = 0
    for o in _objects(store, moves, since):
        waiting.append(o)
        size += len(o.payload)
        if size >= _BATCH:
            yield packer.pack(waiting)
            waiting, size = [], 0
    if waiting:
        yield packer.pack(waiting)
    yield packer.pack_refs(sorted(moves, key=lambda move: move.ref))


def _objects(store: Store, moves: Sequence[Move], since: Sequence[bytes]) -> Iterator[Obj]:
    left_out: set[bytes] = set()
    behind = Closure(store.objects, left_out.__contains__)
    for turn in since:
        left_out.update([o.id for o in behind.of(Link(Type.SNAPSHOT, turn))])
    closure = Closure(store.objects, left_out.__contains__)
    for move in moves:
        assert move.new is not None
        for link in links_of(move.new, move.info):
            yield from closure.of(link)


class _Packer:
    """Makes the batches of one bundle."""

    def __init__(self) -> None:
        self._writer = Writer()
        self._number = 0
        self._digest = bytes(CHAIN_SIZE)

    def pack(self, objects: list[Obj]) -> bytes:
        return self._pack(sorted(objects, key=slot_order), [], 0)

    def pack_refs(self, moves: Sequence[Move]) -> bytes:
        return self._pack([], [(REFS, page) for page in encode_pages(moves)], SEAL)

    def _pack(self, objects: list[Obj], extra: list[tuple[int, bytes]], flags: int) -> bytes:
        previous = self._digest[:CHAIN_SIZE]
        data, self._digest = self._writer.pack(
            objects, extra, flags=flags, number=self._number, durable_end=0, previous=previous
        )
        self._number += 1
        return data


# --- reading ---------------------------------------------------------------------------------


def is_bundle(beginning: bytes) -> bool:
    """Whether a file that begins so is a bundle, of whatever version."""
    return beginning.startswith(MAGIC)


_DAMAGED = "this file is damaged, not the store: copy it again, or export it again where it is from"


def open_bundle(path: Path, into: Store) -> Store:
    """A bundle as a store that can only be read, for carry to bring into another one.

    All of it is verified first: its bytes, the hash of each object, and that nothing is missing
    but what the other store has. Raises Corrupt, UnsupportedFormat, and Refused when the other
    store lacks the turns that a bundle made with ``--since`` goes on from.
    """
    try:
        return _opened(path, into)
    except Corrupt as damaged:
        damaged.hint = _DAMAGED
        raise


def _opened(path: Path, into: Store) -> Store:
    engine = BundleEngine(path, into.engine)
    try:
        for turn in engine.needs:
            if not into.engine.contains(turn):
                raise Refused(
                    f"{path} goes on from turn {turn.hex()[:12]}, which is not in this store",
                    hint="import a bundle that holds it first, or one made without `since`",
                )
        found = Store(engine, clock=into.clock)
        _verify_whole(found, into.engine.contains)
    except ObjectMissing as missing:
        engine.close()
        raise Corrupt(f"object {missing.id.hex()} is missing in a bundle", path=str(path)) from None
    except BaseException:
        engine.close()
        raise
    return found


def _verify_whole(found: Store, known: Callable[[bytes], bool]) -> None:
    arrivals = Arrivals(found.engine)
    closure = Closure(found.objects, known)
    for tip in found.engine.tips():
        assert tip.new is not None
        for link in links_of(tip.new, facts_of(found, tip)):
            for o in closure.of(link):
                arrivals.verify(o)


class BundleEngine:
    """A bundle as an engine. What it need not hold is read from the store that it goes into."""

    warnings: tuple[str, ...] = ()
    cut_off: Corrupt | None = None

    def __init__(self, path: Path, behind: Engine) -> None:
        """Open a bundle and verify its bytes. Raises Corrupt and UnsupportedFormat."""
        self._path = str(path)
        self._behind = behind
        self._file: BinaryIO = path.open("rb")
        self._size = os.fstat(self._file.fileno()).st_size
        self._where: dict[bytes, tuple[int, int]] = {}
        """Id -> offset of its batch, and slot in it."""
        self._opened: dict[int, Batch] = {}
        self._moves: dict[str, Move] = {}
        self.needs: tuple[bytes, ...] = ()
        """Turns that it goes on from and does not hold."""
        try:
            self._take_in()
        except BaseException:
            self._file.close()
            raise

    def _bad(self, what: str, at: int) -> Corrupt:
        return Corrupt(f"this bundle is damaged: {what}", path=self._path, offset=at)

    def _take_in(self) -> None:
        digest = blake3()
        at = self._read_header(digest)
        number, previous = 0, bytes(CHAIN_SIZE)
        sealed = False
        while not sealed:
            batch = self._batch(at)
            header = batch.header
            if header.number != number or header.previous != previous:
                raise self._bad("its parts do not follow each other", at)
            digest.update(batch.data)
            self._where |= {o: (at, slot) for slot, o in enumerate(batch.ids())}
            sealed = bool(header.flags & SEAL)
            number, previous = number + 1, batch.digest[:CHAIN_SIZE]
            if sealed:
                pages = batch.payloads(REFS)
                self._moves = {move.ref: move for page in pages for move in decode_page(page)}
            at += header.size
        if self._at(at, SIZE + 1) != digest.digest():
            raise self._bad("it does not end with the digest of what it holds", at)
        if not all(map(_makes_sense, self._moves.values())):
            raise self._bad("a ref in it is not of the form it must have", at)

    def _read_header(self, digest: blake3) -> int:
        """Take in the lines at its beginning; where they end."""
        text = self._at(0, _LONGEST_HEADER)
        first, _, rest = text.partition(b"\n")
        version = first.removeprefix(MAGIC)
        if not first.startswith(MAGIC) or not version.isdigit() or len(version) > 9:
            raise self._bad("it does not begin as one", 0)
        if int(version) != VERSION:
            raise UnsupportedFormat(f"{self._path} is a bundle of version {int(version)}")
        needs: list[bytes] = []
        at = len(first) + 1
        while rest and not rest.startswith(b"\n"):
            line, _, rest = rest.partition(b"\n")
            at += len(line) + 1
            try:
                needs.append(bytes.fromhex(line.removeprefix(_NEEDS).decode()))
            except ValueError:
                needs.append(b"")
            if not line.startswith(_NEEDS) or len(needs[-1]) != SIZE:
                raise self._bad("its header is not of the form it must have", at)
        self.needs = tuple(needs)
        digest.update(text[: at + 1])
        return at + 1

    def _at(self, offset: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, offset)

    def _batch(self, at: int) -> Batch:
        """The batch at an offset, verified."""
        where = (self._path, at)
        header = Header(self._at(at, HEADER_SIZE), where)
        if at + header.size > self._size:
            raise self._bad("it is cut short", at)
        return Batch(self._at(at, header.size), where, header)

    def _open(self, at: int) -> Batch:
        opened = self._opened.pop(at, None) or self._batch(at)
        self._opened[at] = opened
        if len(self._opened) > _OPEN_BATCHES:
            del self._opened[next(iter(self._opened))]
        return opened

    # --- as an engine -----------------------------------------------------------------------------

    def exists(self) -> bool:
        """A bundle is there once it was opened."""
        return True

    def create(self) -> None:
        """There is nothing to make."""

    def read(self, object_id: bytes) -> Obj:
        """See ``snapstore.engine.Engine.read``."""
        if object_id not in self._where:
            return self._behind.read(object_id)
        at, slot = self._where[object_id]
        return self._open(at).object(slot)

    def read_many(self, object_ids: Sequence[bytes]) -> list[Obj]:
        """See ``snapstore.engine.Engine.read_many``."""
        return [self.read(object_id) for object_id in object_ids]

    def contains(self, object_id: bytes) -> bool:
        """See ``snapstore.engine.Engine.contains``."""
        return object_id in self._where

    def ids(self, prefix: bytes, digits: int) -> Iterator[tuple[bytes, int]]:
        """See ``snapstore.engine.Engine.ids``."""
        text = prefix.hex()[:digits]
        for object_id in sorted(self._where):
            if object_id.hex().startswith(text):
                yield object_id, Kind(self.read(object_id).kind)

    def commit(self, objects: Sequence[Obj], update: Update | None = None) -> Move | None:
        """Always Refused."""
        raise Refused("a bundle cannot be written to", hint="import it into a store")

    def tip(self, ref: str) -> Move | None:
        """See ``snapstore.engine.Engine.tip``."""
        return self._moves.get(ref)

    def move(self, ref: str, gen: int) -> Move | None:
        """See ``snapstore.engine.Engine.move``."""
        found = self._moves.get(ref)
        return found if found is not None and found.gen == gen else None

    def tips(self, prefix: str = "") -> Iterator[Move]:
        """See ``snapstore.engine.Engine.tips``."""
        yield from (self._moves[ref] for ref in sorted(self._moves) if ref.startswith(prefix))

    def reflog(self) -> Iterator[Move]:
        """See ``snapstore.engine.Engine.reflog``."""
        yield from self.tips()

    def verify(self, progress: Progress | None = None) -> Iterator[Problem]:
        """Opening it has verified it."""
        yield from ()

    def stats(self) -> Stats:
        """See ``snapstore.engine.Engine.stats``."""
        return Stats(len(self._where), self._size)

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


def _makes_sense(move: Move) -> bool:
    name = move.ref.removeprefix(refs.SESSIONS).removeprefix(refs.TAGS)
    try:
        valid_name(name)
    except InvalidInput:
        return False
    alone = (move.gen, move.base, move.redo, move.born) == (1, 0, 0, 1)
    known = move.ref in (refs.SESSIONS + name, refs.TAGS + name)
    return alone and known and move.new is not None and isinstance(move.info, dict)


def selected(store: Store, names: Sequence[str]) -> list[Move]:
    """What a bundle of these revisions holds, of all sessions and tags when there are none.

    A session is bundled under its name, at the turn that the revision names; a tag under its own.
    Raises what resolving a revision raises, and NotFound where that is neither.
    """
    if not names:
        kinds = (refs.SESSIONS, refs.TAGS)
        tips = [tip for kind in kinds for tip in store.engine.tips(kind)]
        return [bundled(store, tip.ref, tip.new) for tip in tips if tip.new]
    return [_selected(store, name) for name in names]


def _selected(store: Store, name: str) -> Move:
    found = store.revision(name)
    tag = refs.live(store.engine, refs.TAGS + name)
    if found.session is not None:
        return bundled(store, refs.SESSIONS + found.session, found.snapshot.raw_id)
    if tag is not None:
        return bundled(store, tag.ref, found.snapshot.raw_id)
    raise NotFound(
        f"{name} names no session or tag to bundle it under", hint="`snapstore tag` gives it a name"
    )
