"""Every object that something in a store leads to, each after all that it refers to itself.

So whoever writes them down in this order, and is cut off at any point, has written nothing that
refers to what is not there; and whoever meets an object that the other side has already need not
look behind it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import NamedTuple

from snapstore.chunks import pieces_of
from snapstore.engine import Kind, Obj
from snapstore.ids import SIZE
from snapstore.model import extents, maps
from snapstore.model.layout import Layout
from snapstore.model.pages import decode_page, parts_of
from snapstore.model.snapshot import Record
from snapstore.objects import Objects
from snapstore.worktree.tree import FILE, Trees, decode_entry


class Type(enum.IntEnum):
    """What the link to an object says that it is."""

    CONTENT = 0
    SNAPSHOT = 1
    LIST = 2
    MAP = 3
    """A map whose values are contents: a scratchpad, or the state of an integration."""
    DIRECTORY = 4
    """A map whose values are entries of a directory."""
    TREE = 5
    PAGE = 6
    LAYOUT = 7


class Link(NamedTuple):
    """A reference to an object."""

    type: Type
    id: bytes


class Closure:
    """A walk over objects. What was met is not met again, nor is what is known already."""

    def __init__(self, objects: Objects, known: Callable[[bytes], bool]) -> None:
        """Known is asked about each object that is met; what lies behind a known one is too."""
        self._objects = objects
        self._trees = Trees(objects)
        self._known = known
        self._met: set[Link] = set()

    def of(self, link: Link) -> Iterator[Obj]:
        """The objects from a link on that are not known. Raises ObjectMissing or Corrupt.

        The way back is kept in a list, not on Python's stack: lines and trees may be deep.
        """
        todo: list[tuple[Link, bool]] = [(link, False)]
        while todo:
            here, is_done = todo.pop()
            if is_done:
                yield self._objects.engine.read(here.id)
            elif here not in self._met:
                self._met.add(here)
                if not self._known(here.id):
                    todo.append((here, True))
                    below = list(self._below(here))
                    todo += [(link, False) for link in reversed(below)]

    def _below(self, link: Link) -> Iterator[Link]:
        """What an object refers to, in the order in which it is used."""
        match link.type:
            case Type.CONTENT:
                yield from self._pieces(link.id)
            case Type.SNAPSHOT:
                yield from _of_record(self._objects.snapshots.record(link.id))
            case Type.LIST:
                yield from _of_extent(self._objects.lists.node(link.id))
            case Type.MAP:
                yield from _of_map(self._objects.maps.node(link.id))
            case Type.DIRECTORY:
                yield from _of_directory(self._objects.maps.node(link.id))
            case Type.TREE:
                yield from _linked(Type.DIRECTORY, self._trees.root(link.id).entries)
            case Type.PAGE:
                yield from self._pieces(link.id)
                rows = decode_page(self._objects.content(link.id), link.id)
                yield from (Link(Type.CONTENT, part) for part in parts_of(rows))
            case Type.LAYOUT:
                layout = Layout.decode(self._objects.content(link.id), link.id)
                yield from (Link(Type.SNAPSHOT, head) for head in layout.heads)
                yield from _linked(Type.PAGE, layout.rest)
                yield from _linked(Type.CONTENT, layout.end)

    def _pieces(self, content_id: bytes) -> Iterator[Link]:
        o = self._objects.engine.read(content_id)
        if o.kind == Kind.CHUNKED:
            yield from (Link(Type.CONTENT, piece) for piece in pieces_of(o.payload, o.id))


def _linked(type_: Type, object_id: bytes | None) -> Iterator[Link]:
    if object_id is not None:
        yield Link(type_, object_id)


def _of_record(record: Record) -> Iterator[Link]:
    yield from _linked(Type.SNAPSHOT, record.parent)
    yield from _linked(Type.LIST, record.history)
    yield from _linked(Type.PAGE, record.rows)
    yield from _linked(Type.MAP, record.scratchpad)
    yield from _linked(Type.MAP, record.state)
    yield from _linked(Type.TREE, record.files)


def _of_extent(node: extents.Node) -> Iterator[Link]:
    yield from _linked(Type.LIST, node.prev)
    for at in range(0, len(node.ids), SIZE):
        yield Link(Type.CONTENT, node.ids[at : at + SIZE])


def _of_map(node: maps.Node) -> Iterator[Link]:
    if isinstance(node, maps.Leaf):
        yield from (Link(Type.CONTENT, linked) for linked in node.links)
    else:
        yield from (Link(Type.MAP, child) for child in node.children if child is not None)


def _of_directory(node: maps.Node) -> Iterator[Link]:
    if isinstance(node, maps.Branch):
        yield from (Link(Type.DIRECTORY, child) for child in node.children if child is not None)
        return
    for name, value in node.entries.items():
        entry = decode_entry(value, name)
        if entry.children is not None:
            yield Link(Type.DIRECTORY, entry.children)
        elif entry.kind == FILE and entry.target is not None:
            yield Link(Type.CONTENT, entry.target)
