"""The tie between a session and a directory: what each of its turns captures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from snapstore.model.snapshot import Record
from snapstore.objects import Stage
from snapstore.worktree.capture import Captured, Limits
from snapstore.worktree.directory import Worktree
from snapstore.worktree.guard import refuse_too_much, resolved
from snapstore.worktree.treediff import FilesDiff, sorted_out

if TYPE_CHECKING:
    from snapstore.store import Store


class Files(NamedTuple):
    """What a turn keeps of files, as it stands in its snapshot."""

    files: bytes | None = None
    worktree: str = ""
    partial: bool = False

    @classmethod
    def of(cls, record: Record) -> Files:
        """The files of a turn."""
        return cls(record.files, record.worktree, record.partial)


class Binding:
    """Which directory a session's saves capture.

    One that was named holds until another is. Else it is the one that HEAD remembers; where that
    is not on this machine, the turns go on with the files that HEAD has.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._named = False
        self._root: Path | None = None
        self._limits: Limits | None = Limits()
        self._captured: tuple[Worktree, Captured] | None = None

    def name(self, path: str | Path | None, *, force: bool, home: Path | None) -> None:
        """Capture this directory from now on; None: none. Raises NotFound, Refused."""
        root = None if path is None else resolved(path)
        if root is not None and not force:
            refuse_too_much(root, home)
        self._named, self._root = True, root
        self._limits = None if force else Limits()

    def root(self, head: Record | None) -> Path | None:
        """The directory that the next save captures, given HEAD; None for none."""
        if self._named:
            return self._root
        return Path(head.worktree) if head and head.worktree else None

    def diff(self, head: Record | None) -> FilesDiff | None:
        """How the files in the directory differ from those of HEAD; None where there are none."""
        root = self.root(head)
        if root is None or head is None or head.files is None or not root.is_dir():
            return None
        return sorted_out(self._store.worktree(root).changes(head.files))

    def capture(self, head: Record | None, stage: Stage) -> Files:
        """What the turn after head is to keep; new objects are staged."""
        self._captured = None
        root = self.root(head)
        if root is None:
            return Files()
        if head is not None and not self._named and not root.is_dir():
            return Files.of(head)
        worktree = self._store.worktree(root)
        captured = worktree.capture(stage, self._limits)
        self._captured = worktree, captured
        return Files(captured.tree, str(root), captured.partial)

    def saved(self) -> None:
        """What was captured last is in the store now."""
        if self._captured is not None:
            worktree, captured = self._captured
            worktree.remember(captured)
            self._captured = None
