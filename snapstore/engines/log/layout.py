"""The files of a local store, and the two small ones that say what it is made of.

    FORMAT        one line, ``snapstore 1 blake3``; written last when a store is made, then never
    LOCK          flock target: never unlinked, never written
    MANIFEST      JSON: generation, segments (numbers, oldest first), check (BLAKE3 of the rest)
    log/N.seg     segments; the last one named is active
    log/N.idx     the index of a sealed segment
    torn/         tails cut off after a crash
    trash/        segments that a collection replaced, removed after a grace time
    damaged/      segments that repair replaced, kept until somebody removes them
    COLLECT       flock target of whoever rewrites segments, one at a time
    cache/        indexes of the active segment, what is known of it (see witness), stat caches:
                  safe to delete at any time
    restore/      locks and journals of the directories that are captured (see worktree.local)

A store exists when FORMAT does. MANIFEST is replaced whole (temporary file, sync, rename, sync of
the directory), so one that does not verify was damaged later.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from snapstore.disk import TEMP_SUFFIX, Disk
from snapstore.engines.log.batch import Header
from snapstore.errors import Corrupt, DiskError, Refused, UnsupportedFormat
from snapstore.plainfile import read_plain

FORMAT_LINE = b"snapstore 1 blake3\n"
_OURS = {
    "FORMAT", "LOCK", "COLLECT", "MANIFEST", "log", "torn", "trash", "damaged", "cache", "restore",
    "leases",
}  # fmt: skip
_MOST = 10**8
UNFINISHED = ".new"
"""What a segment is called that is being written anew, until the manifest is to name it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files of the store at root are."""

    root: Path

    @property
    def format(self) -> Path:
        return self.root / "FORMAT"

    @property
    def lock(self) -> Path:
        return self.root / "LOCK"

    @property
    def manifest(self) -> Path:
        return self.root / "MANIFEST"

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def checked(self) -> Path:
        return self.root / "cache" / "checked"

    @property
    def known_damage(self) -> Path:
        return self.root / "cache" / "damage"

    @property
    def torn(self) -> Path:
        return self.root / "torn"

    @property
    def trash(self) -> Path:
        return self.root / "trash"

    @property
    def damaged(self) -> Path:
        return self.root / "damaged"

    @property
    def collect(self) -> Path:
        return self.root / "COLLECT"

    def segment(self, number: int) -> Path:
        """The file of a segment."""
        return self.root / "log" / f"{number:08d}.seg"

    def index(self, number: int) -> Path:
        """The file of a sealed segment's index."""
        return self.segment(number).with_suffix(".idx")

    def unfinished(self, number: int) -> Path:
        """What the file of a segment is called before it is one of the store's."""
        path = self.segment(number)
        return path.with_name(path.name + UNFINISHED)

    def unfinished_index(self, number: int) -> Path:
        """What the index of such a segment is called."""
        path = self.index(number)
        return path.with_name(path.name + UNFINISHED)

    def segments_on_disk(self) -> tuple[int, ...]:
        """The numbers of the segment files that are there, oldest first."""
        names = (path.stem for path in (self.root / "log").glob("*.seg"))
        return tuple(sorted(int(name) for name in names if name.isascii() and name.isdecimal()))

    def leftovers(self) -> list[Path]:
        """Files that a writer was killed before giving their names to, as seen with the lock held.

        In cache/ another process may be writing one right now. It loses an index, which is no loss.
        """
        folders = (self.root, self.root / "log", self.torn, self.cache)
        return [path for folder in folders for path in folder.glob(f"*{TEMP_SUFFIX}")]

    def bytes_on_disk(self) -> int:
        """Bytes of the segments."""
        return sum(path.stat().st_size for path in (self.root / "log").glob("*.seg"))

    def exists(self) -> bool:
        """Whether there is a store.

        Raises UnsupportedFormat for one of another format, and Corrupt for one that has lost its
        FORMAT: taken for a directory with no store in it, it would be written over.
        """
        line = self._format_line()
        if line is None:
            if not self._holds_turns():
                return False
            # Turns come after FORMAT: another process may have made the store between the looks.
            line = self._format_line()
        if line is None:
            lost = Corrupt("FORMAT is missing, beside segments with turns", path=str(self.format))
            hint = f"put the line {FORMAT_LINE.decode().strip()!r} back into it"
            lost.hint = f"{hint}, then run `snapstore verify`"
            raise lost
        if line != FORMAT_LINE:
            shown = line[:60].decode("ascii", "replace").strip()
            raise UnsupportedFormat(f"{self.format} says {shown!r}, which this version cannot read")
        return True

    def _format_line(self) -> bytes | None:
        try:
            return read_plain(self.format)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _holds_turns(self) -> bool:
        """Whether there are segments with more in them than the making of a store puts there."""
        numbers = self.segments_on_disk()
        if numbers != (1,):
            return bool(numbers)
        data = read_plain(self.segment(1))
        try:
            return bool(len(data) > Header(data, (str(self.segment(1)), 0)).size)
        except (Corrupt, UnsupportedFormat):
            return bool(data)

    def prepare(self, disk: Disk) -> None:
        """Make the directories of a new store. Raises Refused in a directory of something else."""
        # In this order: another process may be making the directory right now.
        if self.root.exists() and not self.root.is_dir():
            raise Refused(f"{self.root} is a file, not a store", hint="name a directory")
        if self.root.is_dir():
            foreign = sorted(p.name for p in self.root.iterdir() if not _is_ours(p.name))
            if foreign:
                raise Refused(
                    f"{self.root} is no store and holds other things ({', '.join(foreign[:3])})",
                    hint="name an empty or a new directory; `snapstore init DIR` makes one in DIR",
                )
        for path in (self.root, self.root / "log", self.cache):
            disk.make_dir(path)
        # One who was killed while making these may not have come to syncing their names.
        for path in (self.root.parent, self.root):
            disk.sync_dir(path)

    def remake_cache(self, disk: Disk) -> None:
        """Make cache/ again, which anybody may remove at any time, where that can be done."""
        if not self.cache.is_dir() and self.root.is_dir():
            with contextlib.suppress(DiskError):
                disk.make_dir(self.cache)


def _is_ours(name: str) -> bool:
    return name.removesuffix(TEMP_SUFFIX) in _OURS


@dataclass(frozen=True, slots=True)
class Manifest:
    """Which segments make up the store."""

    generation: int
    segments: tuple[int, ...]

    def encode(self) -> bytes:
        """The bytes of the file."""
        body = {"generation": self.generation, "segments": list(self.segments)}
        return json.dumps(body | {"check": _check(body)}).encode() + b"\n"

    def makes_sense(self) -> bool:
        """Whether it names segments, each once, by what can be their numbers."""
        numbers = self.segments
        is_of_numbers = all(type(n) is int and 0 < n < _MOST for n in numbers)
        is_named_once = bool(numbers) and is_of_numbers and len(set(numbers)) == len(numbers)
        return is_named_once and type(self.generation) is int

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """What the file says. Raises Corrupt."""
        try:
            body = json.loads(read_plain(path))
            check = body.pop("check")
            read = cls(body["generation"], tuple(body["segments"]))
            if check == _check(body) and read.makes_sense():
                return read
        except FileNotFoundError as error:
            raise Corrupt("the manifest is missing", path=str(path)) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        raise Corrupt("the manifest does not verify", path=str(path), offset=0)


def _check(body: object) -> str:
    return blake3(json.dumps(body, sort_keys=True).encode()).hexdigest()
