"""Whether a line of turns goes on from another one: what decides where an import lands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from snapstore.errors import Corrupt, ObjectMissing
from snapstore.objects import Objects


def goes_on_from(objects: Objects, head: bytes, old: bytes, *, grown: bool) -> bool:
    """Whether the line that ends at head holds the turn old.

    Where ``grown`` is true it also does when it holds that turn with more at its end: old was read
    in the middle of the turn, or of its last message. O(log n) reads, and those of what the two do
    not share. A line that cannot be read holds nothing.
    """
    try:
        was = objects.snapshots.record(old)
        if was.turn > objects.snapshots.record(head).turn:
            return False
        there = objects.snapshots.at_turn(head, was.turn)
        now = objects.snapshots.record(there)
        if there == old or not grown or was.parent != now.parent:
            return there == old
        return history_grew(objects, was.history, now.history)
    except (ObjectMissing, Corrupt):
        return False


def history_grew(objects: Objects, was: bytes | None, now: bytes | None) -> bool:
    """Whether a history is another one with more at its end, be it only in its last message."""
    lists = objects.lists
    missing = lists.length(was) - lists.common_prefix(was, now)
    if missing != 1 or lists.length(now) < lists.length(was):
        return missing == 0
    last = lists.length(was) - 1
    old, new = (objects.value(lists.item(tip, last)) for tip in (was, now))
    return _message_grew(old, new)


def _message_grew(old: Any, new: Any) -> bool:
    """Whether a reply is the same as another one with more blocks."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return False
    said, says = old.get("content"), new.get("content")
    if not isinstance(said, Sequence) or not isinstance(says, Sequence):
        return False
    same = "id" in old and old["id"] == new.get("id")
    return same and type(said) is type(says) and list(says[: len(said)]) == list(said)


def differ_beside_history(objects: Objects, one: bytes, other: bytes) -> bool:
    """Whether two turns are the same but for their files, or the rows that they were read from."""
    mine, theirs = (objects.snapshots.record(turn) for turn in (one, other))
    alike = (mine.parent, mine.history) == (theirs.parent, theirs.history)
    return alike and (mine.files, mine.rows) != (theirs.files, theirs.rows)


def begins_with(objects: Objects, head: bytes, first: bytes) -> bool:
    """Whether this is the first turn of the line that ends at head."""
    return goes_on_from(objects, head, first, grown=False)
