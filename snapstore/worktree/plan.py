"""What a restore does, worked out before anything is touched.

The plan is the difference from the tree that was captured just now to the one that is wanted, as
steps in an order in which each can be done when its turn comes, and be taken back in the reverse:

    OPEN    give the owner of a directory its rights to it, where something below will change
    OUT     move a file, a link, or what else stands in the way, into the staging directory
    RMDIR   remove a directory
    MKDIR   make a directory, for its owner alone
    IN      move a new file or link from the staging directory to its place
    MODE    give a directory the mode that it is to have

A path goes only if it is *known*: if some saved turn holds it. What is not, and what ignore rules
leave out (those of now, or those of the wanted tree), is kept, and so is the directory it lies in.
What stands in the way of something wanted and could not be captured is a *conflict*: ignored files,
unreadable ones, sockets, and files that no turn knows in a directory that must become a file.
"""

from __future__ import annotations

import enum
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from snapstore.worktree import tree
from snapstore.worktree.live import Live
from snapstore.worktree.tree import HELD, Change, Entry, parts_of

OWNER = 0o700


class Act(enum.IntEnum):
    """What a step does, in the order of doing."""

    OPEN = 0
    OUT = 1
    RMDIR = 2
    MKDIR = 3
    IN = 4
    MODE = 5


