"""Everything that a store's refs and reflog reach, object by object.

Each part is visited once, however many turns share it. What cannot be read is reported with the
turn that it was met from, and walked past: one missing object must not hide the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from snapstore.chunks import pieces_of
from snapstore.engine import Kind
from snapstore.errors import SnapstoreError
from snapstore.model.layout import Layout
from snapstore.model.maps import Leaf
from snapstore.model.pages import decode_page, parts_of
from snapstore.model.snapshot import Record
from snapstore.objects import Objects
from snapstore.worktree.tree import FILE, Trees, decode_entry

Report = Callable[[bytes, SnapstoreError], None]
"""Called with the id of what could not be read, and why."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A snapshot on the walk."""

    id: bytes
    record: Record


class Reach:
    """Walks from heads, remembering what it has seen. ``seen`` holds every id that was met."""

    def __init__(
        self, objects: Objects, report: Report, kind: Callable[[bytes], int] | None = None
    ) -> None:
        """kind tells that of an object where the engine can without reading it: then contents are
        looked for and not read."""
        self._kind = kind
        self._objects = objects
        self._trees = Trees(objects)
        self._report = report
        self.seen: set[bytes] = set()
        self.chunked: set[bytes] = set()
        """The contents that were met and are kept in pieces."""

    def line(self, head: bytes) -> Iterator[Turn]:
        """The turns of a line that were not met before, newest first; the caller visits each."""
        here: bytes | None = head
        while here is not None and here not in self.seen:
            self.seen.add(here)
            try:
                record = self._objects.snapshots.record(here)
            except SnapstoreError as error:
                self._report(here, error)
                return
            yield Turn(here, record)
            here = record.parent

    def visit(self, turn: Turn) -> None:
        """Meet all that a turn holds: messages, scratchpad, files, rows, state."""
        self._history(turn.record.history)
        self._page(turn.record.rows)
        self._map(turn.record.scratchpad)
        self._map(turn.record.state)
        if turn.record.files is not None:
            self.tree(turn.record.files)

    def layout(self, layout_id: bytes) -> None:
        """Meet all that the layout of an imported file holds, the turns of its lines too."""
        if layout_id in self.seen:
            return
        self.seen.add(layout_id)
        try:
            laid_out = Layout.decode(self._objects.content(layout_id), layout_id)
        except SnapstoreError as error:
            self._report(layout_id, error)
            return
        for head in laid_out.heads:
            for turn in self.line(head):
                self.visit(turn)
        self._page(laid_out.rest)
        if laid_out.end is not None:
            self.content(laid_out.end)

    def _page(self, page: bytes | None) -> None:
        """Meet a page of rows, and their parts."""
        if page is None or page in self.seen:
            return
        try:
            rows = decode_page(self._objects.content(page), page)
        except SnapstoreError as error:
            self.seen.add(page)
            self._report(page, error)
            return
        self.content(page)
        for part in parts_of(rows):
            self.content(part)

    def tree(self, root: bytes) -> None:
        """Meet all that a file tree holds."""
        if root in self.seen:
            return
        try:
            directories = [self._trees.root(root).entries]
            self.seen.add(root)
            while directories:
                directories += self._directory(directories.pop())
        except SnapstoreError as error:
            self.seen.add(root)
            self._report(root, error)

    def _directory(self, entries: bytes | None) -> list[bytes]:
        """Meet the map and the files of a directory; the maps of those in it."""
        found: list[bytes] = []
        below: list[bytes] = []
        for node_id, node in self._objects.maps.reachable(entries, self.seen):
            found.append(node_id)
            for name, value in node.entries.items() if isinstance(node, Leaf) else ():
                entry = decode_entry(value, name)
                if entry.children is not None:
                    below.append(entry.children)
                elif entry.kind == FILE and entry.target is not None:
                    self.content(entry.target)
        self.seen.update(found)
        return below

    def _history(self, tip: bytes | None) -> None:
        found: list[bytes] = []
        here = tip
        try:
            for node_id, node in self._objects.lists.reachable(tip, self.seen):
                found.append(node_id)
                here = node.prev
                for at in range(0, len(node.ids), 32):
                    self.content(node.ids[at : at + 32])
        except SnapstoreError as error:
            found.append(here or b"")
            self._report(here or b"", error)
        # Marked only now: the walk stops at the first node that was seen before.
        self.seen.update(found)

    def _map(self, root: bytes | None) -> None:
        found: list[bytes] = []
        try:
            for node_id, node in self._objects.maps.reachable(root, self.seen):
                found.append(node_id)
                if isinstance(node, Leaf):
                    for link in node.links:
                        self.content(link)
        except SnapstoreError as error:
            found.append(root or b"")
            self._report(root or b"", error)
        self.seen.update(found)

    def content(self, content_id: bytes) -> None:
        """Meet a content, and the pieces of a large one."""
        waiting = [content_id]
        while waiting:
            here = waiting.pop()
            if here in self.seen:
                continue
            self.seen.add(here)
            try:
                if self._kind is not None and self._kind(here) != Kind.CHUNKED:
                    continue
                o = self._objects.engine.read(here)
                if o.kind == Kind.CHUNKED:
                    self.chunked.add(here)
                    waiting += pieces_of(o.payload, here)
            except SnapstoreError as error:
                self._report(here, error)
