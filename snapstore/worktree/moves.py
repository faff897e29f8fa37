"""Moves of a session that carry files along: rewind, restore, undo, redo.

Each is one move of one ref. Its info says what the files were and where, so that the way back is
known without a search:

    back     what an undo of this move brings back: the directory as it was captured just before
    forth    in an undo: what a redo brings back: the directory as it was before the undo
    files    the tree that was brought back

Each is a map: worktree (text), tree (32 bytes), paths (a list; empty for everything). The trees are
reached by nothing else, so whoever collects garbage has to follow them.

An undo also takes over the ``back`` of the move that it goes to, for that is where HEAD stands then
and where the next undo starts from; a redo likewise the ``forth`` of the undo it goes to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snapstore import arguments, refs
from snapstore.disk import DISK
from snapstore.engine import Move, Update
from snapstore.errors import NotFound, RefMoved, Refused
from snapstore.snapshot import Snapshot
from snapstore.worktree.directory import Worktree
from snapstore.worktree.guard import refuse_too_much
from snapstore.worktree.journal import TOKEN
from snapstore.worktree.ours import is_ours
from snapstore.worktree.restore import Restored, Wanted, restore

if TYPE_CHECKING:
    from snapstore.store import Store

_ELSEWHERE = "`snapstore restore REV --to DIR` brings them elsewhere"


def rewind(
    store: Store, name: str, target: Snapshot, *, force: bool = False, dry_run: bool = False
) -> Restored:
    """Move a session's HEAD to a turn, and the files of that turn's directory with it."""
    tree, worktree = _files_of(store, target, force, dry_run)
    head = _head(store, name)
    wanted = Wanted(tree, (), _known(store, head, worktree), refs.SESSIONS + name, force)
    commit = _mover(store, name, head, target.raw_id, "rewind", {"turn": target.turn})
    return restore(store.objects, worktree, wanted, commit, dry_run=dry_run)


def restore_files(
    store: Store,
    name: str,
    source: Snapshot,
    paths: Sequence[str] = (),
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Restored:
    """Bring files of a turn back into its directory. HEAD stays; undo of the session undoes it.

    Paths are relative to that directory, or absolute in it; none stands for all.
    """
    tree, worktree = _files_of(store, source, force, dry_run)
    head = _head(store, name)
    scope = tuple(_below(worktree.root, path) for path in paths)
    wanted = Wanted(
        tree,
        () if b"" in scope else scope,
        _known(store, head, worktree),
        refs.SESSIONS + name,
        force,
        move_anyway=False,
    )
    facts = {"turn": source.turn, "restored": source.raw_id}
    commit = _mover(store, name, head, head, "restore", facts)
    return restore(store.objects, worktree, wanted, commit, dry_run=dry_run)


def restore_to(
    store: Store,
    source: Snapshot,
    directory: str | Path,
    paths: Sequence[str] = (),
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Restored:
    """Bring files of a turn into another directory, which is made if it is missing.

    No session moves. Other content that would be overwritten there is a reason to refuse, unless
    forced; a dry run tells it as ``in_the_way``. Raises NotFound where a file stands in its place.
    """
    tree = _tree_of(source)
    root = Path(os.path.realpath(arguments.place(directory, "a directory")))
    missing = _is_missing(root)
    worktree = store.worktree(root)
    scope = tuple(_below(root, path) for path in paths)
    wanted = Wanted(tree, scope, force=force, root_mode=missing)
    if missing and not dry_run:
        _make(store, root)
    return restore(store.objects, worktree, wanted, None, dry_run=dry_run)


def _is_missing(root: Path) -> bool:
    """Whether a directory is yet to be made."""
    there = next(folder for folder in (root, *root.parents) if os.path.lexists(folder))
    if not there.is_dir():
        raise NotFound(f"{there} is a file, not a directory", hint="name another directory")
    return there != root


def undo(store: Store, ref: str, *, force: bool = False) -> tuple[Move, Restored | None]:
    """Take back a ref's last move, and what it did to files. Raises NothingToDo."""
    return _step(store, ref, "back", "forth", refs.step_back, force)


