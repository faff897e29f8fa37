"""What a store keeps on this machine for the directories that it captures.

    cache/files-KEY        stat cache of a directory: safe to delete at any time
    restore/KEY.lock       flock target, taken by whoever captures or restores the directory
    restore/KEY.journal    a restore that is at work, or was interrupted (see journal)

KEY is the start of the hash of the directory's path.

Of a store that is not a directory of this machine the same is kept among the user's state, in a
directory for each address, and beside it

    current                the session that @ stands for, by this user on this machine

A store that has neither keeps none of this: its captures read everything once more in each process,
and a restore that is killed is not taken up again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from snapstore.disk import DISK, Disk
from snapstore.errors import DiskError
from snapstore.ids import object_id
from snapstore.worktree.interrupted import Interrupted

LOCK_TIMEOUT = 600.0
"""Seconds that a capture waits for a restore of the same directory by another process."""


@dataclass(frozen=True, slots=True)
class Local:
    """The directory of a local store, or what stands for it, and the disk to write it with."""

    root: Path
    disk: Disk = DISK
    durable: bool = True
    settled: list[Interrupted] = field(default_factory=list, compare=False)
    """Restores that had been cut off, and were finished or taken back since this was opened."""

    @classmethod
    def beside(cls, url: str, state: str | Path | bool) -> Local | None:
        """What this machine keeps of the store at an address, in a directory, True for one among
        the user's state; None for False, and where a user has no place for state."""
        if not state:
            return None
        if state is True:
            import platformdirs

            state = platformdirs.user_state_path("snapstore", appauthor=False) / "stores"
            there = next(folder for folder in (state, *state.parents) if folder.exists())
            if not os.access(there, os.W_OK):
                return None
        return cls(Path(state) / _key(url.rstrip("/").encode("utf-8", "surrogatepass")))

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the store's directory; None while there is none."""
        try:
            info = self.root.stat()
        except OSError:
            return None
        return info.st_dev, info.st_ino

    def stat_cache(self, worktree: bytes) -> Path:
        """The file of a directory's stat cache."""
        return self.root / "cache" / f"files-{_key(worktree)}"

    def journal(self, worktree: bytes) -> Path:
        """The file of a directory's journal."""
        return self.root / "restore" / f"{_key(worktree)}.journal"

    def journals(self) -> list[Path]:
        """The journals of all directories."""
        return sorted((self.root / "restore").glob("*.journal"))

    def is_locked(self, journal: Path) -> bool:
        """Whether a process works on the directory of a journal now."""
        lock = journal.with_suffix(".lock")
        if not lock.exists():
            return False
        try:
            fd = self.disk.open_lock(lock)
        except DiskError:  # a store that may only be read: nobody here can be at work on it
            return False
        try:
            return not self.disk.try_lock(fd)
        finally:
            os.close(fd)

    def has_locked(self, worktree: bytes) -> bool:
        """Whether a directory was ever captured or restored while this store was there."""
        return self._lock(worktree).exists()

    def _lock(self, worktree: bytes) -> Path:
        return self.root / "restore" / f"{_key(worktree)}.lock"

    @contextlib.contextmanager
    def locked(self, worktree: bytes) -> Iterator[None]:
        """Keep other processes from capturing or restoring this directory. Raises Locked."""
        path = self._lock(worktree)
        self.disk.make_dir(path.parent)
        fd = self.disk.open_lock(path)
        try:
            self.disk.lock(fd, timeout=LOCK_TIMEOUT)
            yield
        finally:
            os.close(fd)


def _key(name: bytes) -> str:
    return object_id(name).hex()[:32]
