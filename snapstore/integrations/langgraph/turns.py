"""What a turn of a thread holds: a checkpoint, and writes that came in until the next one.

It stands in the map that a snapshot calls its state. Keys and the msgpack arrays at them:

    checkpoint            [namespace, id, parent id]
    rest, metadata        [type, head, body]            the checkpoint without values, its metadata
    value/CHANNEL         [version, type, head, body]   of each channel that has a value
    write/KEY             [task path, channel, type, head, body]
                          KEY is the array [namespace, checkpoint id, task id, index]
    body/..., body of ... the body of a value or write, a link, if it is not in the array (nil there)
    index                 the pages of an index, a link; see ``index``

Types and bytes are what the serialiser made of a value, and are never decoded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import msgpack

from snapstore.errors import Corrupt
from snapstore.integrations.langgraph.bodies import Bodies
from snapstore.integrations.langgraph.cuts import cut
from snapstore.model.maps import INLINE, Inline, Link
from snapstore.model.maps import Value as MapValue
from snapstore.objects import Stage

Typed: TypeAlias = tuple[str, bytes]
"""A serialised value: what it is, and its bytes."""

Entries: TypeAlias = dict[bytes, MapValue]

INDEX = b"index"
INLINE_REST = 4 << 10
"""Up to so many bytes the rest of a checkpoint stands in the map itself: no two are alike."""

_CHECKPOINT, _REST, _METADATA = b"checkpoint", b"rest", b"metadata"
_VALUE, _WRITE = b"value/", b"write/"
_BODY = b"body of "
PACKED = "msgpack"
"""The type of values that are cut."""


class Key(NamedTuple):
    """What names a checkpoint in a thread."""

    namespace: str
    checkpoint: str


class Place(NamedTuple):
    """Where a write belongs among those to one checkpoint."""

    task: str
    index: int


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


# --- map entries -----------------------------------------------------------------------------


def checkpoint_entries(checkpoint: Checkpoint) -> Entries:
    """The entries of a checkpoint."""
    entries: Entries = {_CHECKPOINT: Inline(_pack([*checkpoint.key, checkpoint.parent]))}
    _put(entries, _REST, [], checkpoint.rest)
    _put(entries, _METADATA, [], checkpoint.metadata)
    for channel, stored in checkpoint.values.items():
        at = _VALUE + _text(channel)
        _put(entries, at, [checkpoint.versions.get(channel)], stored)
    return entries


def write_entries(key: Key, place: Place, write: Write) -> Entries:
    """The entries of a write."""
    entries: Entries = {}
    _put(entries, _WRITE + _pack([*key, *place]), [write.path, write.channel], write.value)
    return entries


def checkpoint_of(entries: Mapping[bytes, MapValue]) -> Checkpoint | None:
    """The checkpoint among these entries, if there is one."""
    found = entries.get(_CHECKPOINT)
    if not isinstance(found, Inline):
        return None
    namespace, name, parent = _unpack(found.content, 3)
    _, rest = _get(entries, _REST, 0)
    _, metadata = _get(entries, _METADATA, 0)
    versions: dict[str, Any] = {}
    values: dict[str, Stored] = {}
    for at in entries:
        if at.startswith(_VALUE):
            channel = at.removeprefix(_VALUE).decode("utf-8", "surrogatepass")
            (versions[channel],), values[channel] = _get(entries, at, 1)
    return Checkpoint(Key(namespace, name), parent, rest, metadata, versions, values)


def writes_of(entries: Mapping[bytes, MapValue], key: Key) -> dict[Place, Write]:
    """The writes to a checkpoint among these entries."""
    found: dict[Place, Write] = {}
    for at in entries:
        if at.startswith(_WRITE):
            namespace, checkpoint, task, index = _unpack(at.removeprefix(_WRITE), 4)
            if (namespace, checkpoint) == key:
                (path, channel), stored = _get(entries, at, 2)
                found[Place(task, index)] = Write(path, channel, stored)
    return found


def keys_of(entries: Mapping[bytes, MapValue]) -> tuple[Key | None, frozenset[Key]]:
    """Which checkpoint is among these entries, and which ones they hold writes to."""
    found = entries.get(_CHECKPOINT)
    mine = Key(*_unpack(found.content, 3)[:2]) if isinstance(found, Inline) else None
    at = (key.removeprefix(_WRITE) for key in entries if key.startswith(_WRITE))
    return mine, frozenset(Key(*_unpack(packed, 4)[:2]) for packed in at)


def _put(entries: Entries, at: bytes, fields: list[Any], stored: Stored) -> None:
    body = None if stored.linked else stored.body
    entries[at] = Inline(_pack([*fields, stored.type, stored.head, body]))
    if stored.linked:
        entries[_BODY + at] = Link(stored.body)


def _get(
    entries: Mapping[bytes, MapValue], at: bytes, before: int
) -> tuple[list[Any], Stored]:
    """The fields before the value, and the value."""
    entry = entries.get(at)
    if not isinstance(entry, Inline):
        raise Corrupt(f"a turn of a thread has nothing at {at!r}")
    *fields, type_, head, body = _unpack(entry.content, before + 3)
    if body is not None:
        return fields, Stored(type_, head, body, linked=False)
    link = entries.get(_BODY + at)
    if not isinstance(link, Link):
        raise Corrupt(f"the value at {at!r} of a turn is not there")
    return fields, Stored(type_, head, link.id, linked=True)


def _pack(fields: list[Any]) -> bytes:
    packed: bytes = msgpack.packb(fields, unicode_errors="surrogatepass")
    return packed


def _unpack(packed: bytes, count: int) -> list[Any]:
    try:
        fields = msgpack.unpackb(packed, unicode_errors="surrogatepass")
    except (ValueError, TypeError) as error:
        raise Corrupt(f"a turn of a thread holds what is no array ({error})") from error
    if type(fields) is not list or len(fields) != count:
        raise Corrupt(f"a turn of a thread holds no array of {count} fields")
    return fields


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
