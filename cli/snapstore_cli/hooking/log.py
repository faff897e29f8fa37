"""The log of what hooks did: nobody looks at the output of a command that a harness runs."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

MOST = 256 << 10
"""Bytes of a log that is full; of these the last quarter is kept."""


def write(path: Path, text: str) -> None:
    """Add an entry; a log that cannot be written is no reason to fail."""
    line = " ".join(text.split())[:2000]
    entry = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}\n".encode("utf-8", "backslashreplace")
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(fd).st_size
            if size > MOST:
                rest = os.pread(fd, MOST // 4, size - MOST // 4).partition(b"\n")[2]
                os.ftruncate(fd, 0)
                os.write(fd, rest)
            os.write(fd, entry)
        finally:
            os.close(fd)
