"""What is at a path right now, looked up without following any link."""

from __future__ import annotations

import os
import stat

from blake3 import blake3

from snapstore.worktree import tree
from snapstore.worktree.descent import Descent
from snapstore.worktree.listing import STAGING
from snapstore.worktree.tree import Entry, parts_of

_PIECE = 1 << 20


class Live:
    """Looks at a directory that is held open. Reads only."""

    def __init__(self, descent: Descent) -> None:
        self._descent = descent

    def stat(self, path: bytes) -> os.stat_result | None:
        """What is at a path; None for nothing, also where something above is no directory."""
        *above, name = parts_of(path) or (b".",)
        try:
            return os.stat(name, dir_fd=self._descent.open(above), follow_symlinks=False)
        except OSError:
            return None

    def names(self, path: bytes) -> list[bytes]:
        """All names in a directory; none where it is none or cannot be read."""
        try:
            with os.scandir(self._descent.open(parts_of(path))) as found:
                names = [os.fsencode(item.name) for item in found]
        except OSError:
            return []
        return [name for name in names if path or not name.startswith(STAGING)]

    def is_entry(self, path: bytes, entry: Entry) -> bool:
        """Whether what is at a path is this file or link, to the byte."""
        info = self.stat(path)
        if info is None or not same_look(info, entry):
            return False
        *above, name = parts_of(path)
        folder = self._descent.open(above)
        if entry.kind == tree.SYMLINK:
            return os.readlink(name, dir_fd=folder) == entry.target
        return entry.kind == tree.FILE and _hash_at(folder, name) == entry.target


def same_look(info: os.stat_result, entry: Entry) -> bool:
    """Whether something has the kind, mode, time and size of an entry."""
    if entry.kind == tree.DIR:
        return stat.S_ISDIR(info.st_mode) and stat.S_IMODE(info.st_mode) == entry.mode
    if info.st_mtime_ns != entry.mtime:
        return False
    if entry.kind == tree.SYMLINK:
        return stat.S_ISLNK(info.st_mode)
    return (
        stat.S_ISREG(info.st_mode)
        and stat.S_IMODE(info.st_mode) == entry.mode
        and info.st_size == entry.size
    )


def _hash_at(folder: int, name: bytes) -> bytes | None:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    whole = blake3()
    try:
        while piece := os.read(fd, _PIECE):
            whole.update(piece)
    finally:
        os.close(fd)
    return whole.digest()
