"""Opening what should be a plain file, where somebody may have put something else.

Opening a FIFO waits for a writer that never comes, and reading a device may never end.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from snapstore.errors import Corrupt, DiskError

_PIECE = 1 << 20


def open_plain(path: Path, *, writable: bool = False) -> int:
    """A descriptor of an existing file. Raises Corrupt for what is no plain file, DiskError for one
    that this user may not open, else OSError."""
    flags = os.O_RDWR if writable else os.O_RDONLY
    for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):  # each where it is known
        flags |= getattr(os, name, 0)
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.EISDIR, errno.ENXIO):
            raise _no_file(path) from error
        if isinstance(error, PermissionError):
            raise DiskError(f"opening {path} failed: {error.strerror}", error.errno) from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _no_file(path)
    return fd


def read_plain(path: Path) -> bytes:
    """The content of a file. Raises as open_plain."""
    fd = open_plain(path)
    try:
        pieces = []
        while piece := os.read(fd, _PIECE):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def _no_file(path: Path) -> Corrupt:
    error = Corrupt("there should be a file, and there is something else", path=str(path))
    error.hint = "see what it is with `ls -l`, and put the file back in its place"
    return error
