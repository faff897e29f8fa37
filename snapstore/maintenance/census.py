"""Whether everything in a store is there that something in it refers to, without following links.

Each object is looked at once, as it comes, and what it refers to is searched among the objects that
came before; an engine hands out objects before what was built on them, so nearly all is found. What
is not is tried again at the end. When every object that is there has all its links there, and every
ref too, then whatever can be reached is whole: nobody has to walk to it.

An object's type comes from the link that names it, so a link only counts as found among those that
decode as what it expects. Nothing that can be doubted is settled here: then somebody has to walk,
who tells damage from the odd object that nothing refers to, and from content that happens to look
like structure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from snapstore import refs
from snapstore.chunks import pieces_of
from snapstore.engine import Kind, Move, Obj
from snapstore.engines.sheet import Sheet
from snapstore.errors import Corrupt, SnapstoreError
from snapstore.ids import SIZE
from snapstore.maintenance.oddpairs import Pairs
from snapstore.model import extents, maps
from snapstore.model.layout import LAYOUT, Layout
from snapstore.model.pages import decode_page, parts_of
from snapstore.model.snapshot import Record
from snapstore.model.wire import unpack
from snapstore.objects import Objects
from snapstore.worktree.tree import FILE, decode_entry

_LINK_OR_NIL = (b"\xc4", b"\xc0")
"""How msgpack begins a byte string of 32 bytes, and nil."""


class Census:
    """Takes in all that a store holds, sheet by sheet; then tells whether it fits together."""

    def __init__(self, objects: Objects, pairs: Pairs | None = None) -> None:
        """pairs is told of every list as well."""
        self._objects = objects
        self._pairs = pairs
        self._doubted = False
        self._contents: set[bytes] = set()
        self._chunked: set[bytes] = set()
        """The contents that are kept in pieces."""
        self._lists: dict[bytes, tuple[int, int]] = {}
        """The nodes of lists, each with its depth and its total."""
        self._snapshots: set[bytes] = set()
        self._leaves: set[bytes] = set()
        self._directories: set[bytes] = set()
        """The leaves that are sound as a directory too."""
        self._branches: set[bytes] = set()
        self._roots: set[bytes] = set()
        self._later: list[bytes] = []
        """Objects that something was missing for when they came."""
        self._heads: set[bytes] = set()
        self._trees: set[bytes] = set()
        self._layouts: set[bytes] = set()
        self._pages: set[bytes] = set()
        self._map_roots: set[bytes] = set()
        self._directory_roots: set[bytes] = set()

    # --- as it comes ------------------------------------------------------------------------------

    def add(self, sheet: Sheet) -> None:
        """Take in what comes next."""
        self._contents.update(sheet.ids)
        if self._pairs is not None:
            self._pairs.contents(sheet.ids, sheet.contents)
        for o in sheet.others:
            if not self._fits(o):
                self._later.append(o.id)
        self.expect(sheet.moves)

    def expect(self, moves: Iterable[Move]) -> None:
        """Take in moves: what they lead to must be there in the end."""
        for move in moves:
            if move.new is None or not move.ref.startswith(refs.OF_SNAPSHOTS):
                continue
            if move.new not in self._snapshots:
                self._heads.add(move.new)
            if move.info:
                self._trees.update(refs.trees_of(move))
                if LAYOUT in move.info:
                    self._layouts.add(move.info[LAYOUT])

    def _fits(self, o: Obj) -> bool:
        """Whether an object decodes and all that it refers to is there; if so, it is there too."""
        try:
            if o.kind == Kind.SNAPSHOT:
                return self._snapshot(o)
            if o.kind == Kind.CHUNKED:
                return self._chunk_list(o)
            return self._node(o)
        except SnapstoreError:
            return False

    def _snapshot(self, o: Obj) -> bool:
        record = Record.decode(o.payload, o.id)
        if record.rows is not None:
            self._pages.add(record.rows)
        fits = (
            (record.parent is None or record.parent in self._snapshots)
            and (record.history is None or record.history in self._lists)
            and (record.scratchpad is None or self._is_map(record.scratchpad))
            and (record.files is None or record.files in self._roots)
            and (record.state is None or self._is_map(record.state))
        )
        if fits:
            self._snapshots.add(o.id)
        return fits

    def _chunk_list(self, o: Obj) -> bool:
        fits = self._contents.issuperset(pieces_of(o.payload, o.id))
        if fits:
            self._contents.add(o.id)
            self._chunked.add(o.id)
        return fits

    def _node(self, o: Obj) -> bool:
        """A node of a list begins with a link or nil, one of a map with a number; the root of a
        tree does too, and has two fields."""
        if o.payload[1:2] in _LINK_OR_NIL:
            return self._extent(o.id, extents.Node.decode(o.payload, o.id))
        fields = unpack(o.payload, o.id, most=1 + 2 * maps.LEAF_ENTRIES)
        if len(fields) == 2:
            return self._root(o.id, fields[1])
        return self._map(o.id, maps.decode(o.payload, o.id))

    def _extent(self, node_id: bytes, node: extents.Node) -> bool:
        before = self._lists.get(node.prev) if node.prev is not None else (0, 0)
        ids = [node.ids[at : at + SIZE] for at in range(0, len(node.ids), SIZE)]
        if before != (node.depth - 1, node.start) or not self._contents.issuperset(ids):
            return False
        self._lists[node_id] = node.depth, node.total
        if self._pairs is not None:
            if self._chunked:
                self._pairs.large(self._chunked.intersection(ids))
            self._pairs.extent(node_id, node, ids)
        return True

    def _root(self, root_id: bytes, entries: object) -> bool:
        fits = entries is None or (isinstance(entries, bytes) and self._is_directory(entries))
        if fits:
            self._roots.add(root_id)
        return fits

    def _map(self, node_id: bytes, node: maps.Node) -> bool:
        """Branches are looked into at the end: whether a key is in its place is seen from above."""
        if isinstance(node, maps.Branch):
            self._branches.add(node_id)
            return True
        if not self._contents.issuperset(node.links):
            return False
        self._leaves.add(node_id)
        if self._lists_files(node):
            self._directories.add(node_id)
        return True

    def _lists_files(self, leaf: maps.Leaf) -> bool:
        try:
            return all(self._holds(name, value) for name, value in leaf.entries.items())
        except Corrupt:
            return False

    def _holds(self, name: bytes, value: maps.Value) -> bool:
        """Whether what an entry of a directory refers to is there. Raises Corrupt."""
        entry = decode_entry(value, name)
        if entry.kind == FILE:
            return entry.target in self._contents
        return entry.children is None or self._is_directory(entry.children)

    def _is_map(self, root: bytes) -> bool:
        if root in self._branches:
            self._map_roots.add(root)
            return True
        return root in self._leaves

    def _is_directory(self, root: bytes) -> bool:
        if root in self._branches:
            self._directory_roots.add(root)
            return True
        return root in self._directories

    # --- at the end -------------------------------------------------------------------------------

    def doubt(self) -> None:
        """Something could not even be asked for: settle nothing."""
        self._doubted = True

    def settle(self) -> bool:
        """Whether all that the objects and the moves refer to is there.

        What is told from above, not from the object itself, is read again for it: pages of rows,
        layouts, maps with branches. False is no proof of damage.
        """
        try:
            return (
                not self._doubted
                and self._all_fit_now()
                and self._heads <= self._snapshots
                and self._trees <= self._roots
                and all(map(self._layout, self._layouts))
                and all(map(self._page, self._pages))
                and self._branched()
            )
        except SnapstoreError:
            return False

    def _all_fit_now(self) -> bool:
        read = self._objects.engine.read
        return all(self._fits(read(object_id)) for object_id in self._later)

    def _layout(self, layout_id: bytes) -> bool:
        layout = Layout.decode(self._objects.content(layout_id), layout_id)
        if layout.rest is not None:
            self._pages.add(layout.rest)
        return self._snapshots.issuperset(layout.heads) and (
            layout.end is None or layout.end in self._contents
        )

    def _page(self, page: bytes) -> bool:
        rows = decode_page(self._objects.content(page), page)
        return self._contents.issuperset(parts_of(rows))

    def _branched(self) -> bool:
        """Whether the maps that have branches are whole, each key where it belongs."""
        for leaf in self._below(self._map_roots):
            if not self._contents.issuperset(leaf.links):
                return False
        # Directories that are met in others are added while this goes on.
        return all(map(self._lists_files, self._below(self._directory_roots)))

    def _below(self, roots: set[bytes]) -> Iterator[maps.Leaf]:
        known: set[bytes] = set()
        while left := roots - known:
            for root in left:
                met: list[bytes] = [root]
                for node_id, node in self._objects.maps.reachable(root, known):
                    met.append(node_id)
                    if isinstance(node, maps.Leaf):
                        yield node
                known.update(met)
