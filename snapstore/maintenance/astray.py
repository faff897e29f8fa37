"""A text in what lies beside the objects of a store: an engine may keep more than refs need.

Saves that were cut off, and what was let go of and is not deleted yet, are of no use to anybody,
but what they hold can be read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from snapstore.chunks import pieces_of, stream
from snapstore.engine import Engine, Kind, Obj
from snapstore.errors import Corrupt, ObjectMissing
from snapstore.maintenance.unwanted import Unwanted


@runtime_checkable
class Straying(Protocol):
    """An engine whose storage holds objects that it does not list."""

    def strays(self) -> Iterator[Sequence[Obj]]:
        """These objects, those together that were stored together."""


def astray(engine: Engine, unwanted: Unwanted) -> set[bytes]:
    """The ids of such objects that hold a text, with the pieces of those that are in pieces."""
    found: set[bytes] = set()
    for together in engine.strays() if isinstance(engine, Straying) else ():
        by_id = {o.id: o for o in together}
        for o in together:
            if unwanted.is_in(_content(o, by_id, engine)):
                found.add(o.id)
                found.update(pieces_of(o.payload, o.id) if o.kind == Kind.CHUNKED else ())
    return found


def _content(o: Obj, by_id: Mapping[bytes, Obj], engine: Engine) -> bytes:
    """What an object holds; nothing where pieces of it are gone."""

    def read(object_id: bytes) -> Obj:
        return by_id.get(object_id) or engine.read(object_id)

    with contextlib.suppress(ObjectMissing, Corrupt):
        return b"".join(stream(o, read))
    return b""
