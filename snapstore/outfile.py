"""Files that are not the store's own, written where somebody asked for them: whole, or not at all.

What stands there decides how:

    a plain file     is replaced in one step by a temporary file beside it; its mode stays, and its
                     owner where that is allowed
    a symbolic link  stays; what it leads to is written
    anything else    a pipe, a terminal, a device: is written into

The temporary file gets a name that nobody had, and is gone afterwards, also when writing failed or
was interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from snapstore.disk import DISK, TEMP_SUFFIX, Disk
from snapstore.errors import DiskError

NEW = 0o600
"""The mode of a file that was not there before."""


def put(path: Path, pieces: Iterable[bytes], *, mode: int = NEW, disk: Disk = DISK) -> int:
    """Write a file, durably; the number of bytes. A file that was not there gets this mode.

    Raises DiskError, BrokenPipeError when nobody reads a pipe any more, and whatever the pieces
    raise: a plain file is then as it was.
    """
    there = _at(path)
    place = Path(os.path.realpath(path))
    if there is not None and not (stat.S_ISREG(there.st_mode) and _is_at(place, there)):
        return _into(path, pieces, disk)
    with _beside(place, disk) as new:
        size = new.add(pieces)
        with _about(place):
            if there is not None:
                disk.set_owner(new.fd, there.st_uid, there.st_gid)
            disk.set_mode(new.fd, mode if there is None else stat.S_IMODE(there.st_mode))
            disk.sync(new.fd)
            disk.rename_at(new.folder, new.name, new.folder, os.fsencode(place.name))
    disk.sync_dir(place.parent)
    return size


def put_new(path: Path, data: bytes, disk: Disk = DISK) -> None:
    """Write a file, 0600 and durably, where nothing must be yet.

    Raises FileExistsError, which changes nothing, and DiskError.
    """
    with _beside(path, disk) as new:
        new.add((data,))
        with _about(path):
            disk.sync(new.fd)
            # Unlike a rename it replaces nothing.
            disk.link_at(new.folder, new.name, new.folder, os.fsencode(path.name))
    disk.sync_dir(path.parent)


@dataclass(frozen=True, slots=True)
class _New:
    """A file that has only its temporary name so far."""

    place: Path
    disk: Disk
    folder: int
    name: bytes
    fd: int

    def add(self, pieces: Iterable[bytes]) -> int:
        size = 0
        for piece in pieces:
            with _about(self.place):
                self.disk.append(self.fd, piece)
            size += len(piece)
        return size


@contextlib.contextmanager
def _beside(place: Path, disk: Disk) -> Iterator[_New]:
    """A new file in the directory of a place; its temporary name is gone at the end."""
    name = f".snapstore-{secrets.token_hex(8)}{TEMP_SUFFIX}".encode()
    with contextlib.ExitStack() as stack:
        with _about(place):
            folder = os.open(place.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, folder)
            fd = disk.create_at(folder, name)
        stack.callback(_remove, disk, folder, name)
        stack.callback(os.close, fd)
        yield _New(place, disk, folder, name, fd)


@contextlib.contextmanager
def _about(place: Path) -> Iterator[None]:
    """Errors speak of the file that was asked for, not of its temporary name."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        if error.errno == errno.EEXIST:
            raise FileExistsError(errno.EEXIST, reason, str(place)) from None
        raise DiskError(f"writing {place} failed: {reason}", error.errno) from error


def _remove(disk: Disk, folder: int, name: bytes) -> None:
    with contextlib.suppress(DiskError):  # renamed, it is no longer there
        disk.remove_at(folder, name)


def _into(path: Path, pieces: Iterable[bytes], disk: Disk) -> int:
    """Write into what is no plain file, or has no name any more."""
    fd = disk.open_stream(path)
    size = 0
    try:
        for piece in pieces:
            with _about(path):
                disk.append(fd, piece)
            size += len(piece)
    except DiskError as error:
        if error.errno == errno.EPIPE:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE), path) from error
        raise
    finally:
        os.close(fd)
    return size


def _at(path: Path) -> os.stat_result | None:
    """What a path leads to; None for nothing. Raises DiskError."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DiskError(f"looking at {path} failed: {error.strerror}", error.errno) from error


def _is_at(place: Path, file: os.stat_result) -> bool:
    """Whether a place is that of this file: a descriptor in /proc may be of one that is gone."""
    found = _at(place)
    return found is not None and os.path.samestat(found, file)