def redo(store: Store, ref: str, *, force: bool = False) -> tuple[Move, Restored | None]:
    """Go forth over what undo took back, and what that did to files. Raises NothingToDo."""
    return _step(store, ref, "forth", "back", refs.step_forth, force)


def _step(
    store: Store, ref: str, way: str, return_way: str, step: Callable[..., Move], force: bool
) -> tuple[Move, Restored | None]:
    engine = store.engine
    tip = engine.tip(ref)
    face = tip.info.get(way) if tip is not None else None
    if tip is None or face is None:
        return step(engine, ref, store.clock()), None
    worktree = _ready(store, face["worktree"], force)
    wanted = Wanted(
        face["tree"],
        tuple(face["paths"]),
        _known(store, tip.new, worktree),
        ref,
        force,
        must_exist=False,
    )
    moved: list[Move] = []

    def commit(info: Mapping[str, Any]) -> Move:
        facts = {return_way: info["back"], "files": info["files"]}
        if TOKEN in info:
            facts[TOKEN] = info[TOKEN]
        moved.append(step(engine, ref, store.clock(), tip=tip, facts=facts))
        return moved[0]

    restored = restore(store.objects, worktree, wanted, commit)
    return moved[0], restored


# --- what a move is about -------------------------------------------------------------------------


def _files_of(store: Store, source: Snapshot, force: bool, dry_run: bool) -> tuple[bytes, Worktree]:
    tree = _tree_of(source)
    return tree, _ready(store, source.record.worktree, force, dry_run=dry_run)


def _tree_of(source: Snapshot) -> bytes:
    tree = source.record.files
    if tree is None:
        raise NotFound(
            f"turn {source.turn} holds no files",
            hint="files are captured by saves of a session with a worktree",
        )
    return tree


def _ready(store: Store, worktree: str, force: bool, *, dry_run: bool = False) -> Worktree:
    """The directory to restore into. One that is gone is made again only when forced: it may have
    been renamed, and then the files would be in two places."""
    root = Path(worktree)
    if root.exists() and not root.is_dir():
        raise NotFound(f"{root}, from which the files were taken, is no directory", hint=_ELSEWHERE)
    if not force:
        refuse_too_much(root)
        if not root.exists():
            raise Refused(
                f"{root}, from which the files were taken, is not there",
                hint=f"--force (force=True) makes it again; {_ELSEWHERE}",
            )
        if not is_ours(store, root):
            raise Refused(
                f"this store never captured {root} itself: the turn came from elsewhere",
                hint=f"{_ELSEWHERE}; --force (force=True) restores into {root}",
            )
    if not dry_run:
        _make(store, root)
    return store.worktree(root)


def _make(store: Store, root: Path) -> None:
    (store.here.disk if store.here else DISK).make_dir(root)


def _head(store: Store, name: str) -> bytes:
    tip = refs.live(store.engine, refs.SESSIONS + name)
    if tip is None or tip.new is None:
        raise NotFound(f"there is no session {name}")
    return tip.new


def _known(store: Store, head: bytes | None, worktree: Worktree) -> tuple[bytes, ...]:
    """The tree that most likely knows what may be deleted: that of the turn now."""
    record = store.objects.snapshots.record(head) if head else None
    same = record is not None and record.worktree == str(worktree.root)
    return (record.files,) if record and record.files and same else ()


def _mover(
    store: Store, name: str, head: bytes, to: bytes, op: str, facts: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], Move | None]:
    def commit(info: Mapping[str, Any]) -> Move | None:
        update = Update(refs.SESSIONS + name, to, head, op, store.clock(), {**facts, **info})
        try:
            return store.engine.commit([], update)
        except RefMoved as moved:
            raise RefMoved(name, moved.expected, moved.actual) from None

    return commit


def _below(root: Path, path: str) -> bytes:
    """A path relative to the root as it is stored. Raises NotFound for one that leads out of it."""
    given = Path(path)
    inside = os.path.relpath(given, root) if given.is_absolute() else os.path.normpath(path)
    if inside == ".." or inside.startswith("../"):
        raise NotFound(f"{path} does not lie in {root}")
    return b"" if inside == "." else os.fsencode(inside)
