"""Bringing a tree back into its directory: all of it or nothing. The journal says how and why."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from snapstore.disk import DISK
from snapstore.engine import Move
from snapstore.errors import Corrupt, NotFound, Refused, UnknownOutcome
from snapstore.objects import Objects, Stage
from snapstore.worktree import tree
from snapstore.worktree.apply import Applier
from snapstore.worktree.capture import Captured, Limits
from snapstore.worktree.descent import DIRECTORY, Descent
from snapstore.worktree.directory import Worktree
from snapstore.worktree.files import content_of
from snapstore.worktree.ignore import RULE_FILES, Rules
from snapstore.worktree.interrupted import Interrupted
from snapstore.worktree.journal import TOKEN, Journal
from snapstore.worktree.known import known_paths
from snapstore.worktree.live import Live
from snapstore.worktree.plan import Act, Plan, Planner, Scope, shown
from snapstore.worktree.tree import Change, Entry, Trees, parts_of

Commit = Callable[[Mapping[str, Any]], Move | None]
"""Moves the ref, with this info in the move. Raises RefMoved."""

_CONFLICTS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did, or would do, to the paths of a directory, each sorted."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """What the wanted tree does not have, but stays: unknown and ignored paths."""
    made: frozenset[str] = frozenset()
    """Of what was written: that at which nothing was before."""
    folders: frozenset[str] = frozenset()
    """Of what was written and deleted: directories."""
    in_the_way: tuple[str, ...] = ()
    """In a dry run: what is refused unless forced."""

    def and_then(self, later: Restored | None) -> Restored:
        """Both, one after the other."""
        if later is None:
            return self
        written, deleted = set(self.written), set(self.deleted)
        now, gone = set(later.written), set(later.deleted)
        return Restored(
            tuple(sorted((written - gone) | now)),
            tuple(sorted((deleted - now) | gone)),
            later.kept,
            (self.made - gone) | (later.made - deleted),
            (self.folders - now - gone) | later.folders,
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be brought back."""

    tree: bytes
    scope: tuple[bytes, ...] = ()
    """Only these paths and what lies below them; none: everything."""
    known: tuple[bytes, ...] = ()
    """Trees of saved turns of this directory, to be asked first what may be deleted."""
    ref: str = ""
    """The ref that moves with the files; "" for none."""
    force: bool = False
    """Replace also what stands in the way and could not be captured."""
    root_mode: bool = True
    """Whether the root directory gets the mode that it had."""
    move_anyway: bool = True
    """Whether the ref moves also where no file differs."""
    must_exist: bool = True
    """Whether a path of scope that is neither in the tree nor in the directory is a mistake. For
    a step back or forth it is not: what was there meanwhile may be gone by itself."""


def restore(
    objects: Objects,
    worktree: Worktree,
    wanted: Wanted,
    commit: Commit | None,
    *,
    dry_run: bool = False,
    limits: Limits | None = None,
) -> Restored:
    """Bring a tree, or some paths of it, back into the directory, and move the ref.

    What is there is captured first; commit is called with the info that undo needs. Where nothing
    differs nothing is written but the move. Raises Refused for what stands in the way, NotFound
    for a path that neither side has, ObjectMissing or Corrupt for content that is not there, and
    DiskError: the files and the ref are then as they were.

    A dry run changes nothing. The directory need not be there for it.
    """
    if dry_run and not worktree.root.is_dir():
        return _into_nothing(objects, wanted)
    with worktree.exclusive(), Stage(objects) as stage:
        captured = worktree.capture(stage, limits, keep=not dry_run)
        plan = _planned(objects, worktree, wanted, captured)
        conflicts = [] if wanted.force else _conflicts(plan, wanted)
        done = _told(plan, captured, wanted)
        if dry_run and not wanted.ref:
            paths = sorted({os.fsdecode(path) for path, _ in conflicts})
            return replace(done, in_the_way=tuple(paths))
        _refuse(conflicts)
        if dry_run:
            return done
        stage.commit()
        worktree.remember(captured)
        scope = list(_with_what_is_made_for_it(wanted.scope, plan))
        back = {"worktree": str(worktree.root), "tree": captured.tree, "paths": scope}
        files = {**back, "tree": wanted.tree}
        if plan.steps or wanted.move_anyway:
            _carry_out(objects, worktree, plan, wanted.ref, commit, {"back": back, "files": files})
    return done


