"""What was fetched of packs, kept on this machine for all processes that use the store.

Packs never change and their names prove their bytes, so nothing here can be out of date, only
missing or damaged: whoever reads checks, and a damaged file counts as missing. Files appear whole,
by a rename. Any of them may be deleted at any time.

When the cache has grown beyond its bound, the files that were not used for longest go, down to
nine tenths of it. A file's modification time says when it was last used.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from snapstore.disk import DISK, Disk
from snapstore.errors import Corrupt, DiskError
from snapstore.plainfile import read_plain

BOUND = 2 << 30
"""Bytes that the caches of all stores take together."""

_LOOKS = 16
_PURGED = "purged"
"""The file that says which purge came last before the others were written."""


class _Kept(NamedTuple):
    used: float
    size: int
    path: Path


class PackCache:
    """Files below one directory. Several threads and processes may use it."""

    def __init__(
        self, folder: Path, store_id: str, *, bound: int = BOUND, disk: Disk = DISK
    ) -> None:
        """Keeps the packs of one store in a folder that other stores may share."""
        self._all = folder
        self._mine = folder / store_id
        self._bound = bound
        self._disk = disk

    def load(self, name: str) -> bytes | None:
        """The bytes that were stored under a name, unchecked; None when they are not there."""
        path = self._path(name)
        try:
            data = read_plain(path)
        except (OSError, Corrupt):
            return None
        self._disk.mark_used(path)
        return data

    def store(self, name: str, data: bytes) -> None:
        """Keep bytes under a name. A cache that cannot be written is no reason to fail."""
        if len(data) > self._bound // 4:
            return
        path = self._path(name)
        with contextlib.suppress(DiskError):
            self._disk.make_dir(path.parent)
            self._disk.write_cache(path, data)
        # Many short processes write a little each and none knows of the others: by chance, one of
        # them looks at the size each time that a 16th of the bound has been written by all.
        if random.random() * self._bound < len(data) * _LOOKS:
            self._shrink()

    def drop(self, name: str) -> None:
        """Forget what is kept under a name."""
        self._disk.remove(self._path(name))

    def keep_since(self, purged: str) -> None:
        """Forget what was kept before this purge, named by whatever is told of it; "" for none."""
        if purged and self.load(_PURGED) != purged.encode():
            self.clear()
            self.store(_PURGED, purged.encode())

    def clear(self) -> None:
        """Forget all that is kept of this store."""
        for file in self._files(self._mine):
            self._disk.remove(file.path)

    def _path(self, name: str) -> Path:
        return self._mine / name

    def _shrink(self) -> None:
        kept = sorted(self._files(self._all))
        size = sum(file.size for file in kept)
        if size <= self._bound:
            return
        for file in kept:
            if size <= self._bound * 9 // 10:
                return
            self._disk.remove(file.path)
            size -= file.size

    def _files(self, below: Path) -> Iterator[_Kept]:
        for folder, _, names in os.walk(below):
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    found = path.stat()
                    yield _Kept(found.st_mtime, found.st_size, path)