class Step(NamedTuple):
    """One step. Slot is the number of its file in the staging directory, where it has one."""

    act: Act
    path: bytes
    old: Entry | None = None
    new: Entry | None = None
    slot: int = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a restore, and what it means for the paths."""

    steps: tuple[Step, ...]
    written: tuple[bytes, ...]
    """What is made or changed. The root itself, which may get another mode, is never listed."""
    made: frozenset[bytes]
    """Those of them at which nothing was before."""
    deleted: tuple[bytes, ...]
    folders: frozenset[bytes]
    """What of all that is written and deleted is a directory."""
    kept: tuple[bytes, ...]
    """What stays though the wanted tree does not have it."""
    conflicts: tuple[tuple[bytes, str], ...]
    """Paths that stand in the way, and why they are not simply replaced."""


@dataclass(slots=True)
class _Draft:
    opens: dict[bytes, Step] = field(default_factory=dict)
    outs: list[Step] = field(default_factory=list)
    rmdirs: list[Step] = field(default_factory=list)
    mkdirs: list[Step] = field(default_factory=list)
    ins: list[Step] = field(default_factory=list)
    modes: dict[bytes, Step] = field(default_factory=dict)
    deleted: list[bytes] = field(default_factory=list)
    folders: set[bytes] = field(default_factory=set)
    """Those of them that are directories."""
    kept: list[bytes] = field(default_factory=list)
    conflicts: list[tuple[bytes, str]] = field(default_factory=list)
    gone: set[bytes] = field(default_factory=set)
    """Paths at which nothing of before is left when the wanted comes."""


class Planner:
    """Makes one plan. Reads the directory, and changes nothing."""

    def __init__(
        self,
        live: Live,
        known: Callable[[set[bytes]], set[bytes]],
        spared: Callable[[bytes, bool], bool],
        *,
        equal: Callable[[bytes, Entry], bool],
    ) -> None:
        """Known picks the paths that a saved turn holds; spared tells what the rules of the wanted
        tree leave out; equal whether what is at a path is this entry already."""
        self._live = live
        self._known = known
        self._spared = spared
        self._equal = equal
        self._draft = _Draft()
        self._slots = 0

    def plan(self, changes: Sequence[Change], scope: Iterable[bytes] = ()) -> Plan:
        """The plan for these changes, of which only those at or below the paths of scope count."""
        wanted = Scope(scope)
        changes = [change for change in changes if wanted.holds(change)]
        changes = self._without_what_is_not_held(changes)
        self._remove([change for change in changes if change.new is None], changes)
        for change in changes:
            if change.new is not None:
                self._write(change.path, change.old, change.new)
        return self._finished()

    def _without_what_is_not_held(self, changes: list[Change]) -> list[Change]:
        """Leave alone what the wanted tree only lists, and all below it: it is not known."""
        listed = [c.path for c in changes if c.new is not None and c.new.kind not in HELD]
        if not listed:
            return changes
        left = Scope(listed)
        self._draft.kept += [c.path for c in changes if c.old is not None and left.covers(c.path)]
        return [change for change in changes if not left.covers(change.path)]

    # --- what goes --------------------------------------------------------------------------------

    def _remove(self, gone: list[Change], changes: list[Change]) -> None:
        swapped = Scope(
            c.path
            for c in changes
            if c.old is not None and c.old.kind == tree.DIR and c.new and c.new.kind != tree.DIR
        )
        known = self._known({change.path for change in gone})
        for change in reversed(gone):  # what a directory holds before the directory
            old = change.old
            assert old is not None
            must = swapped.covers(change.path)
            if old.kind not in HELD:
                if must:
                    self._conflict(change.path, "cannot be captured")
                    self._out(change.path, old)
                else:
                    self._draft.kept.append(change.path)
            elif must and change.path not in known:
                self._conflict(change.path, "no saved turn knows it")
                self._take_away(change.path, old)
            elif must or (change.path in known and not self._is_spared(change)):
                self._take_away(change.path, old)
            else:
                self._draft.kept.append(change.path)

    def _is_spared(self, change: Change) -> bool:
        return self._spared(change.path, change.old is not None and change.old.kind == tree.DIR)

    def _take_away(self, path: bytes, old: Entry) -> None:
        if old.kind != tree.DIR:
            self._out(path, old)
            self._draft.deleted.append(path)
        elif not self._foreign(path):
            self._rmdir(path, old)
            self._draft.deleted.append(path)
            self._draft.folders.add(path)
        else:
            self._draft.kept.append(path)

    def _foreign(self, path: bytes) -> list[bytes]:
        """What would be left in a directory when all that goes has gone."""
        names = self._live.names(path)
        return [name for name in names if tree.join(path, name) not in self._draft.gone]

    # --- what comes -------------------------------------------------------------------------------

    def _write(self, path: bytes, old: Entry | None, new: Entry) -> None:
        if old is not None and old.kind not in HELD:
            self._conflict(path, "cannot be captured")
            self._out(path, old)
        elif old is not None and old.kind == tree.DIR and new.kind == tree.DIR:
            self._mode(path, old, new)
            return
        elif old is not None and old.kind == tree.DIR:
            self._make_room(path, old)
        elif old is not None:
            self._out(path, old)
        elif not self._free(path, new):
            return
        self._put(path, new)

    def _make_room(self, path: bytes, directory: Entry) -> None:
        """Take away a directory where a file is wanted, with whatever is in it."""
        left = self._foreign(path)
        if not left:
            self._rmdir(path, directory)
            return
        for name in left:
            inside = tree.join(path, name)
            if inside not in dict(self._draft.conflicts):
                self._conflict(inside, "is left out of captures")
        below = Scope([path])
        self._draft.rmdirs = [s for s in self._draft.rmdirs if not below.covers(s.path)]
        self._out(path, None)

    def _free(self, path: bytes, new: Entry) -> bool:
        """Whether something has to be put at a path where the capture saw nothing."""
        info = self._live.stat(path)
        if info is None or path in self._draft.gone:
            return True
        if self._equal(path, new):
            return False
        if new.kind == tree.DIR and stat.S_ISDIR(info.st_mode):
            self._mode(path, Entry(tree.DIR, stat.S_IMODE(info.st_mode)), new)
            return False
        self._conflict(path, "is left out of captures")
        self._out(path, None)
        return True

    def _put(self, path: bytes, new: Entry) -> None:
        self._open_above(path)
        if new.kind == tree.DIR:
            self._draft.mkdirs.append(Step(Act.MKDIR, path, None, new))
            self._draft.modes[path] = Step(Act.MODE, path, None, new)
        else:
            self._draft.ins.append(Step(Act.IN, path, None, new, self._slot()))

    # --- steps ------------------------------------------------------------------------------------

    def _conflict(self, path: bytes, why: str) -> None:
        self._draft.conflicts.append((path, why))

    def _out(self, path: bytes, old: Entry | None) -> None:
        self._open_above(path)
        self._draft.outs.append(Step(Act.OUT, path, old, None, self._slot()))
        self._draft.gone.add(path)

    def _rmdir(self, path: bytes, old: Entry) -> None:
        self._open_above(path)
        self._open(path)
        self._draft.rmdirs.append(Step(Act.RMDIR, path, old))
        self._draft.gone.add(path)

    def _mode(self, path: bytes, old: Entry, new: Entry) -> None:
        if old.mode != new.mode:
            self._draft.modes[path] = Step(Act.MODE, path, old, new)

    def _open_above(self, path: bytes) -> None:
        if path:
            self._open(path.rpartition(b"/")[0])

    def _open(self, path: bytes) -> None:
        if path in self._draft.opens:
            return
        info = self._live.stat(path)
        if info is None or not stat.S_ISDIR(info.st_mode):
            return
        mode = stat.S_IMODE(info.st_mode)
        if mode & OWNER != OWNER:
            self._draft.opens[path] = Step(Act.OPEN, path, Entry(tree.DIR, mode))

    def _slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def _finished(self) -> Plan:
        draft = self._draft
        if draft.outs or draft.rmdirs or draft.mkdirs or draft.ins or draft.modes:
            self._open(b"")  # the staging directory is made there
        for path, step in draft.opens.items():
            if path not in draft.gone and path not in draft.modes:
                draft.modes[path] = Step(Act.MODE, path, step.old, step.old)
        draft.rmdirs.sort(key=_depth, reverse=True)
        draft.mkdirs.sort(key=_depth)
        modes = sorted(draft.modes.values(), key=_depth, reverse=True)
        opens = sorted(draft.opens.values(), key=_depth)
        steps = (*opens, *draft.outs, *draft.rmdirs, *draft.mkdirs, *draft.ins, *modes)
        coming = {s.path: s for s in steps if s.path and s.new is not None and s.new != s.old}
        before = {s.path for s in (*draft.outs, *draft.rmdirs)}
        changed = {path for path, step in coming.items() if step.old is not None}
        come = {path for path, s in coming.items() if s.new is not None and s.new.kind == tree.DIR}
        return Plan(
            steps,
            tuple(sorted(coming)),
            frozenset(coming.keys() - before - changed),
            tuple(sorted(set(draft.deleted) - coming.keys())),
            frozenset((draft.folders - coming.keys()) | come),
            tuple(sorted(set(draft.kept))),
            tuple(draft.conflicts),
        )


def _depth(step: Step) -> tuple[int, bytes]:
    return len(parts_of(step.path)), step.path


class Scope:
    """Paths and all that lies below them; none stands for everything."""

    def __init__(self, paths: Iterable[bytes]) -> None:
        self._paths = set(paths)

    def covers(self, path: bytes) -> bool:
        """Whether a path is one of them or lies below one."""
        while path not in self._paths:
            if not path:
                return False
            path = path.rpartition(b"/")[0]
        return True

    def holds(self, change: Change) -> bool:
        """Whether a change belongs to a restore of these paths: also a directory above one of
        them that is not there."""
        if not self._paths or self.covers(change.path):
            return True
        made = change.new is not None and change.new.kind == tree.DIR
        is_there = change.old is not None and change.old.kind == tree.DIR
        above = change.path + b"/"
        return made and not is_there and any(path.startswith(above) for path in self._paths)


def shown(path: bytes) -> str:
    """A path for people; the root is a dot."""
    return os.fsdecode(path) or "."
