"""The one door to durable writes: every write, sync, rename, truncation and lock goes through here.

Two reasons. A test can hand the engines another ``Disk`` and crash, fill or fail it at every call;
and what "durable" means on a platform is decided in one place: ``fdatasync`` on Linux,
``F_FULLFSYNC`` on macOS, where ``fsync`` only reaches the drive's cache.

Contracts
    A method that raises ``DiskError`` has had no effect that a reader of finished work can see,
    except ``write_at`` (the caller cuts the file back) and ``sync`` (see there).
    Directories are made 0700 and files 0600, whatever the umask.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from snapstore.errors import DiskError, Locked, SnapstoreError
from snapstore.plainfile import open_plain

try:
    import fcntl
except ImportError:  # on Windows a store can be read and not locked
    fcntl = None  # type: ignore[assignment]

TEMP_SUFFIX = ".tmp"
"""What a file is called until it is whole. Leftovers are removed by the next writer."""

NETWORK_FILESYSTEMS = (
    "nfs", "cifs", "smb", "fuse", "9p", "afs", "ncp", "lustre", "ceph", "gluster",
)  # fmt: skip
"""Prefixes of file system types whose locks and syncs are promises of somebody else."""


class Disk:
    """The real disk. Tests derive from it to simulate crashes and failures."""

    # --- appending to a log -----------------------------------------------------------------------

    def open(self, path: Path, *, writable: bool) -> int:
        """A descriptor of an existing file. The caller closes it with ``os.close``. Raises Corrupt
        for what is no plain file."""
        try:
            return open_plain(path, writable=writable)
        except OSError as error:
            raise _refused(f"opening {path}", error) from error

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        """Write all of data at offset; on any failure the caller must cut the file back."""
        done = 0
        try:
            while done < len(data):
                n = os.pwrite(fd, memoryview(data)[done:] if done else data, offset + done)
                if n == 0:
                    raise OSError(errno.EIO, "the disk took no bytes")
                done += n
        except OSError as error:
            raise _refused("writing", error) from error

    def sync(self, fd: int) -> None:
        """Make what was written durable. A failure is final: the kernel may have dropped the pages,
        so a second try that succeeds proves nothing and must not be made on this descriptor."""
        try:
            if sys.platform == "darwin":
                fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            else:
                os.fdatasync(fd)
        except OSError as error:
            raise _refused("syncing", error) from error

    def truncate(self, fd: int, length: int) -> None:
        """Cut the file to length; the cut itself is durable after the next sync."""
        try:
            os.ftruncate(fd, length)
        except OSError as error:
            raise _refused("truncating", error) from error

    # --- whole files and directories --------------------------------------------------------------

    def make_dir(self, path: Path) -> None:
        """Make a directory, and its missing parents, 0700; durable in its parent."""
        if path.is_dir():
            return
        if not path.parent.is_dir():
            self.make_dir(path.parent)
        try:
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
                path.chmod(0o700)
        except OSError as error:
            raise _refused(f"making the directory {path}", error) from error
        self.sync_dir(path.parent)

    def create(self, path: Path) -> int:
        """A descriptor of a new file, 0600, that is written bit by bit and synced by the caller.
        One that is there already is emptied."""
        return self._create(path)

    def write_file(self, path: Path, data: bytes) -> None:
        """Put a whole file in place, durably: temporary name, sync, rename, sync of the directory.

        Afterwards the file has either its old or its new content, after a crash too.
        """
        self.write_pieces(path, (data,))

    def write_pieces(self, path: Path, pieces: Iterable[bytes]) -> None:
        """As write_file, for what comes piece by piece; nothing is left of it when that raises."""
        temp = path.with_name(path.name + TEMP_SUFFIX)
        fd = self._create(temp)
        try:
            try:
                at = 0
                for piece in pieces:
                    self.write_at(fd, piece, at)
                    at += len(piece)
                self.sync(fd)
            finally:
                os.close(fd)
            self.rename(temp, path)
        except SnapstoreError:
            self.remove(temp)
            raise
        self.sync_dir(path.parent)

    def write_cache(self, path: Path, data: bytes) -> bool:
        """Put a throw-away file in place without waiting for the disk; False where that fails."""
        temp = path.with_name(f"{path.name}.{os.getpid()}{TEMP_SUFFIX}")
        try:
            fd = self._create(temp)
            try:
                self.write_at(fd, data, 0)
            finally:
                os.close(fd)
            self.rename(temp, path)
        except (DiskError, OSError):
            self.remove(temp)
            return False
        return True

    def mark_used(self, path: Path) -> None:
        """Let a file of a cache say that it was used now; it may be gone."""
        with contextlib.suppress(OSError):
            os.utime(path)

    def rename(self, old: Path, new: Path) -> None:
        """Rename within one file system, replacing what was there."""
        try:
            old.replace(new)
        except OSError as error:
            raise _refused(f"renaming {old}", error) from error

    def remove(self, path: Path) -> None:
        """Remove a file that may not be there."""
        with contextlib.suppress(OSError):
            path.unlink()

    def free(self, path: Path) -> int:
        """Bytes that can still be written on the file system of a path."""
        return shutil.disk_usage(path).free

    def sync_dir(self, path: Path) -> None:
        """Make the names in a directory durable."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise _refused(f"syncing the directory {path}", error) from error

    def _create(self, path: Path) -> int:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            os.fchmod(fd, 0o600)
        except OSError as error:
            raise _refused(f"creating {path}", error) from error
        return fd

    # --- below an open directory ------------------------------------------------------------------
    #
    # For files that are not the store's own. A name is looked up in a directory that is held open,
    # and a symbolic link is never followed, so nothing outside that directory can be reached.

    def create_at(self, folder: int, name: bytes) -> int:
        """A descriptor of a new file, 0600. An existing name is an error (EEXIST)."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(name, flags, 0o600, dir_fd=folder)
        except OSError as error:
            raise _refused(f"creating {os.fsdecode(name)}", error) from error

    def append(self, fd: int, data: bytes) -> None:
        """Write all of data where the last write to this new file ended."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(fd, view) :]
        except OSError as error:
            raise _refused("writing", error) from error

    def open_stream(self, path: Path) -> int:
        """A descriptor to append to what is no plain file: a pipe, a terminal, a device."""
        try:
            return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise _refused(f"opening {path}", error) from error

    def set_owner(self, fd: int, user: int, group: int) -> None:
        """Give an open file to a user and group, as far as that is allowed."""
        with contextlib.suppress(OSError):
            os.fchown(fd, user, group)

    def symlink_at(self, target: bytes, folder: int, name: bytes) -> None:
        """Make a symbolic link. An existing name is an error."""
        try:
            os.symlink(target, name, dir_fd=folder)
        except OSError as error:
            raise _refused(f"linking {os.fsdecode(name)}", error) from error

    def make_dir_at(self, folder: int, name: bytes) -> None:
        """Make a directory, 0700. An existing name is an error."""
        try:
            os.mkdir(name, 0o700, dir_fd=folder)
        except OSError as error:
            raise _refused(f"making the directory {os.fsdecode(name)}", error) from error

    def remove_dir_at(self, folder: int, name: bytes) -> None:
        """Remove an empty directory; one that is not empty is an error (ENOTEMPTY)."""
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            raise _refused(f"removing the directory {os.fsdecode(name)}", error) from error

    def remove_at(self, folder: int, name: bytes) -> None:
        """Remove anything but a directory."""
        try:
            os.unlink(name, dir_fd=folder)
        except OSError as error:
            raise _refused(f"removing {os.fsdecode(name)}", error) from error

    def rename_at(self, folder: int, name: bytes, new_folder: int, new_name: bytes) -> None:
        """Move a name to another directory of the same file system, replacing what was there."""
        try:
            os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)
        except OSError as error:
            raise _refused(f"moving {os.fsdecode(name)}", error) from error

    def link_at(self, folder: int, name: bytes, new_folder: int, new_name: bytes) -> None:
        """Give a file or link a second name. One that is taken is an error (EEXIST)."""
        try:
            os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder, follow_symlinks=False)
        except OSError as error:
            raise _refused(f"putting {os.fsdecode(new_name)} in place", error) from error

    def set_mode(self, fd: int, mode: int) -> None:
        """Set the permission bits of an open file."""
        try:
            os.fchmod(fd, mode)
        except OSError as error:
            raise _refused("setting a mode", error) from error

    def set_dir_mode_at(self, folder: int, name: bytes, mode: int) -> None:
        """Set the permission bits of a directory, one that its owner may not open, too."""
        try:
            # A directory without a bit for its owner can only be opened as a path, and such a
            # descriptor only be changed by the name that /proc gives it.
            by_path = getattr(os, "O_PATH", None)
            how = os.O_RDONLY if by_path is None else by_path
            flags = how | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(name, flags, dir_fd=folder)
            try:
                if by_path is None:
                    os.fchmod(fd, mode)
                else:
                    Path(f"/proc/self/fd/{fd}").chmod(mode)
            finally:
                os.close(fd)
        except OSError as error:
            raise _refused(f"setting the mode of {os.fsdecode(name)}", error) from error

    def set_times(self, fd: int, mtime: int) -> None:
        """Set the times of an open file, in nanoseconds since the epoch."""
        try:
            os.utime(fd, ns=(mtime, mtime))
        except OSError as error:
            raise _refused("setting the time of a file", error) from error

    def set_link_times_at(self, folder: int, name: bytes, mtime: int) -> None:
        """Set the times of a symbolic link itself, in nanoseconds since the epoch."""
        try:
            os.utime(name, ns=(mtime, mtime), dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise _refused(f"setting the time of {os.fsdecode(name)}", error) from error

    def sync_all(self) -> None:
        """Make everything durable that any file system has taken: for very many files at once."""
        os.sync()

    # --- locks ------------------------------------------------------------------------------------

    def open_lock(self, path: Path) -> int:
        """A descriptor to lock. The file is made if missing, and never written or removed."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if os.fstat(fd).st_mode & 0o777 != 0o600:
                os.fchmod(fd, 0o600)
        except OSError as error:
            raise _refused(f"opening {path}", error) from error
        return fd

    def lock(self, fd: int, *, timeout: float) -> None:
        """Take the exclusive lock of an open file; the kernel frees it when its holder dies.

        A writer holds it for one save, well under a millisecond, so polling in small steps hands
        it over sooner than a sleep of the scheduler's choosing would.
        """
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._wait_for_lock(fd, timeout)

    def _wait_for_lock(self, fd: int, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        pause = 0.00005
        while not _try_lock(fd):
            if time.monotonic() > deadline:
                raise Locked(f"the store has been locked by another process for {timeout:.0f} s")
            time.sleep(pause)
            pause = min(pause * 1.2, 0.005)

    def try_lock(self, fd: int) -> bool:
        """Take the exclusive lock of an open file if nobody holds it; whether it was taken."""
        return _try_lock(fd)

    def unlocker(self, fd: int) -> Callable[[], object]:
        """What gives the lock of an open file back when it is called.

        It is no function in Python: at the beginning of one Ctrl-C could come, and the lock stay.
        """
        return functools.partial(fcntl.flock, fd, fcntl.LOCK_UN)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise _refused("locking the store", error) from error
    return True


def _refused(doing: str, error: OSError) -> DiskError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    return DiskError(f"{doing} failed: {reason}", error.errno)


def network_filesystem(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """The type of the network file system that path lies on, or None for a local disk.

    Locks and syncs there are kept by another machine or a user process, if at all. Where the
    mount table cannot be read (not Linux), the answer is None.
    """
    best, kind = "", ""
    for point, fs in _mounts(mounts):
        inside = path == Path(point) or Path(point) in path.parents
        if inside and len(point) >= len(best):
            best, kind = point, fs
    return kind if kind.startswith(NETWORK_FILESYSTEMS) else None


_OCTAL = re.compile(r"\\([0-7]{3})")


def _mounts(table: Path) -> Iterator[tuple[str, str]]:
    try:
        text = table.read_text(errors="surrogateescape")
    except OSError:
        return
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) >= 3:
            yield _OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[1]), fields[2]


DISK = Disk()
"""The disk that engines use unless a test hands them another."""
