"""Which turns of which sessions hold certain objects. Everything that has links is read for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from snapstore.chunks import pieces_of
from snapstore.engine import Move, Touch
from snapstore.errors import Corrupt, SnapstoreError
from snapstore.ids import SIZE
from snapstore.model.maps import Branch
from snapstore.model.pages import decode_page, parts_of
from snapstore.model.snapshot import Record
from snapstore.worktree.tree import FILE, Trees, decode_entry

if TYPE_CHECKING:
    from snapstore.store import Store

_LIST, _MAP, _TREE, _DIRECTORY, _PAGE, _CONTENT = b"l", b"m", b"t", b"d", b"p", b"c"
"""What an object is met as: put before its id, for it can be met as several."""

_Note: TypeAlias = Callable[[bytes, str, int, int], None]
"""Called with an object, the ref, and the first and last of turns that hold it."""

_NOTHING: frozenset[bytes] = frozenset()


class Touches:
    """Where the wanted objects are met, and those that cannot be read."""

    def __init__(
        self, store: Store, wanted: Collection[bytes], chunked: Collection[bytes] | None
    ) -> None:
        """chunked: the contents that are kept in pieces; None when what is wanted are nodes of
        histories, so that nothing else is looked through."""
        self._objects = store.objects
        self._trees = Trees(store.objects)
        self._wanted = wanted
        self._chunked = chunked or ()
        self._all_parts = chunked is not None
        self._held: dict[bytes, frozenset[bytes]] = {}
        self._unread: dict[bytes, SnapstoreError] = {}
        self._runs: dict[bytes, dict[str, list[tuple[int, int]]]] = {}

    def walk(self, now: Iterable[Move]) -> None:
        """Look through the lines that these moves lead to, each of another ref."""
        for move in now:
            if move.new is not None:
                self._line(move.ref, move.new, self._note, set())

    def walk_rest(self, heads: Callable[[], Iterable[Move]]) -> None:
        """Look further for what was not met so far, turn by turn once, where these moves lead."""
        missed = frozenset(self._wanted) - self._runs.keys()
        if not missed:
            return

        def note(object_id: bytes, ref: str, first: int, last: int) -> None:
            if object_id in missed:
                self._note(object_id, ref, first, last)

        seen: set[bytes] = set()
        for move in heads():
            if move.new is not None:
                self._line(move.ref, move.new, note, seen)

    def of(self, ids: Iterable[bytes]) -> tuple[Touch, ...]:
        """The turns that hold any of these objects, by ref, in their order."""
        found: dict[str, list[tuple[int, int]]] = {}
        for object_id in ids:
            for ref, runs in self._runs.get(object_id, {}).items():
                found.setdefault(ref, []).extend(runs)
        return tuple(
            Touch(ref, first, last)
            for ref, runs in sorted(found.items())
            for first, last in _merged(runs)
        )

    def like(self, error: SnapstoreError) -> tuple[Touch, ...]:
        """The turns that hold what cannot be read for this very reason."""
        return self.of(i for i, other in self._unread.items() if str(other) == str(error))

    def at(self, place: tuple[str | None, int | None], ids: Collection[bytes]) -> tuple[Touch, ...]:
        """The turns that hold any of these, or what cannot be read for damage at this place."""
        there = {
            object_id
            for object_id, error in self._unread.items()
            if isinstance(error, Corrupt) and error.path and (error.path, error.offset) == place
        }
        return self.of(there.union(ids))

    # --- lines ------------------------------------------------------------------------------------

    def _line(self, ref: str, head: bytes, note: _Note, seen: set[bytes]) -> None:
        here: bytes | None = head
        turn = 0
        while here is not None and here not in seen:
            seen.add(here)
            try:
                record = self._objects.snapshots.record(here)
            except SnapstoreError as error:
                self._unread[here] = error
                note(here, ref, 1 if turn else 0, max(turn - 1, 0))
                return
            turn = record.turn
            for object_id in self._under(self._parts(record)):
                note(object_id, ref, turn, turn)
            here = record.parent

    def _parts(self, record: Record) -> list[bytes]:
        found = [*_met(_LIST, record.history)]
        if self._all_parts:
            found += _met(_PAGE, record.rows)
            found += _met(_MAP, record.scratchpad)
            found += _met(_MAP, record.state)
            found += _met(_TREE, record.files)
        return found

    def _note(self, object_id: bytes, ref: str, first: int, last: int) -> None:
        """Add turns to those of an object; within a line they come newest first."""
        runs = self._runs.setdefault(object_id, {}).setdefault(ref, [])
        if runs and runs[-1][0] == last + 1:
            runs[-1] = first, runs[-1][1]
        else:
            runs.append((first, last))

    # --- what turns hold --------------------------------------------------------------------------

    def _under(self, met: list[bytes]) -> frozenset[bytes]:
        """What is looked for among these objects and all that they lead to.

        Each is looked at once: first for what it leads to, and again when all of that is known.
        """
        held = self._held
        todo: list[tuple[bytes, list[bytes] | None]] = [(one, None) for one in met]
        while todo:
            here, below = todo.pop()
            if below is None:
                if here not in held:
                    held[here] = _NOTHING  # until more is known: a chunk list may name itself
                    below = self._links(here)
                    todo.append((here, below))
                    todo += [(one, None) for one in below if one not in held]
                continue
            own = {here[1:]} & self._unread.keys() | {here[1:]}.intersection(self._wanted)
            held[here] = frozenset(own).union(*(held[one] for one in below)) or _NOTHING
        return _NOTHING.union(*(held[one] for one in met))

    def _links(self, met: bytes) -> list[bytes]:
        """What an object leads to; nothing when it cannot be read."""
        try:
            return list(self._read(met[:1], met[1:]))
        except SnapstoreError as error:
            self._unread[met[1:]] = error
            return []

    def _read(self, role: bytes, object_id: bytes) -> Iterator[bytes]:
        objects = self._objects
        if role == _LIST:
            node = objects.lists.node(object_id)
            yield from _met(_LIST, node.prev)
            for at in range(0, len(node.ids), SIZE):
                yield from self._content(node.ids[at : at + SIZE])
        elif role == _CONTENT:
            if object_id in self._chunked:
                for piece in pieces_of(objects.engine.read(object_id).payload, object_id):
                    yield from self._content(piece)
        elif role == _PAGE:
            yield from self._content(object_id)
            for part in parts_of(decode_page(objects.content(object_id), object_id)):
                yield from self._content(part)
        elif role == _TREE:
            yield from _met(_DIRECTORY, self._trees.root(object_id).entries)
        else:
            yield from self._of_map(role, object_id)

    def _of_map(self, role: bytes, node_id: bytes) -> Iterator[bytes]:
        node = self._objects.maps.node(node_id)
        if isinstance(node, Branch):
            for child in node.children:
                yield from _met(role, child)
        elif role == _MAP:
            for link in node.links:
                yield from self._content(link)
        else:
            for name, value in node.entries.items():
                entry = decode_entry(value, name)
                if entry.kind == FILE and entry.target is not None:
                    yield from self._content(entry.target)
                yield from _met(_DIRECTORY, entry.children)

    def _content(self, object_id: bytes) -> Iterator[bytes]:
        """A content, if there is anything to say about it: most lead nowhere."""
        if object_id in self._wanted or object_id in self._chunked:
            yield _CONTENT + object_id


def _met(role: bytes, object_id: bytes | None) -> Iterator[bytes]:
    if object_id is not None:
        yield role + object_id


def _merged(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same turns in their order, in as few runs as can be."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
