"""What a directory looked like when it was captured last, so that what is unchanged is not read.

For each directory the cache holds how the directory itself looked, its names, how each file looked,
and the root of the map that was stored for it. A file that looks the same is not opened, and a
directory that looks the same is not listed: a name that comes or goes changes its mtime.

How something looks is (mtime, ctime, size, inode, mode), in nanoseconds and bytes. Two changes
within one tick of the kernel's clock leave the same look, so what was changed just before it was
looked at is "racy": its look is not kept, and the next capture reads it again. Only ctime is asked,
for no program can set it.

The file is throw-away and says so: one that fails its check, or names a tree that the store does
not hold (any more), is as good as none.

    magic    8s   b"snapsta1"
    check    32s  BLAKE3 of the rest
    msgpack  [root, tree], then one array for each directory: [path, *fields of Seen]
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgpack

from snapstore.disk import Disk
from snapstore.errors import Corrupt
from snapstore.ids import SIZE, object_id
from snapstore.plainfile import read_plain

Look = tuple[int, int, int, int, int]
"""mtime, ctime, size, inode, mode."""

TICK = 20_000_000
"""Nanoseconds: twice the longest tick of a kernel's clock."""
COARSE_TICK = 2_000_000_000
"""The same for file systems that keep whole seconds."""

_MAGIC = b"snapsta1"


class Seen(NamedTuple):
    """A directory as it was captured. Looks are None where they cannot be relied on."""

    look: Look | None
    mode: int
    entries: bytes | None
    """Root of the map that was stored."""
    above: bytes
    """Digest of the ignore rules that came from above."""
    rules: bytes
    """Digest of those that held in it."""
    rule_files: tuple[tuple[bytes, Look | None], ...]
    names: tuple[bytes, ...]
    """Everything captured but directories, sorted."""
    looks: tuple[Look | None, ...]
    dirs: tuple[bytes, ...]
    ignored: tuple[bytes, ...]
    """What ignore rules left out."""
    size: int
    """Bytes of its files."""


def look_of(info: os.stat_result) -> Look:
    """How a file or directory looks."""
    return (info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino, info.st_mode)


def to_trust(info: os.stat_result, now: int) -> Look | None:
    """How it looks, for the next capture to compare; None when that says nothing."""
    return None if is_racy(info.st_ctime_ns, now) else look_of(info)


def is_racy(ctime: int, now: int) -> bool:
    """Whether something changed so shortly before now that it may change again unnoticed."""
    return ctime > now - (TICK if ctime % 1_000_000_000 else COARSE_TICK)


@dataclass(slots=True)
class StatCache:
    """The directories of one tree as they were captured last."""

    tree: bytes | None = None
    """The tree that was stored; None when nothing is known."""
    seen: dict[bytes, Seen] = field(default_factory=dict)
    packed: dict[bytes, bytes] = field(default_factory=dict)
    """The same as it stands in the file, so that only what changed is packed again."""

    def encode(self, root: bytes) -> bytes:
        """The bytes of the file."""
        for path, seen in self.seen.items():
            if path not in self.packed:
                self.packed[path] = msgpack.packb((path, *seen))
        body = b"".join((msgpack.packb((root, self.tree)), *self.packed.values()))
        return _MAGIC + object_id(body) + body


def load(path: Path, root: bytes) -> StatCache:
    """The cache of the tree at root; an empty one where the file is missing or does not verify."""
    try:
        data = read_plain(path)
    except (OSError, Corrupt):
        return StatCache()
    body = memoryview(data)[len(_MAGIC) + SIZE :]
    if not data.startswith(_MAGIC) or object_id(body) != data[len(_MAGIC) : len(_MAGIC) + SIZE]:
        return StatCache()
    unpacker = msgpack.Unpacker(use_list=False, max_buffer_size=len(data) + 1)
    unpacker.feed(body)
    of, tree = unpacker.unpack()
    if of != root:
        return StatCache()
    cache = StatCache(tree)
    start = unpacker.tell()
    for path_in_tree, *fields in unpacker:
        end = unpacker.tell()
        cache.seen[path_in_tree] = Seen(*fields)
        cache.packed[path_in_tree] = bytes(body[start:end])
        start = end
    return cache


def store(disk: Disk, path: Path, root: bytes, cache: StatCache) -> None:
    """Write the cache, if the directory for it is there; a failure only costs time."""
    if path.parent.is_dir():
        disk.write_cache(path, cache.encode(root))
