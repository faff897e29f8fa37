"""Pushing what changed to the remotes that ask for it (``auto_push``), so that saves need not wait.

Nothing here begins by itself: a program calls ``push_changes`` when it likes, after a save or in a
thread or process of its own. The command line does so in a process that it starts after each save.

    cache/push.lock   flock target, held by whoever pushes
    cache/pushed      what became of the last push to each remote: safe to delete, for then the next
                      one looks at every session again

A store that has no directory of its own keeps none of this, and looks at every session each time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from snapstore import refs, values
from snapstore.engine import Move
from snapstore.errors import Locked, SnapstoreError, StoreNotFound, Unreachable
from snapstore.plainfile import read_plain
from snapstore.store import Store, open_store
from snapstore.transfer.remotes import Remote, remotes
from snapstore.worktree.local import Local

CUT_OFF = "it was cut off before it ended; the next one goes on from there"

_PATIENCE = 0.5
"""Seconds to wait for the lock: longer than anybody holds it who only looks whether it is taken."""
_LONGEST = 500
"""Characters of an error that are kept."""
_KINDS = (refs.SESSIONS, refs.TAGS)


@dataclass(frozen=True, slots=True)
class LastPush:
    """What became of the last push to a remote. Times are microseconds since the epoch, UTC."""

    place: str
    began: int
    ended: int | None = None
    """None while it is under way."""
    error: str = ""
    """Why it failed; empty when it did not."""
    offline: bool = False
    """Whether it failed in a way that the next one may mend by itself: the remote was not reached,
    or the process was killed."""
    mark: tuple[str, int, int] | None = None
    """Ref, gen and time of the newest move that is known to be there, with all before it."""


def wanted(store: Store) -> dict[str, Remote]:
    """The remotes that ask to be pushed to after each save, by name. Raises Corrupt."""
    return {name: one for name, one in remotes(store).items() if one.auto_push}


def behind(store: Store) -> list[str]:
    """The names of those that a session or tag, as it stands now, has yet to go to."""
    asked = wanted(store)
    known = _read(store) if asked else {}
    return [
        name
        for name, one in asked.items()
        if next(_moves(store, _mark(known.get(name), one)), None) is not None
    ]


def is_under_way(store: Store) -> bool:
    """Whether a process pushes just now. It looks for what changed once more before it ends."""
    if store.local is None or not _lock_of(store.local).exists():
        return False
    with _locked(store) as ours:
        return not ours


def last_pushes(store: Store) -> dict[str, LastPush]:
    """What became of the last push to each remote that asks for them, by name.

    One whose process was killed counts as failed.
    """
    asked, known = wanted(store), _read(store)
    found = {name: known[name] for name, one in asked.items() if _is_of(known.get(name), one)}
    begun = [name for name, one in found.items() if one.ended is None]
    if begun and not is_under_way(store):
        found |= {name: replace(found[name], error=CUT_OFF, offline=True) for name in begun}
    return found


def push_changes(
    store: Store, opened: Callable[..., Store] = open_store, *, lock: int | None = None
) -> dict[str, LastPush]:
    """Push what changed since the last time to each remote that asks for it.

    What became of each, by name: a remote that fails is told, not raised, and is no reason to leave
    out another. Nothing is done, and nothing returned, while another process is at it: that one
    looks again before it ends, so no save is missed. ``opened(place, create=..)`` opens a remote;
    one that was pushed to before is not made again where it is gone, as a disk that is not there.
    ``lock`` is one that ``take_lock`` took, maybe in the process that started this one.
    """
    done: dict[str, LastPush] = {}
    seen: Move | None = None
    # Once more after the lock is free: who saved while it was not relies on its holder.
    while _newest(store) != seen:
        with _locked(store, lock, patience=_PATIENCE) as ours:
            lock = None
            if not ours:
                break
            while (newest := _newest(store)) != seen:
                seen = newest
                for name, one in wanted(store).items():
                    done[name] = _push(store, name, one, opened)
    return done


def _push(store: Store, name: str, one: Remote, opened: Callable[..., Store]) -> LastPush:
    mark = _mark(_read(store).get(name), one)
    newest = _newest(store)
    names = _names(store, mark)
    push = LastPush(one.place, store.clock(), mark=mark)
    _keep(store, name, push)
    try:
        if names:
            _carry(store, names, lambda: opened(one.place, create=mark is None))
        push = replace(push, mark=_as_mark(newest) if newest else None)
    except (SnapstoreError, OSError) as error:
        offline = isinstance(error, (Unreachable, StoreNotFound))
        push = replace(push, error=str(error)[:_LONGEST], offline=offline)
    push = replace(push, ended=store.clock())
    _keep(store, name, push)
    return push


def _carry(store: Store, names: list[str], opened: Callable[[], Store]) -> None:
    from snapstore.transfer.carry import carry  # who only looks whether to push need not load it

    described = str(store.local.root) if store.local else ""
    with opened() as target:
        carry(store, target, names, op="push", described=described)


# --- what changed ----------------------------------------------------------------------------


def _moves(store: Store, mark: tuple[str, int, int] | None = None) -> Iterator[Move]:
    """The moves of sessions and tags after a mark, newest first; all when it is not found."""
    for move in store.engine.reflog():
        if _as_mark(move) == mark:
            return
        if move.ref.startswith(_KINDS):
            yield move


def _newest(store: Store) -> Move | None:
    return next(_moves(store), None)


def _names(store: Store, mark: tuple[str, int, int] | None) -> list[str]:
    """The sessions and tags that moved after a mark and are there still."""
    moved = dict.fromkeys(move.ref for move in _moves(store, mark))
    live = [ref for ref in moved if refs.live(store.engine, ref)]
    return list(dict.fromkeys(ref.partition("/")[2] for ref in live))


def _as_mark(move: Move) -> tuple[str, int, int]:
    return move.ref, move.gen, move.time


def _mark(last: LastPush | None, one: Remote) -> tuple[str, int, int] | None:
    return last.mark if last is not None and _is_of(last, one) else None


def _is_of(last: LastPush | None, one: Remote) -> bool:
    """Whether a remote is still the one that was pushed to under its name."""
    return last is not None and last.place == one.place


# --- what is kept of it ----------------------------------------------------------------------


def _read(store: Store) -> dict[str, LastPush]:
    if store.local is None:
        return {}
    try:
        kept = values.decode(read_plain(store.local.root / "cache" / "pushed"))
        return {
            name: LastPush(**{**one, "mark": tuple(one["mark"]) if one["mark"] else None})
            for name, one in kept.items()
        }
    except (OSError, SnapstoreError, AttributeError, KeyError, TypeError, ValueError):
        return {}  # it is a cache: what cannot be read is made anew


def _keep(store: Store, name: str, push: LastPush) -> None:
    if store.local is None:
        return
    asked = wanted(store)
    known = {n: one for n, one in _read(store).items() if n in asked} | {name: push}
    document = {n: {**asdict(one), "mark": list(one.mark or ())} for n, one in known.items()}
    path = store.local.root / "cache" / "pushed"
    store.local.disk.write_cache(path, values.encode(document))


# --- one at a time ---------------------------------------------------------------------------


def take_lock(local: Local, *, patience: float = 0) -> int | None:
    """A descriptor that keeps other processes from pushing until it, and every copy that a child
    was given, is closed; None when it is not to be had within so many seconds."""
    local.disk.make_dir(_lock_of(local).parent)
    fd = local.disk.open_lock(_lock_of(local))
    held = False
    try:
        local.disk.lock(fd, timeout=patience)
        held = True
    except Locked:
        return None
    finally:
        if not held:
            os.close(fd)
    return fd


@contextlib.contextmanager
def _locked(store: Store, lock: int | None = None, *, patience: float = 0) -> Iterator[bool]:
    """Hold this lock, or take it; whether that was possible."""
    if store.local is None:
        yield True
        return
    fd = take_lock(store.local, patience=patience) if lock is None else lock
    try:
        yield fd is not None
    finally:
        if fd is not None:
            os.close(fd)


def _lock_of(local: Local) -> Path:
    return local.root / "cache" / "push.lock"
