"""Retention: which sessions stay, by rule. What goes is deleted as a user would: undo brings it
back, and only a collection lets go of its turns.

A session stays when any rule says so. The current session always does, and so does one that a tag
points into, if asked: a tagged turn itself stays in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from snapstore.engine import Progress
from snapstore.errors import InvalidInput
from snapstore.times import moment

if TYPE_CHECKING:
    from snapstore.store import SessionInfo, Store


@dataclass(frozen=True, slots=True)
class Rule:
    """Which sessions are to stay. A part that is None says nothing."""

    last: int | None = None
    """The so many that were saved last."""
    within: timedelta | None = None
    """Those that were saved within this time."""
    tagged: bool = False
    """Those with a turn that has a tag."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a rule means for the sessions there are, each by name, the newest first."""

    kept: tuple[str, ...]
    deleted: tuple[str, ...]
    applied: bool


def forget(
    store: Store, rule: Rule, *, dry_run: bool = False, progress: Progress | None = None
) -> Forgotten:
    """Delete the sessions that no part of the rule keeps; progress is told of sessions.

    One that cannot be read stays: it is for repair to judge. Raises InvalidInput for a rule that
    says nothing, for that would be to delete everything.
    """
    if rule == Rule():
        raise InvalidInput("a rule must say what stays", hint="give --keep-last or --keep-within")
    newest_first = sorted(store.sessions(), key=_time, reverse=True)
    kept = [
        info.name
        for at, info in enumerate(newest_first)
        if info.problem is not None or info.name == store.current or _stays(store, rule, at, info)
    ]
    deleted = [info.name for info in newest_first if info.name not in set(kept)]
    if not dry_run:
        for done, name in enumerate(deleted, 1):
            store.delete(name)
            if progress is not None:
                progress(done, len(deleted))
    return Forgotten(tuple(kept), tuple(deleted), not dry_run)


def _time(info: SessionInfo) -> datetime:
    return info.time or datetime.max.replace(tzinfo=UTC)


def _stays(store: Store, rule: Rule, at: int, info: SessionInfo) -> bool:
    if rule.last is not None and at < rule.last:
        return True
    now = moment(store.clock())
    if rule.within is not None and _time(info) >= now - rule.within:
        return True
    return rule.tagged and _is_tagged(store, info)


def _is_tagged(store: Store, info: SessionInfo) -> bool:
    snapshots = store.objects.snapshots
    head = bytes.fromhex(info.head)
    for tagged in map(bytes.fromhex, store.tags().values()):
        turn = snapshots.record(tagged).turn
        if turn <= info.turn and snapshots.at_turn(head, turn) == tagged:
            return True
    return False
