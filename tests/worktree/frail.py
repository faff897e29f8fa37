"""Disks that nobody waits for, that die with their process at a certain call, or that are full."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from snapstore.disk import Disk
from snapstore.errors import DiskError

WRITES = (
    "create_at", "append", "symlink_at", "make_dir_at", "remove_dir_at", "remove_at", "rename_at",
    "link_at", "set_mode", "set_dir_mode_at", "set_times", "set_link_times_at",
    "write_file", "write_at", "rename", "remove", "make_dir",
)  # fmt: skip
"""The calls that change something."""

NEED_SPACE = ("create_at", "append", "symlink_at", "make_dir_at", "link_at", "rename_at",
              "write_file", "write_at")  # fmt: skip


class QuickDisk(Disk):
    """The real disk, but nobody waits for it: what is crashed here is the process."""

    def sync(self, fd: int) -> None:
        """Nothing."""

    def sync_dir(self, path: Path) -> None:
        """Nothing."""

    def sync_all(self) -> None:
        """Nothing."""


class Died(BaseException):
    """The process was killed. No handler of errors sees it."""


class DyingDisk(QuickDisk):
    """Dies at call number ``at`` of those that write; after that nothing reaches the disk."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.calls = 0


class FullDisk(QuickDisk):
    """Refuses call number ``at`` of those that need space, and takes the others."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.calls = 0


class UncertainDisk(QuickDisk):
    """Once armed, fails the sync of the log; what was written to it is there after, or is not."""

    def __init__(self, written: bool) -> None:
        self.armed = False
        self._written = written
        self._last = (-1, 0)

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        """Write, and remember where."""
        if offset:  # other files are written whole, from their beginning
            self._last = (fd, offset)
        super().write_at(fd, data, offset)

    def sync(self, fd: int) -> None:
        """Fail, if it is the log that was written to."""
        if self.armed and fd == self._last[0]:
            if not self._written:
                os.ftruncate(fd, self._last[1])
            raise DiskError("syncing failed", errno.EIO)


def _dies(name: str) -> Callable[..., Any]:
    real = getattr(Disk, name)

    @functools.wraps(real)
    def call(self: DyingDisk, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.at is not None and self.calls > self.at:
            raise Died(name)
        return real(self, *args, **kwargs)

    return call


def _is_full(name: str) -> Callable[..., Any]:
    real = getattr(Disk, name)

    @functools.wraps(real)
    def call(self: FullDisk, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == self.at:
            raise DiskError(f"{name} failed: no space left", errno.ENOSPC)
        return real(self, *args, **kwargs)

    return call


for _name in WRITES:
    setattr(DyingDisk, _name, _dies(_name))
for _name in NEED_SPACE:
    setattr(FullDisk, _name, _is_full(_name))
