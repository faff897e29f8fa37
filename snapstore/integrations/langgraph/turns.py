"""What a turn of a thread holds: a checkpoint, and writes that came in until the next one.

It hangs on the map that a snapshot calls its state, whose values are all links:

    checkpoint    [namespace, id, parent id, rest, metadata, [[channel, version, value], ...]]
    write/N       [namespace, checkpoint id, task path, [[task id, index, channel, value], ...]];
                  N counts from 0, four bytes, big-endian
    index         a page of an index; see ``index``
    8 bytes       the body of a value, whose id begins so (or 32 bytes, the id, should two begin so)

Rest is the checkpoint without its values. It, metadata and each value are [type, head, body] where
type is what the serialiser says they are, and [type, head, key] with a fourth field, true, where
the body is an object of its own. What the serialiser made is never decoded here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import msgpack

from snapstore.errors import Corrupt
from snapstore.integrations.langgraph.bodies import Bodies
from snapstore.integrations.langgraph.cuts import cut
from snapstore.model.maps import INLINE, Link
from snapstore.model.maps import Value as MapValue
from snapstore.model.wire import Read
from snapstore.objects import Stage

Typed: TypeAlias = tuple[str, bytes]
"""A serialised value: what it is, and its bytes."""

Entries: TypeAlias = dict[bytes, MapValue]

INDEX = b"index"
PACKED = "msgpack"
"""The type of values that are cut."""

INLINE_REST = 4 << 10
"""Up to so many bytes the rest of a checkpoint needs no object of its own: no two are alike."""

_CHECKPOINT, _WRITE = b"checkpoint", b"write/"
_PREFIX = 8


class Key(NamedTuple):
    """What names a checkpoint in a thread."""

    namespace: str
    checkpoint: str


class Place(NamedTuple):
    """Where a write belongs among those to one checkpoint."""

    task: str
    at: int
    """Its number among the writes of the task, or below 0 what kind of special write it is."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A serialised value as it is kept."""

    type: str
    head: bytes
    body: bytes
    """The body itself, or its id."""
    linked: bool


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint as it is kept."""

    key: Key
    parent: str | None
    rest: Stored
    metadata: Stored
    versions: Mapping[str, Any]
    values: Mapping[str, Stored]


@dataclass(frozen=True, slots=True)
class Write:
    """A write of a task to a channel."""

    path: str
    channel: str
    value: Stored


# --- values ----------------------------------------------------------------------------------


def store(
    value: Typed,
    bodies: Bodies,
    stage: Stage,
    before: Stored | None = None,
    *,
    inline: int = INLINE,
) -> Stored:
    """Stage a serialised value; before is one that it may begin as."""
    type_, data = value[0], bytes(value[1])
    if len(data) <= inline:
        return Stored(type_, b"", data, linked=False)
    if type_ != PACKED:
        return Stored(type_, b"", stage.put_content(data), linked=True)
    old = bodies.known(before.body) if before is not None and before.linked else None
    places = cut(data, (old.data, old.cut) if old is not None else None)
    head, body = data[: places.head], data[places.head :]
    return Stored(type_, head, bodies.keep(body, places, stage, old), linked=True)


def load(stored: Stored, bodies: Bodies) -> Typed:
    """The serialised value. Raises ObjectMissing or Corrupt."""
    body = bodies.read(stored.body) if stored.linked else stored.body
    return stored.type, stored.head + body if stored.head else body


# --- writing a turn --------------------------------------------------------------------------


def add_checkpoint(entries: Entries, checkpoint: Checkpoint, stage: Stage) -> None:
    """Stage a checkpoint, and add it to the entries of a turn."""
    held = [
        [channel, checkpoint.versions.get(channel), _fields(stored, entries)]
        for channel, stored in checkpoint.values.items()
    ]
    rest, metadata = (_fields(s, entries) for s in (checkpoint.rest, checkpoint.metadata))
    packed = _pack([*checkpoint.key, checkpoint.parent, rest, metadata, held])
    entries[_CHECKPOINT] = Link(stage.put_content(packed))


def add_writes(entries: Entries, key: Key, writes: Mapping[Place, Write], stage: Stage) -> None:
    """Stage writes to a checkpoint, and add them to the entries of a turn."""
    by_path: dict[str, list[Any]] = {}
    for place, write in writes.items():
        fields = [*place, write.channel, _fields(write.value, entries)]
        by_path.setdefault(write.path, []).append(fields)
    for path, fields in by_path.items():
        number = sum(at.startswith(_WRITE) for at in entries)
        packed = _pack([*key, path, fields])
        entries[_WRITE + number.to_bytes(4, "big")] = Link(stage.put_content(packed))


def _fields(stored: Stored, entries: Entries) -> list[Any]:
    if not stored.linked:
        return [stored.type, stored.head, stored.body]
    link = Link(stored.body)
    at = stored.body[:_PREFIX]
    if entries.setdefault(at, link) != link:
        at = stored.body
        entries[at] = link
    return [stored.type, stored.head, at, True]


# --- reading a turn --------------------------------------------------------------------------


def checkpoint_of(entries: Mapping[bytes, MapValue], read: Read) -> Checkpoint | None:
    """The checkpoint among the entries of a turn, if there is one."""
    if _CHECKPOINT not in entries:
        return None
    namespace, name, parent, rest, metadata, held = _record(entries, _CHECKPOINT, read, 6)
    return Checkpoint(
        Key(namespace, name),
        parent,
        _stored(rest, entries),
        _stored(metadata, entries),
        {channel: version for channel, version, _ in held},
        {channel: _stored(value, entries) for channel, _, value in held},
    )


def writes_of(
    entries: Mapping[bytes, MapValue], read: Read, wanted: Callable[[Key], bool]
) -> Iterator[tuple[Key, Place, Write]]:
    """The writes among the entries of a turn to checkpoints that are wanted, the oldest first."""
    for at in sorted(at for at in entries if at.startswith(_WRITE)):
        namespace, checkpoint, path, fields = _record(entries, at, read, 4)
        key = Key(namespace, checkpoint)
        if wanted(key):
            for task, index, channel, value in fields:
                yield key, Place(task, index), Write(path, channel, _stored(value, entries))


def keys_of(entries: Mapping[bytes, MapValue], read: Read) -> tuple[Key | None, frozenset[Key]]:
    """Which checkpoint is among the entries of a turn, and to which ones they hold writes."""
    mine = None
    if _CHECKPOINT in entries:
        namespace, name, *_ = _record(entries, _CHECKPOINT, read, 6)
        mine = Key(namespace, name)
    at = [at for at in entries if at.startswith(_WRITE)]
    return mine, frozenset(Key(*_record(entries, where, read, 4)[:2]) for where in at)


def _record(entries: Mapping[bytes, MapValue], at: bytes, read: Read, count: int) -> list[Any]:
    link = entries[at]
    if not isinstance(link, Link):
        raise Corrupt(f"a turn of a thread has no link at {at!r}")
    try:
        fields = msgpack.unpackb(read(link.id), unicode_errors="surrogatepass")
    except (ValueError, TypeError) as error:
        raise Corrupt(f"object {link.id.hex()} is no part of a thread ({error})") from error
    if type(fields) is not list or len(fields) != count:
        raise Corrupt(f"object {link.id.hex()} is no part of a thread")
    return fields


def _stored(fields: list[Any], entries: Mapping[bytes, MapValue]) -> Stored:
    type_, head, body, *linked = fields
    if not linked:
        return Stored(type_, head, body, linked=False)
    link = entries.get(body)
    if not isinstance(link, Link):
        raise Corrupt("a turn of a thread lacks the body of a value")
    return Stored(type_, head, link.id, linked=True)


def _pack(fields: list[Any]) -> bytes:
    packed: bytes = msgpack.packb(fields, unicode_errors="surrogatepass")
    return packed
