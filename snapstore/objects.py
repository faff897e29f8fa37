"""The objects of a store as content: what the layers above read and write through an engine.

New objects are put into a ``Stage`` and become durable when that is committed. Until then they can
be read by their id like any other, for a tree is built from its leaves up.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from snapstore import values
from snapstore.chunks import WHOLE, objects_of, stream
from snapstore.engine import Engine, Kind, Move, Obj, Update
from snapstore.errors import Corrupt
from snapstore.frozen import FrozenDict, freeze
from snapstore.ids import object_id
from snapstore.model.extents import Lists
from snapstore.model.maps import Maps
from snapstore.model.snapshot import Snapshots


class Objects:
    """An engine's objects, and the lists, maps and snapshots made of them. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # Not held on to: one that Ctrl-C kept from being detached goes when its owner does.
        self._stages: tuple[weakref.ref[Stage], ...] = ()
        self._mutex = threading.Lock()
        self.lists = Lists(self.content)
        self.maps = Maps(self.content)
        self.snapshots = Snapshots(self.content)

    def content(self, content_id: bytes) -> bytes:
        """The content of an object. Raises ObjectMissing or Corrupt."""
        o = self._object(content_id)
        return o.payload if o.kind != Kind.CHUNKED else self._joined(o)

    def _joined(self, o: Obj) -> bytes:
        content = b"".join(stream(o, self._object))
        if object_id(content) != o.id:
            raise Corrupt(f"the chunks of object {o.id.hex()} make up something else")
        return content

    def _object(self, content_id: bytes) -> Obj:
        for attached in self._stages:
            stage = attached()
            staged = stage.get(content_id) if stage is not None else None
            if staged is not None:
                return staged
        return self.engine.read(content_id)

    def value(self, content_id: bytes) -> Any:
        """The read-only value in an object."""
        return freeze(values.decode(self.content(content_id)))

    def values(self, content_ids: Sequence[bytes]) -> list[Any]:
        """The read-only values in objects, in the order asked for; neighbours are read together."""
        decode = values.decode
        found: list[Any] = []
        with _collector_paused():
            for o in self.engine.read_many(content_ids):
                value = decode(o[2] if o[1] != Kind.CHUNKED else self._joined(o))
                found.append(FrozenDict(value) if type(value) is dict else freeze(value))
        return found

    def contents(self, content_ids: Sequence[bytes]) -> list[bytes]:
        """The contents of objects, in the order asked for; neighbours are read together."""
        found = self.engine.read_many(content_ids)
        return [o[2] if o[1] != Kind.CHUNKED else self._joined(o) for o in found]

    # --- for the stages ---------------------------------------------------------------------------

    def attach(self, stage: Stage) -> None:
        """Let what a stage holds be read before it is committed."""
        with self._mutex:
            self._stages = (*(one for one in self._stages if one() is not None), weakref.ref(stage))

    def detach(self, stage: Stage) -> None:
        """A stage is done with; what it held is read from the engine from now on."""
        with self._mutex:
            stages = self._stages
            self._stages = tuple(s for s in stages if s() is not stage) if len(stages) > 1 else ()


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Decoding makes containers by the thousand and no cycles: the garbage collector would walk
    them again and again and find nothing, for a quarter of the time that a load takes."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class Stage:
    """New objects on their way into one commit. Belongs to one thread; ``with`` drops the rest."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._new: dict[bytes, Obj] = {}
        self.size = 0
        """How many bytes are staged."""

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *exc: object) -> None:
        self.drop()

    def get(self, content_id: bytes) -> Obj | None:
        """The staged object of this id."""
        return self._new.get(content_id)

    def put_node(self, content: bytes) -> bytes:
        """Stage a node of a list or map; its id."""
        return self.put(Obj(object_id(content), Kind.NODE, content))

    def put_snapshot(self, content: bytes) -> bytes:
        """Stage a snapshot; its id."""
        return self.put(Obj(object_id(content), Kind.SNAPSHOT, content))

    def put_content(self, content: bytes, content_id: bytes | None = None) -> bytes:
        """Stage content of any size; its id, which the caller may already know."""
        if len(content) <= WHOLE:
            return self.put(Obj(content_id or object_id(content), Kind.CONTENT, content))
        kept = objects_of(content, content_id)
        for o in kept:
            self.put(o)
        return kept[-1].id

    def put(self, o: Obj) -> bytes:
        """Stage an object that is ready made; its id."""
        if not self._new:
            self._objects.attach(self)
        self._new[o.id] = o
        self.size += len(o.payload)
        return o.id

    def commit(self, update: Update | None = None) -> Move | None:
        """Make everything staged durable and grant the update, or neither; see Engine.commit.

        When it raises, all stays staged, so that another update can be tried.
        """
        move = self._objects.engine.commit(list(self._new.values()), update)
        self.drop()
        return move

    def drop(self) -> None:
        """Forget what was staged."""
        if self._new:
            self._new = {}
            self.size = 0
            self._objects.detach(self)
