"""Power loss, simulated: what a directory may look like when the machine has died at any moment.

``RecordingDisk`` works on a real directory and writes down every call that matters for
durability in a ``Journal``. ``Wreckage`` follows the journal step by step and can lay out, at any
step, a directory that a power loss at that moment may leave behind. What a file system promises:

    of a file    what was written before its last sync is there. Each later write may be absent,
                 whole, cut at any byte, or lack any of its sectors (zeros, or what was there);
                 each later truncation may have happened or not; in any combination
    of a name    creations, renames and removals before the last sync of their directory have
                 happened. Of the later ones some may have: the first few in order, or any

A process that dies takes nothing with it: what it wrote stays visible to the others, synced or
not. ``RecordingDisk.dies_after`` ends one in the middle of its work, after which the others go on.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from snapstore.disk import Disk

SECTOR = 512
FOLDER = -1
"""Stands for a directory where a name has a file's number otherwise."""


@dataclass(frozen=True, slots=True)
class Write:
    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    file: int
    length: int


@dataclass(frozen=True, slots=True)
class Sync:
    file: int


@dataclass(frozen=True, slots=True)
class Named:
    """A name appeared: a file was created, renamed from ``old``, or a directory made."""

    folder: str
    name: str
    file: int
    old: str | None = None


@dataclass(frozen=True, slots=True)
class Unnamed:
    folder: str
    name: str


@dataclass(frozen=True, slots=True)
class SyncFolder:
    folder: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Not the disk's doing: what the test has to know about this moment."""

    what: object


Step = Write | Cut | Sync | Named | Unnamed | SyncFolder | Remark


class Journal:
    """Everything that happened below one directory, by whichever process."""

    def __init__(self, base: Path) -> None:
        """What is in base now counts as durable."""
        self.base = base
        self.start = dict(_contents(base))
        self.steps: list[Step] = []
        self.files: dict[Path, int] = {}
        for number, path in enumerate(sorted(base.rglob("*"))):
            if path.is_file():
                self.files[path] = number
        self._last = len(self.start)

    def folder(self, path: Path) -> str:
        """A directory, relative to base."""
        return path.relative_to(self.base).as_posix()

    def created(self, path: Path) -> None:
        """A file was created, or emptied if it was there."""
        if path in self.files:
            self.steps.append(Cut(self.files[path], 0))
            return
        self._last += 1
        self.files[path] = self._last
        self.steps.append(Named(self.folder(path.parent), path.name, self._last))


class ProcessDied(BaseException):
    """The simulated process is no more. Not an Exception, so that nothing handles it."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What a disk only says that it does."""

    forgets_syncs: bool = False
    forgets_names: bool = False
    """The same for directories."""


NONE = Faults()


