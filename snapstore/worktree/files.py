"""The files of a turn as users see them: a mapping from paths to entries, read when looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from blake3 import blake3

from snapstore.chunks import stream
from snapstore.engine import Kind
from snapstore.errors import Corrupt, NotFound
from snapstore.objects import Objects
from snapstore.worktree import tree
from snapstore.worktree.tree import Entry, Trees, parts_of


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One path of a captured directory."""

    kind: str
    """"file", "dir", "symlink"; listed but not held: "fifo", "socket", "device", "unreadable",
    "mount"."""
    mode: int
    """Permission bits."""
    size: int
    """Bytes of the content; 0 for what has none."""
    id: str | None
    """Id of the content, 64 hex digits; None for what is no file."""
    mtime: datetime | None
    """When a file or link was changed last, UTC, cut to microseconds."""
    target: str | None = None
    """Where a symbolic link leads."""


def seen_from_outside(entry: Entry) -> FileEntry:
    """A stored entry as users see it."""
    timed = entry.kind in (tree.FILE, tree.SYMLINK)
    return FileEntry(
        kind=tree.KIND_NAMES[entry.kind] if entry.kind < len(tree.KIND_NAMES) else "other",
        mode=entry.mode,
        size=entry.size,
        id=entry.target.hex() if entry.kind == tree.FILE and entry.target else None,
        mtime=_when(entry.mtime) if timed else None,
        target=os.fsdecode(entry.target) if entry.kind == tree.SYMLINK and entry.target else None,
    )


def _when(mtime: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(mtime // 1_000_000_000, UTC).replace(
            microsecond=mtime // 1000 % 1_000_000
        )
    except (ValueError, OverflowError, OSError):
        return None  # a file may claim to be older or younger than the calendar goes


class Files(Mapping[str, FileEntry]):
    """Full relative path -> entry, directories before what they hold. Read only.

    Names are text as ``os.fsdecode`` gives it: what is not UTF-8 is in lone surrogates.
    """

    def __init__(self, objects: Objects, root: bytes) -> None:
        self._objects = objects
        self._trees = Trees(objects)
        self._tree = root

    def __getitem__(self, path: str) -> FileEntry:
        return seen_from_outside(self._entry(path))

    def _entry(self, path: str) -> Entry:
        parts = parts_of(os.fsencode(path.strip("/"))) if isinstance(path, str) else ()
        found = self._trees.find(self._tree, parts) if parts else None
        if found is None:
            raise KeyError(path)
        return found

    def __iter__(self) -> Iterator[str]:
        for path, _ in self._trees.walk(self._tree):
            yield os.fsdecode(path)

    def entries(self, below: str = "") -> Iterator[tuple[str, FileEntry]]:
        """Every path below a directory with its entry, in one walk."""
        for path, entry in self._trees.walk(self._tree, os.fsencode(below.strip("/"))):
            yield os.fsdecode(path), seen_from_outside(entry)

    def __len__(self) -> int:
        return sum(1 for _ in self._trees.walk(self._tree))

    def __contains__(self, path: object) -> bool:
        try:
            self._entry(path)  # type: ignore[arg-type]
        except KeyError:
            return False
        return True

    def stream(self, path: str) -> Iterator[bytes]:
        """The content of a file in pieces of at most 64 KiB, the whole verified at the end.

        Raises NotFound for what is no file, ObjectMissing or Corrupt.
        """
        try:
            entry = self._entry(path)
        except KeyError:
            raise NotFound(f"there is no {path} in this turn") from None
        if entry.kind != tree.FILE or entry.target is None:
            raise NotFound(f"{path} is a {seen_from_outside(entry).kind}, and has no content")
        return content_of(self._objects, entry.target)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return b"".join(self.stream(path))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Files) and self._tree == other._tree:
            return True
        return dict(self.entries()) == dict(other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Files {self._tree.hex()[:12]}>"


def content_of(objects: Objects, content_id: bytes) -> Iterator[bytes]:
    """Content in pieces, the whole verified at the end. Raises ObjectMissing or Corrupt."""
    first = objects.engine.read(content_id)
    whole = None if first.kind != Kind.CHUNKED else blake3()
    for piece in stream(first, objects.engine.read):
        if whole is not None:
            whole.update(piece)
        yield piece
    if whole is not None and whole.digest() != content_id:
        raise Corrupt(f"the chunks of object {content_id.hex()} make up something else")
