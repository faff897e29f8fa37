"""Looking at the files of a local store, and doing things to them that must not happen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from snapstore.disk import Disk
from snapstore.engines.log.batch import Header
from snapstore.engines.log.layout import Layout


class QuickDisk(Disk):
    """A disk for tests in which the machine does not die: syncing would only take time."""

    def sync(self, fd: int) -> None:
        """Not needed."""

    def sync_dir(self, path: Path) -> None:
        """Not needed."""


def files(root: Path) -> dict[str, bytes]:
    """Every file outside cache/ and its content, and every directory (as b"")."""
    paths = (p for p in sorted(root.rglob("*")) if "cache" not in p.parts)
    return {str(p.relative_to(root)): b"" if p.is_dir() else p.read_bytes() for p in paths}


def segment_path(root: Path, number: int = 1) -> Path:
    """The file of a segment."""
    return Layout(root).segment(number)


def batches(path: Path) -> Iterator[tuple[int, int]]:
    """(start, end) of each batch in a segment."""
    data, start = path.read_bytes(), 0
    while start < len(data):
        end = start + Header(data[start:], (str(path), start)).size
        yield start, end
        start = end


def flip(path: Path, offset: int, mask: int = 0x40) -> None:
    """Change one byte of a file in place."""
    data = bytearray(path.read_bytes())
    data[offset] ^= mask
    put(path, bytes(data))


def unwitnessed(root: Path) -> None:
    """Let nothing tell how far the log was durable: as if its last writer had been killed."""
    Layout(root).checked.unlink(missing_ok=True)


def put(path: Path, data: bytes) -> None:
    """Give a file another content, keeping the file."""
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(data)
