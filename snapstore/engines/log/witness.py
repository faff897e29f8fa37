"""What cache/ bears witness to: how far the log was durable, and where damage was met.

    cache/checked   how the active segment was when a writer last left it: whole, and durable to its
                    end. One line of numbers: the segment's, then inode, size, times in nanoseconds
                    (mtime, ctime) of its file, and the inode of log/
    cache/damage    a line for each place where damage was met: number of the segment, offset

Without them less is noticed, and nothing is lost. Neither is taken at its word: a place where
damage was met is looked at again by every process that opens the store, so what was mended counts
no more. And that the log once reached further counts only in the directory that it was seen in: a
copy made while somebody saved may have an older log beside a newer cache/, and lacks nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from snapstore.disk import Disk
from snapstore.engines.log.layout import Layout
from snapstore.engines.log.segment import Segment
from snapstore.errors import Corrupt
from snapstore.plainfile import read_plain

_MOST = 64
"""Places of damage that are remembered: one is enough to refuse a save."""


class Durable(NamedTuple):
    """How far a segment was known to be durable."""

    number: int
    end: int


class Witness:
    """Reads and writes what is remembered of the log. Every failure here only means less of it."""

    def __init__(self, layout: Layout, disk: Disk) -> None:
        self._layout = layout
        self._disk = disk

    # --- how far the log was durable --------------------------------------------------------------

    def note_checked(self, segment: Segment) -> None:
        """Remember that the active segment, as the file is now, is whole and durable to its end."""
        seen = os.fstat(segment.fd)  # once: others may write at any moment
        if segment.end == segment.durable_end == seen.st_size:
            self._write(self._layout.checked, self._stamp(segment.number, seen))

    def was_checked(self, segment: Segment) -> bool:
        """Whether nothing has touched the active segment since a process made sure of it."""
        return self._read_checked() == self._stamp(segment.number, os.fstat(segment.fd))

    def durable(self) -> Durable | None:
        """How far the log of this directory was durable, as far as anybody has noted."""
        fields = _numbers(self._read_checked())
        if len(fields) != 6 or fields[-1] != self._folder():
            return None
        number, _, size, *_ = fields
        return Durable(number, size)

    def _read_checked(self) -> bytes:
        return _read(self._layout.checked)

    def _stamp(self, number: int, seen: os.stat_result) -> bytes:
        """A file's identity, size and times: whatever writes to it changes the last of them."""
        facts = (number, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        return " ".join(map(str, (*facts, self._folder()))).encode()

    def _folder(self) -> int:
        try:
            return self._layout.segment(0).parent.stat().st_ino
        except OSError:
            return 0

    # --- where damage was met ---------------------------------------------------------------------

    def note_damage(self, number: int, offset: int) -> None:
        """Remember a place in a segment at which a batch should stand and does not verify."""
        known = self.damage()
        if (number, offset) not in known and len(known) < _MOST:
            lines = (f"{n} {at}\n" for n, at in (*known, (number, offset)))
            self._write(self._layout.known_damage, "".join(lines).encode())

    def damage(self) -> list[tuple[int, int]]:
        """The places that are remembered: (number of the segment, offset)."""
        places = map(_numbers, _read(self._layout.known_damage).splitlines()[:_MOST])
        return [(place[0], place[1]) for place in places if len(place) == 2]

    def forget_damage(self) -> None:
        """What was remembered is mended."""
        self._disk.remove(self._layout.known_damage)

    def forget(self) -> None:
        """The log begins anew, and what was known of it counts no more."""
        self._disk.remove(self._layout.checked)
        self.forget_damage()

    def _write(self, path: Path, data: bytes) -> None:
        self._layout.remake_cache(self._disk)
        self._disk.write_cache(path, data)


def _read(path: Path) -> bytes:
    try:
        return read_plain(path)
    except (OSError, Corrupt):
        return b""


def _numbers(line: bytes) -> list[int]:
    """The numbers of a line; none when it is no line of ours."""
    fields = line.split()
    if not all(field.isdigit() and len(field) < 20 for field in fields):
        return []
    return [int(field) for field in fields]
