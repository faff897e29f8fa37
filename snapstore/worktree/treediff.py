"""What the files of two turns do not have in common."""

from __future__ import annotations

import os
from dataclasses import dataclass

from snapstore.worktree import tree
from snapstore.worktree.files import FileEntry, seen_from_outside
from snapstore.worktree.tree import Change, Trees


@dataclass(frozen=True, slots=True)
class FilesDiff:
    """Paths that are not alike in two trees."""

    added: dict[str, FileEntry]
    """Only the right side has these."""
    removed: dict[str, FileEntry]
    """Only the left side has these."""
    changed: dict[str, tuple[FileEntry, FileEntry]]
    """Both have these paths, with what the left and the right side have there."""
    renamed: dict[str, str]
    """New path -> old path: of those added and removed, files that have the same content."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed)


def files_diff(trees: Trees, left: bytes | None, right: bytes | None) -> FilesDiff:
    """The difference between two trees, None standing for no files; what they share is not read."""
    return sorted_out(trees.changes(left, right))


def sorted_out(changes: list[Change]) -> FilesDiff:
    """Changes as users see them. The root directory itself is left out: it has no path."""
    found = FilesDiff({}, {}, {}, {})
    for path, old, new in changes:
        name = os.fsdecode(path)
        if not path:
            continue
        if old is None and new is not None:
            found.added[name] = seen_from_outside(new)
        elif new is None and old is not None:
            found.removed[name] = seen_from_outside(old)
        elif old is not None and new is not None:
            found.changed[name] = seen_from_outside(old), seen_from_outside(new)
    found.renamed.update(_renames(found))
    return found


def _renames(found: FilesDiff) -> dict[str, str]:
    """Each removed file paired with one added file of the same content, in the order of paths."""
    gone: dict[str, list[str]] = {}
    for path, entry in found.removed.items():
        if entry.kind == tree.KIND_NAMES[tree.FILE] and entry.id and entry.size:
            gone.setdefault(entry.id, []).append(path)
    renamed: dict[str, str] = {}
    for path, entry in found.added.items():
        olds = gone.get(entry.id or "")
        if olds:
            renamed[path] = olds.pop(0)
    return renamed