@dataclass
class RecordingDisk(Disk):
    """The disk as one process sees it."""

    journal: Journal
    dies_after: int = 1 << 62
    """The number of calls after which the process is killed, in the middle of the next one."""
    faults: Faults = NONE
    fds: dict[int, int] = field(default_factory=dict)

    def _alive(self) -> None:
        self.dies_after -= 1
        if self.dies_after < 0:
            raise ProcessDied

    def open(self, path: Path, *, writable: bool) -> int:
        fd = super().open(path, writable=writable)
        self.fds[fd] = self.journal.files[path]
        return fd

    def open_lock(self, path: Path) -> int:
        self._alive()
        if not path.exists():
            self.journal.created(path)
        fd = super().open_lock(path)
        self.fds[fd] = self.journal.files[path]
        return fd

    def unlocker(self, fd: int) -> Callable[[], object]:
        give_back = super().unlocker(fd)
        return lambda: give_back() if self.dies_after >= 0 else None

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        try:
            self._alive()
        except ProcessDied:
            if self.dies_after == -1:
                data = data[: len(data) // 2]
                super().write_at(fd, data, offset)
                self.journal.steps.append(Write(self.fds[fd], offset, data))
            raise
        super().write_at(fd, data, offset)
        self.journal.steps.append(Write(self.fds[fd], offset, data))

    def sync(self, fd: int) -> None:
        self._alive()
        if not self.faults.forgets_syncs:
            self.journal.steps.append(Sync(self.fds[fd]))

    def truncate(self, fd: int, length: int) -> None:
        self._alive()
        super().truncate(fd, length)
        self.journal.steps.append(Cut(self.fds[fd], length))

    def make_dir(self, path: Path) -> None:
        if path.is_dir():
            return
        self._alive()
        if not path.parent.is_dir():
            self.make_dir(path.parent)
        parent = self.journal.folder(path.parent)
        self.journal.steps.append(Named(parent, path.name, FOLDER))
        super().make_dir(path)

    def rename(self, old: Path, new: Path) -> None:
        self._alive()
        super().rename(old, new)
        number = self.journal.files[new] = self.journal.files.pop(old)
        folder, source = self.journal.folder(new.parent), self.journal.folder(old.parent)
        if folder == source:
            self.journal.steps.append(Named(folder, new.name, number, old.name))
        else:  # in two directories, of which one may be durable before the other
            self.journal.steps += [Named(folder, new.name, number), Unnamed(source, old.name)]

    def remove(self, path: Path) -> None:
        self._alive()
        if self.journal.files.pop(path, None) is not None:
            self.journal.steps.append(Unnamed(self.journal.folder(path.parent), path.name))
        super().remove(path)

    def sync_dir(self, path: Path) -> None:
        self._alive()
        if not self.faults.forgets_names:
            self.journal.steps.append(SyncFolder(self.journal.folder(path)))

    def _create(self, path: Path) -> int:
        self._alive()
        self.journal.created(path)
        fd = super()._create(path)
        self.fds[fd] = self.journal.files[path]
        return fd


class Wreckage:
    """The state of the disk at one step: what is certain, and what is not yet."""

    def __init__(self, journal: Journal) -> None:
        self._certain: dict[int, bytes] = {}
        self._names: dict[str, dict[str, int]] = {".": {}}
        self._writes: dict[int, list[Write | Cut]] = {}
        self._renames: dict[str, list[Named | Unnamed]] = {}
        numbers = dict(_numbered(journal.start))
        for path, data in journal.start.items():
            folder = Path(path).parent.as_posix()
            if data is None:
                self._names[path] = {}
            else:
                self._certain[numbers[path]] = data
            self._names[folder][Path(path).name] = numbers[path]

    def take(self, step: Step) -> None:
        """Go one step further."""
        match step:
            case Write(file=file) | Cut(file=file):
                self._writes.setdefault(file, []).append(step)
            case Sync(file=file):
                self._certain[file] = self._content(file, EVERYTHING)
                self._writes.pop(file, None)
            case Named(folder=folder) | Unnamed(folder=folder):
                self._renames.setdefault(folder, []).append(step)
            case SyncFolder(folder=folder):
                self._names[folder] = self._entries(folder, EVERYTHING)
                self._renames.pop(folder, None)
            case Remark():
                pass

    def lay_out(self, target: Path, luck: Luck, folder: str = ".") -> None:
        """Make target a directory that a power loss now leaves, with this luck."""
        target.mkdir(mode=0o700)
        for name, file in self._entries(folder, luck).items():
            inner = name if folder == "." else f"{folder}/{name}"
            if file == FOLDER:
                self.lay_out(target / name, luck, inner)
                continue
            fd = os.open(target / name, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(fd, self._content(file, luck))
            os.close(fd)

    def _content(self, file: int, luck: Luck) -> bytes:
        data = bytearray(self._certain.get(file, b""))
        for step in self._writes.get(file, ()):
            if isinstance(step, Cut):
                if luck.happened():
                    del data[step.length :]
                    data.extend(bytes(step.length - len(data)))
            else:
                for offset, part in luck.arrived(step):
                    data.extend(bytes(max(0, offset - len(data))))
                    data[offset : offset + len(part)] = part
        return bytes(data)

    def _entries(self, folder: str, luck: Luck) -> dict[str, int]:
        names = dict(self._names.get(folder, {}))
        for step in luck.of_these(self._renames.get(folder, [])):
            if isinstance(step, Unnamed):
                names.pop(step.name, None)
                continue
            names[step.name] = step.file
            if step.old is not None:
                names.pop(step.old, None)
        return names


class Luck:
    """Everything that was not yet synced made it all the same."""

    def happened(self) -> bool:
        """Whether a truncation did."""
        return True

    def arrived(self, write: Write) -> Iterable[tuple[int, bytes]]:
        """What of a write did: pieces and their offsets."""
        yield write.offset, write.data

    def of_these(self, steps: list[Named | Unnamed]) -> list[Named | Unnamed]:
        """Which changes of names in one directory did."""
        return steps


class Nothing(Luck):
    """Nothing that was not yet synced made it."""

    def happened(self) -> bool:
        return False

    def arrived(self, write: Write) -> Iterable[tuple[int, bytes]]:
        return ()

    def of_these(self, steps: list[Named | Unnamed]) -> list[Named | Unnamed]:
        return []


class Some(Luck):
    """Chance decides, for each of it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def happened(self) -> bool:
        return self._rng.random() < 0.5

    def arrived(self, write: Write) -> Iterable[tuple[int, bytes]]:
        fate = self._rng.randrange(5)
        if fate == 0:
            return
        if fate == 1:
            yield write.offset, write.data
        elif fate == 2:
            yield write.offset, write.data[: self._rng.randrange(len(write.data) + 1)]
        else:
            yield from self._sectors(write, grown=fate == 3)

    def _sectors(self, write: Write, *, grown: bool) -> Iterable[tuple[int, bytes]]:
        end = write.offset + len(write.data)
        if grown:
            yield end, b""  # the file got its new length, whatever became of the data
        start = write.offset
        while start < end:
            stop = min(end, (start // SECTOR + 1) * SECTOR)
            if self._rng.random() < 0.5:
                yield start, write.data[start - write.offset : stop - write.offset]
            start = stop

    def of_these(self, steps: list[Named | Unnamed]) -> list[Named | Unnamed]:
        if self._rng.random() < 0.6:
            return steps[: self._rng.randrange(len(steps) + 1)]
        return [step for step in steps if self._rng.random() < 0.5]


EVERYTHING, NOTHING = Luck(), Nothing()


def any_luck(rng: random.Random) -> Luck:
    """One luck or the other."""
    return rng.choice((EVERYTHING, NOTHING, Some(rng), Some(rng), Some(rng)))


def _contents(base: Path) -> Iterable[tuple[str, bytes | None]]:
    for path in sorted(base.rglob("*")):
        inner = path.relative_to(base).as_posix()
        yield inner, path.read_bytes() if path.is_file() else None


def _numbered(start: dict[str, bytes | None]) -> Iterable[tuple[str, int]]:
    for number, (path, data) in enumerate(start.items()):
        yield path, FOLDER if data is None else number
