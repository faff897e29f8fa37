"""A directory as it is stored: a map of its entries, and so on down.

A tree is named by its root object, a msgpack array

    [mode, entries]
    mode     permission bits of the root directory, 12 bits (set-user-id and sticky included)
    entries  root of the map of its entries (see model.maps), 32 bytes; nil when it is empty

An entry stands inline in the map of its directory. The key is its name, as the file system has it:
any bytes but NUL and slash. The value is a msgpack array

    [kind, mode, mtime, size, target]
    kind     0 directory, 1 file, 2 symbolic link; listed but not held: 3 fifo, 4 socket,
             5 device, 6 unreadable, 7 mount point of another file system
    mode     permission bits, 12 bits
    mtime    nanoseconds since the epoch, of files and links, else 0
    size     bytes of a file's content, else 0
    target   file: id of its content, 32 bytes. Link: where it leads. Directory: root of the map of
             its entries, nil when it is empty. Else nil

A directory's own mtime is not kept: it changes with every ignored file that comes and goes, and
trees that hold the same would not be equal. So equal trees have equal ids.

Stored names may come from another machine. One that could lead a restore out of its directory, or
into a repository's ``.git``, is damage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgpack

from snapstore.errors import Corrupt
from snapstore.ids import SIZE
from snapstore.model.maps import Inline, Value
from snapstore.model.wire import Put, damaged, is_link, pack, unpack
from snapstore.objects import Objects

DIR, FILE, SYMLINK, FIFO, SOCKET, DEVICE, UNREADABLE, MOUNT = range(8)

KIND_NAMES = (
    "dir", "file", "symlink", "fifo", "socket", "device", "unreadable", "mount",
)  # fmt: skip
"""What each kind is called, by its number."""

HELD = (DIR, FILE, SYMLINK)
"""The kinds that a tree holds. Of the others it only knows that they were there."""

MODE_BITS = 0o7777


class Entry(NamedTuple):
    """One entry of a directory, as it is stored."""

    kind: int
    mode: int
    mtime: int = 0
    size: int = 0
    target: bytes | None = None

    def packed(self) -> bytes:
        """The value that stands in the map of its directory."""
        packed: bytes = msgpack.packb(self)
        return packed

    @property
    def children(self) -> bytes | None:
        """The root of a directory's map; None for what is empty or no directory."""
        return self.target if self.kind == DIR else None


class Root(NamedTuple):
    """The root directory of a tree."""

    mode: int
    entries: bytes | None


class Change(NamedTuple):
    """A path that two trees do not have alike; None where it is not there."""

    path: bytes
    old: Entry | None
    new: Entry | None


def decode_entry(value: Value, name: bytes) -> Entry:
    """The entry of this name in a directory. Raises Corrupt when it is none."""
    if not isinstance(value, Inline):
        raise Corrupt(f"the entry {name!r} of a directory is not of the form it must have")
    if not name or b"/" in name or b"\0" in name or name in (b".", b"..") or is_git(name):
        raise Corrupt(f"a directory holds an entry of the name {name!r}, which cannot be")
    try:
        fields = msgpack.unpackb(value.content, use_list=False, max_array_len=64)
        entry = Entry(*fields[:5])
    except (ValueError, TypeError, msgpack.ExtraData) as error:
        raise Corrupt(f"the entry {name!r} of a directory does not decode ({error})") from error
    if not _makes_sense(entry):
        raise Corrupt(f"the entry {name!r} of a directory contradicts itself")
    return entry


def is_git(name: bytes) -> bool:
    """Whether an entry is a repository's own, which is never read or written. Whatever the case:
    on a file system that ignores case they are the same."""
    return name.lower() == b".git"


def _makes_sense(entry: Entry) -> bool:
    kind, mode, mtime, size, target = entry
    if not (type(kind) is type(mode) is type(mtime) is type(size) is int):
        return False
    if not (0 <= mode <= MODE_BITS and size >= 0):
        return False
    if kind == FILE:
        return type(target) is bytes and len(target) == SIZE
    if kind == SYMLINK:
        return type(target) is bytes and bool(target) and b"\0" not in target
    if kind == DIR:
        return is_link(target)
    return kind > 0


def put_root(root: Root, put: Put) -> bytes:
    """Store a root; the id of the tree."""
    return put(pack(list(root)))


def join(directory: bytes, name: bytes) -> bytes:
    """The path of an entry, relative to the root of the tree, which is b""."""
    return directory + b"/" + name if directory else name


def parts_of(path: bytes) -> tuple[bytes, ...]:
    """The names on the way from the root of the tree to a path."""
    return tuple(path.split(b"/")) if path else ()


class Trees:
    """Reads stored trees. Safe to share between threads."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def root(self, tree: bytes) -> Root:
        """The root directory of a tree. Raises ObjectMissing or Corrupt."""
        fields = unpack(self._objects.content(tree), tree, most=64)
        if len(fields) < 2 or type(fields[0]) is not int or not is_link(fields[1]):
            raise damaged(tree, "it is no root of a tree")
        return Root(fields[0], fields[1])

    def children(self, entries: bytes | None) -> list[tuple[bytes, Entry]]:
        """The entries of a directory, sorted by name."""
        items = self._objects.maps.items(entries)
        return [(name, decode_entry(value, name)) for name, value in items]

    def find(self, tree: bytes, parts: Sequence[bytes]) -> Entry | None:
        """The entry at a path, None when there is none; the root is a directory."""
        root = self.root(tree)
        here = Entry(DIR, root.mode, target=root.entries)
        for name in parts:
            value = self._objects.maps.get(here.children, name)
            if value is None:
                return None
            here = decode_entry(value, name)
        return here

    def walk(self, tree: bytes, below: bytes = b"") -> Iterator[tuple[bytes, Entry]]:
        """Every path below one with its entry, directories before what they hold, by name."""
        top = self.find(tree, parts_of(below))
        todo = [(below, top)] if top is not None else []
        while todo:
            path, entry = todo.pop()
            if path != below:
                yield path, entry
            if entry.children is not None:
                held = self.children(entry.children)
                todo += [(join(path, name), child) for name, child in reversed(held)]

    def changes(self, old: bytes | None, new: bytes | None) -> list[Change]:
        """The paths that differ, sorted; None stands for nothing at all.

        A directory differs when it is new, gone, or of another mode, not when its content does.
        What both trees share is not read. The root is the path b"".
        """
        before = self.root(old) if old else None
        after = self.root(new) if new else None
        found: list[Change] = []
        if before and after and before.mode != after.mode:
            found.append(Change(b"", Entry(DIR, before.mode), Entry(DIR, after.mode)))
        todo = [(b"", before.entries if before else None, after.entries if after else None)]
        while todo:
            path, left, right = todo.pop()
            for name, was, now in self._objects.maps.diff(left, right):
                one = decode_entry(was, name) if was else None
                other = decode_entry(now, name) if now else None
                here = join(path, name)
                if _differ(one, other):
                    found.append(Change(here, one, other))
                below = one.children if one else None, other.children if other else None
                if below[0] != below[1]:
                    todo.append((here, *below))
        return sorted(found, key=lambda change: change.path)


def _differ(one: Entry | None, other: Entry | None) -> bool:
    if one is not None and other is not None and one.kind == other.kind == DIR:
        return one.mode != other.mode
    return one != other