def _planned(objects: Objects, worktree: Worktree, wanted: Wanted, captured: Captured) -> Plan:
    trees = Trees(objects)
    if wanted.must_exist:
        _refuse_unknown(trees, wanted.scope, wanted.tree, captured.tree)
    changes = trees.changes(captured.tree, wanted.tree)
    if not wanted.root_mode:
        changes = [change for change in changes if change.path]
    with Descent(os.open(worktree.path, DIRECTORY)) as descent:
        live = Live(descent)
        known = partial(known_paths, objects, str(worktree.root), wanted.known)
        spared = _Spared(objects, wanted.tree)
        return Planner(live, known, spared, equal=live.is_entry).plan(changes, wanted.scope)


def _refuse_unknown(trees: Trees, scope: Iterable[bytes], *where: bytes) -> None:
    for path in scope:
        if not any(trees.find(held, parts_of(path)) for held in where):
            raise NotFound(f"there is no {shown(path)}, neither in that turn nor here")


def _into_nothing(objects: Objects, wanted: Wanted) -> Restored:
    """What a restore would do where there is no directory yet."""
    trees, scope = Trees(objects), Scope(wanted.scope)
    _refuse_unknown(trees, wanted.scope, wanted.tree)
    coming = {
        os.fsdecode(path): entry.kind == tree.DIR
        for path, entry in trees.walk(wanted.tree)
        if entry.kind in tree.HELD and scope.holds(Change(path, None, entry))
    }
    folders = frozenset(path for path, is_folder in coming.items() if is_folder)
    return Restored(tuple(sorted(coming)), made=frozenset(coming), folders=folders)


def _with_what_is_made_for_it(scope: tuple[bytes, ...], plan: Plan) -> set[bytes]:
    """The paths of a restore, and the directories above them that it has to make."""
    made = {step.path for step in plan.steps if step.act == Act.MKDIR} if scope else set()
    return {*scope, *(p for p in made if any(path.startswith(p + b"/") for path in scope))}


def _told(plan: Plan, captured: Captured, wanted: Wanted) -> Restored:
    left_out = () if wanted.scope else captured.ignored()
    kept = sorted({*plan.kept, *left_out}.difference(plan.written))
    return Restored(
        tuple(map(os.fsdecode, plan.written)),
        tuple(map(os.fsdecode, plan.deleted)),
        tuple(map(os.fsdecode, kept)),
        frozenset(map(os.fsdecode, plan.made)),
        frozenset(map(os.fsdecode, plan.folders)),
    )


def _conflicts(plan: Plan, wanted: Wanted) -> list[tuple[bytes, str]]:
    conflicts = sorted(plan.conflicts)
    if not wanted.ref:
        # No move will remember what was there, so nothing could bring it back.
        coming = {step.path: step.new for step in plan.steps if step.act == Act.IN}
        conflicts += [
            (step.path, "is something else")
            for step in plan.steps
            if step.act == Act.OUT and not _same_content(step.old, coming.get(step.path))
        ]
    return conflicts


def _same_content(old: Entry | None, new: Entry | None) -> bool:
    """Whether two files or links differ in nothing but mode and time."""
    if old is None or new is None:
        return False
    return (old.kind, old.target) == (new.kind, new.target)


def _refuse(conflicts: list[tuple[bytes, str]]) -> None:
    if not conflicts:
        return
    text = "; ".join(f"{shown(path)} {why}" for path, why in conflicts[:_CONFLICTS_SHOWN])
    more = len(conflicts) - _CONFLICTS_SHOWN
    raise Refused(
        f"in the way of what is to be restored: {text}"
        + (f"; and {more} more" if more > 0 else ""),
        hint="nothing was touched: move them away, or replace them with --force (force=True)",
    )


# --- carrying it out ------------------------------------------------------------------------------


