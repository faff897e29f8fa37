"""The history and the scratchpad that a turn of a thread shows; see ``plain`` for what they are.

What the turn before shows is taken over where the values are the same, so a turn costs what is new.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from snapstore.ids import object_id
from snapstore.integrations.langgraph.bodies import Bodies
from snapstore.integrations.langgraph.cuts import common_prefix
from snapstore.integrations.langgraph.plain import MESSAGES, is_shown, messages, state_value
from snapstore.integrations.langgraph.turns import PACKED, Checkpoint, Stored, Typed
from snapstore.model.maps import INLINE, Inline, Link, Value
from snapstore.objects import Objects, Stage
from snapstore.scratchpad import key_bytes, key_text

_LIST_32 = 0xDD


@dataclass(frozen=True, slots=True)
class Shown:
    """Tip of the list of messages, and root of the map of the state."""

    history: bytes | None = None
    scratchpad: bytes | None = None


def history(
    value: Typed | None,
    stored: Stored | None,
    before: tuple[Stored | None, bytes | None],
    bodies: Bodies,
    objects: Objects,
    stage: Stage,
) -> bytes | None:
    """Stage the history that a value of the channel of messages shows; its tip.

    Before are the value of the checkpoint before it and the history that shows that.
    """
    if value is None or stored is None or value[0] != PACKED:
        return None
    old, tip = before
    same, rest = _news(value[1], stored, old, bodies)
    if same > objects.lists.length(tip):
        same, rest = 0, value[1]
    shown = messages(rest)
    if shown is None:
        return None
    ids = [object_id(encoded) for encoded in shown]
    if same == 0:
        known = objects.lists.slice(tip, 0, len(ids))
        pairs = enumerate(zip(ids, known, strict=False))
        same = next((at for at, (new, there) in pairs if new != there), min(len(ids), len(known)))
        ids, shown = ids[same:], shown[same:]
    for encoded, message_id in zip(shown, ids, strict=True):
        stage.put_content(encoded, message_id)
    return objects.lists.replace(tip, same, ids, stage.put_node)


def _news(data: bytes, stored: Stored, old: Stored | None, bodies: Bodies) -> tuple[int, bytes]:
    """How many messages are as in the value before, and the others as a packed list."""
    mine = bodies.known(stored.body) if stored.linked else None
    theirs = bodies.known(old.body) if old is not None and old.linked else None
    if mine is None or theirs is None or not mine.cut.members or not theirs.cut.members:
        return 0, data
    shared = common_prefix(mine.data, theirs.data)
    same = bisect_right(mine.cut.members, shared)
    if same == 0 or theirs.cut.members[:same][-1] != mine.cut.members[same - 1]:
        return 0, data
    count = len(mine.cut.members) - same
    header = bytes([_LIST_32]) + count.to_bytes(4, "big")
    return same, header + mine.data[mine.cut.members[same - 1] :]


def scratchpad(
    checkpoint: Checkpoint,
    changed: Mapping[str, Typed],
    before: bytes | None,
    objects: Objects,
    stage: Stage,
) -> bytes | None:
    """Stage the scratchpad that the values of a checkpoint show; its root."""
    changes: dict[bytes, Value | None] = {
        name: None
        for name, _ in objects.maps.items(before)
        if key_text(name) not in checkpoint.values
    }
    for channel, value in changed.items():
        if is_shown(channel):
            changes[key_bytes(channel)] = _entry(state_value(value), stage)
    return objects.maps.update(before, changes, stage.put_node)


def _entry(encoded: bytes | None, stage: Stage) -> Value | None:
    if encoded is None:
        return None
    return Inline(encoded) if len(encoded) <= INLINE else Link(stage.put_content(encoded))


def shown_by(
    checkpoint: Checkpoint,
    changed: Mapping[str, Typed],
    before: tuple[Checkpoint | None, Shown],
    bodies: Bodies,
    objects: Objects,
    stage: Stage,
) -> Shown:
    """Stage what a checkpoint shows, given the one that it follows and what that shows."""
    parent, showed = before
    tip = showed.history
    if MESSAGES in changed or MESSAGES not in checkpoint.versions:
        old = parent.values.get(MESSAGES) if parent is not None else None
        value, stored = changed.get(MESSAGES), checkpoint.values.get(MESSAGES)
        tip = history(value, stored, (old, tip), bodies, objects, stage)
    return Shown(tip, scratchpad(checkpoint, changed, showed.scratchpad, objects, stage))
