"""Finding objects: which packs to open, and which packs a record has to name.

A record names packs that hold all that its ref reaches. That holds for the next record too if, of
every object that its save adds, each link leads into these packs, or to another new object. What it
leads to elsewhere (another session's turn in a fork, a message taken over from one) is made part of
it by naming the packs of a record that reaches it: those reach, by the same rule, all behind it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from snapstore.engine import Kind, Obj
from snapstore.engines.objectstore.packs import Pack, Ref
from snapstore.engines.objectstore.records import Record
from snapstore.engines.objectstore.reflog import RefLog
from snapstore.engines.objectstore.shelf import Gone, Shelf
from snapstore.errors import Corrupt, ObjectMissing, Unreachable
from snapstore.ids import SIZE


class Links(Protocol):
    """Says what objects refer to. The engine itself knows no structure."""

    def __call__(self, objects: Sequence[Obj], named: Collection[bytes] = ()) -> set[bytes]:
        """The ids that these objects refer to; the move that comes with them names some."""


_NEWEST = 8
_GROUP = 64
_NEAR = 64
_SEARCH_AGAIN = 1.0
_LOOK_AGAIN = 60.0


def no_links(objects: Sequence[Obj], named: Collection[bytes] = ()) -> set[bytes]:
    """For objects that refer to nothing."""
    return set()


def ids_in(info: Mapping[str, Any]) -> Iterator[bytes]:
    """The ids in the info of a move: every byte string of their length is one."""
    waiting: list[Any] = [*info.values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, bytes) and len(value) == SIZE:
            yield value
        elif isinstance(value, Mapping):
            waiting += value.values()
        elif isinstance(value, (list, tuple)):
            waiting += value


@dataclass(slots=True)
class Cover:
    """What a record has to name, and what of it rests on the records of other refs."""

    refs: dict[bytes, Ref]
    """The packs, by id."""
    taken: set[bytes] = field(default_factory=set)
    """The objects that were found in packs of other refs."""
    purged: str | None = None
    """What was the last purge before these were looked at; None when none were."""


class Lookup:
    """The objects of a store, by id. Several threads may use it."""

    def __init__(
        self,
        shelf: Shelf,
        log: RefLog,
        links: Links,
        loose_for: float,
        purged: Callable[[], str] = str,
    ) -> None:
        """Packs without a record may be named by one for so many seconds after their upload;
        ``purged`` tells which purge of the store was the last, as it is now."""
        self._shelf = shelf
        self._log = log
        self._links = links
        self._loose_for = loose_for
        self._purged = purged
        self._loose: dict[bytes, tuple[Ref, float]] = {}
        self._searched = float("-inf")
        self._nowhere: dict[bytes, float] = {}

    # --- reading --------------------------------------------------------------------------------

    def read(self, wanted: Sequence[bytes]) -> list[Obj]:
        """These objects, in this order. Raises ObjectMissing or Corrupt."""
        lost: set[bytes] = set()
        while True:
            try:
                return self._read(wanted)
            except Gone as gone:  # what it held is in another pack, unless it was dropped for good
                if gone.pack_id in lost:
                    raise
                lost.add(gone.pack_id)
                self._shelf.lose(gone.pack_id)

    def _read(self, wanted: Sequence[bytes]) -> list[Obj]:
        inline = {i: o for i in set(wanted) if (o := self._log.inline(i)) is not None}
        held = self.locate(i for i in wanted if i not in inline)
        for object_id in wanted:
            if object_id not in inline and object_id not in held:
                raise ObjectMissing(object_id)
        packed = [(held[i], i) for i in wanted if i in held]
        found = dict(zip((i for _, i in packed), self._shelf.read_all(packed), strict=True))
        return [inline.get(i) or found[i] for i in wanted]

    def read_one(self, wanted: bytes) -> Obj:
        """One object; the quick way to one at hand."""
        pack = self._shelf.holder(wanted)
        if pack is not None:
            with contextlib.suppress(Gone):
                return pack.read(wanted)
        return self.read([wanted])[0]

    def contains(self, object_id: bytes) -> bool:
        """Whether an object is in a pack that a ref needs, or that this handle has uploaded."""
        at_hand = self._shelf.holder(object_id) or self._log.inline(object_id)
        return at_hand is not None or bool(self.locate([object_id], exactly=False))

    def ids(self, digits: str) -> set[tuple[bytes, int]]:
        """(id, kind) of the objects that refs need, and of those that this handle has uploaded,
        whose ids begin with these hex digits. Packs that are damaged are passed over."""
        found: set[tuple[bytes, int]] = set()
        for group in self._everywhere():
            for pack in self._shelf.open(group).packs:
                kinds = zip(pack.ids(), pack.kinds, strict=False)
                found.update((i, kind) for i, kind in kinds if i.hex().startswith(digits))
        return found

    def locate(self, wanted: Iterable[bytes], *, exactly: bool = True) -> dict[bytes, Pack]:
        """Open packs until each of these objects is in an open one, or there are no more packs;
        which pack each is in.

        Unless exactly, all refs are looked through no more than once in a second. Raises Corrupt
        when one was not found and a pack that may hold it is damaged.
        """
        held: dict[bytes, Pack] = {}
        missing: set[bytes] = set()
        for object_id in wanted:
            pack = self._shelf.holder(object_id)
            if pack is None:
                missing.add(object_id)
            else:
                held[object_id] = pack
        damaged: list[Corrupt] = []
        for refs in self._rounds(exactly) if missing else ():
            opened = self._shelf.open(refs)
            damaged += opened.damaged
            for pack in opened.packs:
                held.update((i, pack) for i in missing if pack.slot(i) is not None)
            missing -= held.keys()
            if not missing:
                break
        if missing and damaged:
            raise damaged[0]
        return held

    def _rounds(self, exactly: bool) -> Iterator[Sequence[Ref]]:
        """Packs to open, those first that are most likely to hold what is looked for."""
        for record in self._log.seen():
            refs = self._shelf.unopened(record.packs)
            # Another thread may have opened a pack since it was looked for in the open ones.
            yield [ref for ref in record.packs if ref not in refs]
            yield refs[-_NEWEST:]
            yield refs[:-_NEWEST]
        yield self.loose()
        begun = time.monotonic()
        if exactly or begun - self._searched > _SEARCH_AGAIN:
            yield from self._everywhere()
            self._searched = begun  # not earlier: another thread must not take it for done

    def _everywhere(self) -> Iterator[Sequence[Ref]]:
        """Every pack that there is to look into, to be opened group by group.

        One that could not be opened may have been let go of after the refs were looked at: what it
        held is in packs that they name now, so these come next, each once.
        """
        looked: set[bytes] = set()
        while refs := [ref for ref in self.all_packs() if ref.id not in looked]:
            gone = False
            for group in _groups(refs):
                yield group
                gone = gone or bool(self._shelf.unopened(group))
            if not gone:
                return
            looked.update(ref.id for ref in refs)

    def ids_in(self, refs: Iterable[Ref]) -> set[bytes]:
        """The ids of the objects in these packs."""
        opened = (pack for group in _groups(refs) for pack in self._shelf.open(group).packs)
        return {object_id for pack in opened for object_id in pack.ids()}

    def all_packs(self) -> Iterable[Ref]:
        """Every pack that a ref needs now, and those of this handle that none needs."""
        refs = {ref.id: ref for ref in self.loose()}
        for record in self._log.every_last():
            refs.update((ref.id, ref) for ref in record.packs)
        return refs.values()

    # --- packs without a record -----------------------------------------------------------------

    def note_loose(self, ref: Ref, uploaded: float) -> None:
        """A pack was uploaded that no record names yet."""
        self._loose[ref.id] = (ref, uploaded)

    def named(self, refs: Iterable[Ref]) -> None:
        """A record names these packs now."""
        for ref in refs:
            self._loose.pop(ref.id, None)

    def loose(self) -> list[Ref]:
        """The packs of this handle that no record names."""
        return [ref for ref, _ in list(self._loose.values())]

    # --- what a record has to name --------------------------------------------------------------

    def cover(
        self,
        last: Record | None,
        new: Sequence[Obj],
        named: Collection[bytes],
        needed: Collection[bytes] = (),
    ) -> Cover:
        """The packs that the next record of a ref must name beside the one of its save.

        ``last`` is its last record, ``new`` what the save adds, ``named`` what the move itself
        refers to. What is nowhere is passed over: whether a link leads to something is not for
        the engine to judge. But ``needed`` was there a moment ago: Unreachable when it is not now.
        """
        cover = Cover({ref.id: ref for ref in (last.packs if last else ())})
        refs = cover.refs
        wanted = {*named, *self._links(new, named)} - {o.id for o in new}
        wanted -= self._known_nowhere(wanted)
        missing = self._outside(refs, wanted)
        if missing and last is not None:
            missing -= self._near(last, refs, wanted)
        if missing:
            self._shelf.open(refs.values())
            missing = self._outside(refs, missing)
        if missing:
            self._take_over(cover, missing, needed)
        return cover

    def holds(self, refs: Collection[bytes], object_id: bytes) -> bool:
        """Whether an object is known to be in one of these packs; only open ones are looked at."""
        holder = self._shelf.holder(object_id)
        if holder is None or holder.ref.id in refs:
            return holder is not None
        opened = (self._shelf.opened(pack_id) for pack_id in refs)
        return any(pack is not None and pack.slot(object_id) is not None for pack in opened)

    def _outside(self, refs: dict[bytes, Ref], wanted: Iterable[bytes]) -> set[bytes]:
        return {i for i in wanted if not self.holds(refs, i)}

    def _near(self, last: Record, refs: dict[bytes, Ref], wanted: Iterable[bytes]) -> set[bytes]:
        """What is linked by structure at hand that the record reaches, and so reached as well: it
        spares a handle that has read little of a session to open all of its packs for a save."""
        inline = {o.id: o for o in last.inline}
        waiting = [*inline, *wanted]
        found: set[bytes] = set(inline)
        for n, object_id in enumerate(waiting):
            if n == _NEAR:
                break
            o = inline.get(object_id) or self._structure(refs, object_id)
            if o is not None:
                fresh = [link for link in self._links([o]) if link not in found]
                found.update(fresh)
                waiting += fresh
        return found

    def _structure(self, refs: dict[bytes, Ref], object_id: bytes) -> Obj | None:
        o = self.at_hand(object_id)
        return o if o is not None and self.holds(refs, object_id) else None

    def at_hand(self, object_id: bytes) -> Obj | None:
        """A piece of structure, if reading it takes no request."""
        pack = self._shelf.holder(object_id)
        if pack is None:
            return self._log.inline(object_id)
        return None if pack.kind(object_id) == Kind.CONTENT else pack.read(object_id)

    def standing(self, head: bytes, new: Sequence[Obj]) -> list[Obj]:
        """What a session's state is read from, as far as it is at hand: the object that its ref
        points at, and the nodes that this refers to. They may be among new ones."""
        by_id = {o.id: o for o in new}
        snapshot = by_id.get(head) or self.at_hand(head)
        if snapshot is None:
            return []
        linked = (by_id.get(link) or self.at_hand(link) for link in self._links([snapshot]))
        return [snapshot, *(o for o in linked if o is not None and o.kind == Kind.NODE)]

    def _take_over(self, cover: Cover, missing: set[bytes], needed: Collection[bytes]) -> None:
        """Name further packs until nothing that is anywhere is missing."""
        refs = cover.refs
        held = self.locate(missing)
        while missing:
            object_id = missing.pop()
            # Another thread may have closed the pack that it was found in, to open others.
            holder = self._shelf.holder(object_id) or held.get(object_id)
            if holder is None:
                if object_id in needed or self._log.inline(object_id) is not None:
                    raise _collected()  # it was there, or a record repeated it
                self._nowhere[object_id] = time.monotonic()
                continue
            if self.holds(refs, object_id):
                continue
            uploaded = self._loose.get(holder.ref.id)
            if uploaded is not None:
                refs[holder.ref.id] = self._still_safe(*uploaded)
                linked = self._outside(refs, self._links(holder.all()))
                held |= self.locate(linked)
                missing |= linked
                continue
            if cover.purged is None:
                cover.purged = self._purged()
            reaching = self._reaching(holder)
            if reaching is None:  # merged or collected since this handle opened it
                self._shelf.forget(holder.ref.id)
                held = self.locate([object_id, *missing])
                if object_id not in held:
                    raise _collected()
                missing.add(object_id)
            else:
                cover.taken.add(object_id)
                refs.update((ref.id, ref) for ref in reaching.packs)

    def _known_nowhere(self, wanted: Iterable[bytes]) -> set[bytes]:
        """What was looked for in vain a moment ago: what a move names need not be an object."""
        recent = time.monotonic() - _LOOK_AGAIN
        nowhere = {i for i in wanted if self._nowhere.get(i, recent) > recent}
        return {i for i in nowhere if not (self._shelf.holder(i) or self._log.inline(i))}

    def _still_safe(self, ref: Ref, uploaded: float) -> Ref:
        if not 0 <= time.time() - uploaded < self._loose_for:
            raise Unreachable(
                "objects were uploaded too long ago to be counted on",
                hint="open the store again and repeat: they are uploaded once more",
            )
        return ref

    def _reaching(self, holder: Pack) -> Record | None:
        """The record that names an open pack with the least besides, as its ref stands now: what
        this handle knows of another ref may be from before the pack was dropped from it."""
        for records in (self._log.seen, self._log.every_last):
            naming = [r for r in records() if _names(r, holder)]
            for known in sorted(naming, key=lambda record: sum(ref.size for ref in record.packs)):
                now = self._log.last(known.move.ref)
                if now is not None and _names(now, holder):
                    return now
        return None


def _names(record: Record, pack: Pack) -> bool:
    return any(ref.id == pack.ref.id for ref in record.packs)


def _collected() -> Unreachable:
    return Unreachable(
        "something that is referred to was collected or purged since it was read",
        hint="open the store again and repeat: what it still holds is uploaded once more",
    )


def _groups(refs: Iterable[Ref]) -> Iterator[list[Ref]]:
    """Packs in groups that are opened together, so that not all of them need be open at once."""
    waiting = iter(refs)
    while group := list(islice(waiting, _GROUP)):
        yield group