def _carry_out(
    objects: Objects,
    worktree: Worktree,
    plan: Plan,
    ref: str,
    commit: Commit | None,
    info: Mapping[str, Any],
) -> None:
    if not plan.steps:
        if commit is not None:
            commit(info)
        return
    tip = objects.engine.tip(ref) if ref else None
    journal = Journal(
        worktree.path, secrets.token_bytes(12), ref, tip.gen if tip else 0, False, plan.steps
    )
    with contextlib.closing(_Work(objects, worktree, journal)) as work:
        try:
            work.begin()
            work.forward()
            if commit is not None:
                commit({**info, TOKEN: journal.token})
            else:
                work.done()
        except UnknownOutcome:
            # The ref may have moved or not. The journal stays: whoever opens the store next sees.
            raise
        except BaseException:
            work.back()
            raise
        work.end()


class _Work:
    """A journal on the disk, where there is a place for it, and its steps on the directory."""

    def __init__(self, objects: Objects, worktree: Worktree, journal: Journal) -> None:
        local = worktree.local
        self._objects = objects
        self._disk = local.disk if local else DISK
        self._path = local.journal(worktree.path) if local else None
        self._journal = journal
        self._applier = Applier(
            self._disk, worktree.root, journal, durable=local is None or local.durable
        )

    def begin(self) -> None:
        if self._path is not None:
            self._disk.make_dir(self._path.parent)
            self._journal.write(self._disk, self._path)

    def forward(self) -> None:
        self._applier.stage(lambda content_id: content_of(self._objects, content_id))
        self._applier.run()

    def done(self) -> None:
        if self._path is not None:
            self._journal._replace(done=True).write(self._disk, self._path)

    def back(self) -> None:
        self._applier.back()
        self.end(done=False)

    def close(self) -> None:
        self._applier.close()

    def end(self, *, done: bool = True) -> None:
        self._applier.clean(done=done)
        if self._path is not None:
            self._disk.remove(self._path)


def settle(objects: Objects, worktree: Worktree) -> None:
    """Finish or take back a restore that was interrupted, if there is one, and note it.

    To be called with the directory held for this process alone. Raises Corrupt, DiskError.
    """
    local = worktree.local
    if local is None:
        return
    try:
        journal = Journal.read(local.journal(worktree.path))
    except Corrupt as damage:
        left = ", ".join(map(str, worktree.staged()))
        where = f"lie in {left}" if left else "are no longer there"
        damage.hint = (
            f"the files that the restore was moving {where}; `snapstore repair --apply`, run in "
            "that directory, brings them to where they are seen and sets the journal aside"
        )
        raise
    if journal is None:
        return
    found = Interrupted.of(journal, objects.engine)
    with contextlib.closing(_Work(objects, worktree, journal)) as work:
        if found.finishes:
            work.end()
        else:
            work.back()
    local.settled.append(found)


class _Spared:
    """What the ignore rules of a stored tree leave out. They hold for what a restore deletes."""

    def __init__(self, objects: Objects, wanted: bytes) -> None:
        self._objects = objects
        self._trees = Trees(objects)
        self._tree = wanted
        self._rules: dict[bytes, Rules] = {}

    def __call__(self, path: bytes, is_dir: bool) -> bool:
        """Whether a path, or a directory above it, is left out."""
        names = tuple(map(os.fsdecode, parts_of(path)))
        folder = b""
        for depth, name in enumerate(parts_of(path), 1):
            rules = self._rules_in(folder)
            if rules.ignores(names[:depth], is_dir or depth < len(names)):
                return True
            folder = tree.join(folder, name)
        return False

    def _rules_in(self, folder: bytes) -> Rules:
        rules = self._rules.get(folder)
        if rules is None:
            above = self._rules_in(folder.rpartition(b"/")[0]) if folder else Rules()
            texts = [text for name in RULE_FILES if (text := self._text(folder, name)) is not None]
            rules = self._rules[folder] = above.within(len(parts_of(folder)), texts)
        return rules

    def _text(self, folder: bytes, name: bytes) -> bytes | None:
        found = self._trees.find(self._tree, (*parts_of(folder), name))
        if found is None or found.kind != tree.FILE or found.target is None:
            return None
        return self._objects.content(found.target)
