"""Leases: one runner at a time for each task, in whatever process.

A lease must die with its holder: a process that was killed holds nothing. For a store in a
directory the kernel sees to that: a lease is a ``flock`` on a file, and an open file dies with its
process. Beside the lock lies who took it, for people to read; nothing is ever decided by it. For a
store that several machines use see ``hostlease``.

    leases/KEY.lock      flock target: never written, never removed
    leases/KEY.holder    JSON: task, pid, host, since (microseconds since the epoch)

KEY is the start of the hash of the task's name.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from snapstore.disk import DISK, Disk
from snapstore.engine import Engine
from snapstore.errors import Corrupt, DiskError
from snapstore.ids import object_id
from snapstore.plainfile import read_plain
from snapstore.times import moment


@dataclass(frozen=True, slots=True)
class Holder:
    """Who runs a task."""

    pid: int
    host: str
    since: int
    """Microseconds since the epoch, UTC."""
    until: int | None = None
    """When its lease runs out unless it is renewed, by its own clock; None: with its process."""

    def __str__(self) -> str:
        since = moment(self.since)
        text = f"process {self.pid} on {self.host}, since {since:%Y-%m-%d %H:%M:%S} UTC"
        if self.until is None:
            return text
        return f"{text}, until {moment(self.until):%H:%M:%S} UTC unless it goes on"

    @classmethod
    def here(cls) -> Holder:
        """This process, from now on."""
        return cls(os.getpid(), socket.gethostname(), time.time_ns() // 1000)


class Lease(Protocol):
    """The right to run a task, until it is given back or its holder dies."""

    number: int
    """Higher than that of all who held it before, where one who lives can lose it: what such a one
    records then is told by its number and refused. 0 where that cannot be."""
    taken_over: bool
    """Whether the last holder never gave it back, and may think that it still has it."""

    def release(self) -> None:
        """Give it back."""


class Leases(Protocol):
    """Where the leases of a store's tasks are kept."""

    pause: float
    """Seconds to wait before asking again for one that somebody else has."""

    def take(self, task: str) -> Lease | None:
        """The lease of a task; None while somebody else, in this process or another, has it."""

    def holder(self, task: str) -> Holder | None:
        """Who holds the lease of a task; None when nobody does."""


# --- within this process -------------------------------------------------------------------------


class LocalLeases:
    """Leases of a store that only this process can see."""

    pause = 0.05

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        # A lease that Ctrl-C kept from reaching its taker is held by nobody.
        self._held: weakref.WeakValueDictionary[str, _LocalLease] = weakref.WeakValueDictionary()

    def take(self, task: str) -> Lease | None:
        """See ``Leases.take``."""
        lease = _LocalLease(self, task)
        with self._mutex:
            return lease if self._held.setdefault(task, lease) is lease else None

    def holder(self, task: str) -> Holder | None:
        """See ``Leases.holder``."""
        lease = self._held.get(task)
        return lease.holder if lease is not None else None

    def give_back(self, task: str) -> None:
        """Nobody holds the lease of this task any more."""
        with self._mutex:
            self._held.pop(task, None)


class _LocalLease:
    number = 0
    taken_over = False

    def __init__(self, leases: LocalLeases, task: str) -> None:
        self.holder = Holder.here()
        self._leases = leases
        self._task = task

    def release(self) -> None:
        self._leases.give_back(self._task)


_in_process: weakref.WeakKeyDictionary[Engine, LocalLeases] = weakref.WeakKeyDictionary()


def leases_of(engine: Engine) -> Leases:
    """The leases of a store that has no directory on this machine."""
    from snapstore.tasks.hostlease import HostLeases, Shared

    if isinstance(engine, Shared):
        return HostLeases(engine)
    return _in_process.setdefault(engine, LocalLeases())


# --- between processes of one machine ------------------------------------------------------------


class FileLeases:
    """Leases as locked files in a directory."""

    pause = 0.05

    def __init__(self, folder: Path, disk: Disk = DISK) -> None:
        self._folder = folder
        self._disk = disk

    def take(self, task: str) -> Lease | None:
        """See ``Leases.take``."""
        lock, note = self._files(task)
        self._disk.make_dir(self._folder)
        fd = self._disk.open_lock(lock)
        lease = None
        try:
            if self._disk.try_lock(fd):
                held = {"task": task, **asdict(Holder.here())}
                self._disk.write_cache(note, json.dumps(held).encode())
                lease = _FileLease(self._disk, fd, note)
        finally:  # nobody would give back what Ctrl-C kept from being returned
            if lease is None:
                os.close(fd)
        return lease

    def holder(self, task: str) -> Holder | None:
        """See ``Leases.holder``."""
        lock, note = self._files(task)
        found = _read(note)
        if found is None:
            return None
        try:
            fd = self._disk.open_lock(lock)
        except DiskError:  # a store that may only be read: the note is all there is to go by
            return found
        try:
            # One that was killed left its note behind, but not its lock.
            return None if self._disk.try_lock(fd) else found
        finally:
            os.close(fd)

    def _files(self, task: str) -> tuple[Path, Path]:
        key = object_id(task.encode("utf-8", "surrogatepass")).hex()[:32]
        return self._folder / f"{key}.lock", self._folder / f"{key}.holder"


def _read(note: Path) -> Holder | None:
    try:
        told = json.loads(read_plain(note))
        return Holder(int(told["pid"]), str(told["host"]), int(told["since"]))
    except (OSError, Corrupt, ValueError, KeyError, TypeError):
        return None


class _FileLease:
    """A locked file. A forked child lets go of it, for it would keep the lock alive."""

    number = 0
    taken_over = False

    def __init__(self, disk: Disk, fd: int, note: Path) -> None:
        self._disk = disk
        self._fd = fd
        self._note = note
        _FORKABLE.add(self)

    def release(self) -> None:
        self._disk.remove(self._note)
        self.close()

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


_FORKABLE: weakref.WeakSet[_FileLease] = weakref.WeakSet()


def _let_go() -> None:
    for lease in list(_FORKABLE):
        lease.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
