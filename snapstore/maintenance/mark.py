"""Marking: what of a store stays when it is collected.

    refs                 what they point at, sessions, tags, captures and state alike
    the reflog           moves that are younger than the limit: where they led, the file trees that
                         undo and redo of them bring back, and the moves that these lead to
    imports              of each session the last one: the turn and the layout that it brought
    names and origins    the moves that made a ref, or took its name from another, as a record
                         only: what was undone long ago is not kept for them

Everything that is reached from there stays. Nothing is ever dropped while a tag names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from snapstore import refs
from snapstore.engine import Kind, Move, Obj
from snapstore.errors import ObjectMissing, SnapstoreError
from snapstore.links import links_and_pages
from snapstore.maintenance.reach import Reach
from snapstore.model.layout import LAYOUT, Layout
from snapstore.model.pages import decode_page, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from snapstore.store import Store

_FACES = ("back", "forth", "files")


class Mark:
    """What stays. Answers what ``engines.log.selection.Selection`` asks."""

    def __init__(
        self,
        store: Store,
        since: int,
        kind: Callable[[bytes], int] | None = None,
        met: Callable[[int], None] | None = None,
    ) -> None:
        """since: from this time on, in microseconds since the epoch, the reflog counts.

        met is called with how many objects are known to stay, now and then.
        """
        self._store = store
        self._kind = kind
        self._met = met or (lambda count: None)
        self._since = since
        self._staying: set[bytes] = set()
        self._tips: dict[str, int] = {}
        self._whole: set[tuple[str, int]] = set()
        self._records: set[tuple[str, int]] = set()
        self._seeking: set[str] = set()

    # --- what a rewriting asks --------------------------------------------------------------------

    def begin(self) -> None:
        """Walk from everything that counts.

        Raises what makes an object unreadable: behind damage there may be links that nobody can
        follow.
        """
        reach = Reach(self._store.objects, _give_up, self._kind)
        reach.seen = self._staying
        self._take_tips(reach)
        for move in self._store.engine.reflog():
            self._judge(move, reach)

    def meet(self, objects: Sequence[Obj], moves: Sequence[Move]) -> Collection[bytes]:
        """Take in what was committed since, all of which stays; the ids of others that stay now
        because of it and would not have before."""
        self._staying.update(o.id for o in objects)
        led = self._linked(objects)
        for move in moves:
            self._tips[move.ref] = move.gen
            led.update(self._led_to(move))
        return self._bring_back(led - self._staying)

    def keeps(self, object_id: bytes) -> bool:
        """Whether an object stays."""
        return object_id in self._staying

    def becomes(self, move: Move) -> Move | None:
        """What is left of a move."""
        place = move.ref, move.gen
        if move.time >= self._since or place in self._whole:
            return move
        bare = self._bare(move)
        if self._tips.get(move.ref) == move.gen:
            return bare
        if place not in self._records:
            return None
        if bare.new is not None and bare.new in self._staying:
            return bare
        return bare._replace(new=None, op=refs.EXPIRED, base=0, redo=0)

    def _bare(self, move: Move) -> Move:
        """A move that says only what still leads somewhere."""
        gone = [key for key in _FACES if key in move.info]
        if LAYOUT in move.info and move.info[LAYOUT] not in self._staying:
            gone.append(LAYOUT)
        if not gone:
            return move
        return move._replace(info={k: v for k, v in move.info.items() if k not in gone})

    def confirm(self, tips: Sequence[Move]) -> None:
        """Nothing that happens meanwhile makes the answers wrong."""

    # --- roots ------------------------------------------------------------------------------------

    def _take_tips(self, reach: Reach) -> None:
        for tip in self._store.engine.tips():
            self._tips[tip.ref] = tip.gen
            self._records.add((tip.ref, tip.born))
            if tip.new is not None:
                self._seeking.add(tip.ref)
                self._root(tip, reach)

    def _judge(self, move: Move, reach: Reach) -> None:
        place = move.ref, move.gen
        counts = move.time >= self._since
        if counts:
            # Undo and redo of it lead there; what these lead to is for the next collection.
            self._whole.update((move.ref, gen) for gen in (move.base, move.redo) if gen)
        if counts or place in self._whole or self._tips.get(move.ref) == move.gen:
            self._root(move, reach)
        if counts or place in self._whole:
            for tree in refs.trees_of(move):
                reach.tree(tree)
        self._seek_origin(move, reach)

    def _seek_origin(self, move: Move, reach: Reach) -> None:
        if move.ref not in self._seeking:
            return
        if refs.is_import(move):
            self._seeking.discard(move.ref)
            self._records.add((move.ref, move.gen))
            self._root(move, reach)
        elif "from_ref" in move.info:
            self._seeking.add(move.info["from_ref"])
            self._records.add((move.info["from_ref"], move.info["from_gen"]))

    def _root(self, move: Move, reach: Reach) -> None:
        if LAYOUT in move.info:
            reach.layout(move.info[LAYOUT])
        if move.new is None or move.new in reach.seen:
            return
        if move.ref.startswith(refs.OF_SNAPSHOTS) or self._is_snapshot(move.new):
            for turn in reach.line(move.new):
                reach.visit(turn)
                self._met(len(self._staying))
        else:
            reach.content(move.new)

    def _is_snapshot(self, object_id: bytes) -> bool:
        if self._kind is not None:
            return self._kind(object_id) == Kind.SNAPSHOT
        return self._store.engine.read(object_id).kind == Kind.SNAPSHOT

    # --- what was committed since -----------------------------------------------------------------

    def _bring_back(self, waiting: set[bytes]) -> set[bytes]:
        """These stay, and all that they lead to."""
        engine, revived = self._store.engine, set[bytes]()
        while waiting:
            there = {i for i in waiting if engine.contains(i)}
            revived |= there
            self._staying |= waiting
            waiting = self._linked(engine.read_many(list(there))) - self._staying
        return revived

    def _linked(self, objects: Sequence[Obj]) -> set[bytes]:
        """What objects refer to, by what they were committed as; no walk could be as quick."""
        found, pages = links_and_pages(objects)
        for page in pages:
            found |= self._parts(page)
        return found

    def _led_to(self, move: Move) -> Iterator[bytes]:
        if move.new is not None:
            yield move.new
        yield from refs.trees_of(move)
        if LAYOUT in move.info:
            layout_id = move.info[LAYOUT]
            layout = Layout.decode(self._store.objects.content(layout_id), layout_id)
            yield from (layout_id, *layout.heads, *self._parts(layout.rest))
            if layout.end is not None:
                yield layout.end

    def _parts(self, page: bytes | None) -> set[bytes]:
        """A page of the rows of an import, and what it refers to."""
        if page is None:
            return set()
        return {page, *parts_of(decode_page(self._store.objects.content(page), page))}


def _give_up(object_id: bytes, error: SnapstoreError) -> None:
    if isinstance(error, ObjectMissing):
        error.hint = "`snapstore repair` goes on with what is whole; then collect"
    raise error
