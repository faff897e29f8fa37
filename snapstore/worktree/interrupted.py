"""Restores of directories that did not come to their end, as who looks at a store is told of them.

Looking settles nothing: whoever captures or restores the directory next does (see journal).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from snapstore.errors import Corrupt, DiskError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from snapstore.engine import Engine
    from snapstore.worktree.journal import Journal
    from snapstore.worktree.local import Local


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A restore whose process died, or is still at work."""

    worktree: Path
    finishes: bool
    """Whether the ref moved, so that all its files are in place; else it is to be taken back."""
    at_work: bool = False
    """Whether a process works on the directory now."""

    @classmethod
    def of(cls, journal: Journal, engine: Engine, *, at_work: bool = False) -> Interrupted:
        """What a journal tells."""
        return cls(Path(os.fsdecode(journal.worktree)), journal.committed(engine), at_work)

    def __str__(self) -> str:
        if self.at_work:
            return f"a restore of {self.worktree} is at work"
        if self.finishes:
            return f"a restore of {self.worktree} was cut off after its last file"
        return f"a restore of {self.worktree} was cut off: its files may be between two states"

    @property
    def advice(self) -> str:
        """What ends it."""
        if self.at_work:
            return "wait for it"
        if not self.worktree.is_dir():
            return "that directory is not there: bring it back to where it was"
        does = "finishes it" if self.finishes else "takes it back"
        return f"the next save, rewind, restore, undo or redo there {does}"

    @property
    def ended(self) -> str:
        """What is said once it was settled."""
        does = "finished" if self.finishes else "taken back"
        return f"a restore of {self.worktree} had been cut off, and was {does} first"


def interrupted(local: Local | None, engine: Engine) -> Iterator[Interrupted]:
    """The restores that left a journal. One that is damaged is passed over: nobody can tell what
    it says (see ``maintenance.stranded``)."""
    if local is None:
        return
    for path in local.journals():
        from snapstore.worktree.journal import Journal

        try:
            journal = Journal.read(path)
            at_work = local.is_locked(path)
            is_there_still = at_work or Journal.read(path) == journal
        except (Corrupt, DiskError):
            continue
        if journal is not None and is_there_still:  # else one came to its end, or began, meanwhile
            yield Interrupted.of(journal, engine, at_work=at_work)
