"""Files that a restore was moving when it was interrupted, and whose journal was damaged since.

Only the journal tells where each of them belongs. Without it they are brought to where they can be
seen, the damaged journal is set aside, and the directory can be worked on again. Nothing is
deleted: what was there before the restore had been captured, and is in those files too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from snapstore import refs
from snapstore.errors import Corrupt, SnapstoreError
from snapstore.worktree.journal import Journal
from snapstore.worktree.listing import STAGING

if TYPE_CHECKING:
    from snapstore.store import Store
    from snapstore.worktree.local import Local

RESCUED = "snapstore-rescued-"
"""What a directory of such files is called from then on; before, its name was hidden."""


@dataclass(frozen=True, slots=True)
class Stranded:
    """A restore that nobody can finish or take back."""

    journal: Path
    worktree: Path | None
    """The directory that was being restored; None when nothing tells which."""
    folders: tuple[Path, ...]
    """The directories in it that hold the files: o1, o2 and so on are what was there before, n1,
    n2 what the turn holds."""

    def __str__(self) -> str:
        where = f"of {self.worktree}" if self.worktree else "of some directory"
        files = ", ".join(map(str, self.folders)) or "no files of it were found"
        return f"a restore {where} was interrupted, and its journal is damaged: {files}"


def stranded(store: Store, places: Iterable[Path] = ()) -> list[Stranded]:
    """The restores that nobody can finish; places: absolute paths of directories that no session
    may be bound to, and that are looked at too."""
    local = store.here
    hurt = list(_damaged(local)) if local is not None else []
    if local is None or not hurt:
        return []
    known = {local.journal(os.fsencode(place)): place for place in (*_bound(store), *places)}
    return [_found(journal, known.get(journal)) for journal in hurt]


def rescue(store: Store, one: Stranded) -> Stranded:
    """Bring the files to where they are seen, and set the journal aside. Raises DiskError, Locked.

    Interrupted at any point it can be done again.
    """
    local = store.here
    assert local is not None  # or nothing would have been found
    if one.worktree is None:
        _set_aside(local, one.journal, store.clock())
        return one
    with local.locked(os.fsencode(one.worktree)):
        seen = [folder.with_name(RESCUED + _token(folder)) for folder in one.folders]
        for folder, now in zip(one.folders, seen, strict=True):
            local.disk.rename(folder, now)
        local.disk.sync_dir(one.worktree)
        _set_aside(local, one.journal, store.clock())
    return replace(one, folders=tuple(seen))


def _damaged(local: Local) -> Iterator[Path]:
    for path in local.journals():
        try:
            Journal.read(path)
        except Corrupt:
            yield path


def _bound(store: Store) -> Iterator[Path]:
    """The directories that sessions and tags were captured from, as they are now."""
    for prefix in refs.OF_SNAPSHOTS:
        for tip in store.engine.tips(prefix):
            try:
                worktree = store.snapshot(tip.new).worktree if tip.new else ""
            except SnapstoreError:
                continue
            if worktree:
                yield Path(worktree)


def _found(journal: Path, worktree: Path | None) -> Stranded:
    folders: list[Path] = []
    if worktree is not None and worktree.is_dir():
        folders = sorted(worktree.glob(f"{os.fsdecode(STAGING)}*"))
    return Stranded(journal, worktree, tuple(folders))


def _token(folder: Path) -> str:
    return folder.name.removeprefix(os.fsdecode(STAGING))


def _set_aside(local: Local, journal: Path, now: int) -> None:
    aside = local.root / "damaged"
    local.disk.make_dir(aside)
    local.disk.rename(journal, aside / f"{now}-{journal.name}")
    for folder in (aside, journal.parent):
        local.disk.sync_dir(folder)
