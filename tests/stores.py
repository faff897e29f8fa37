"""The places that the library tests keep their stores in, one for each kind of engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from snapstore import ObjectMissing, Store
from snapstore.engine import Engine, Move, Obj, Problem, Progress, Update
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.memory import MemoryEngine
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.engines.sheet import Scanned, Sheet
from snapstore.links import links

ENGINES = ("memory", "log", "object store")

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def ticking(step: int = SECOND, start: int = START) -> Callable[[], int]:
    """A clock that goes on by one step each time it is looked at."""
    return count(start, step).__next__


@dataclass
class Place:
    """Where one store is kept. Every handle that is opened on it sees the same store."""

    make: Callable[[], Engine]
    kind: str = ""
    clock: Callable[[], int] = field(default_factory=ticking)
    opened: ExitStack = field(default_factory=ExitStack)

    def engine(self) -> Engine:
        """A further engine, closed with the place."""
        engine = self.make()
        self.opened.callback(engine.close)
        return engine

    def open(self) -> Store:
        """A further handle, which has nothing cached."""
        return Store(self.engine(), clock=self.clock)

    def counted(self) -> tuple[Store, Counting]:
        """A further handle, and what it asks of its engine from now on."""
        counting = Counting(self.engine())
        return Store(cast(Engine, counting), clock=self.clock), counting

    def lacking(self, *lost: bytes) -> Store:
        """A further handle, to which these objects are missing."""
        return Store(lacking_engine(self.engine(), set(lost)), clock=self.clock)

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *exc: object) -> None:
        self.opened.close()


def place_on(kind: str, directories: Iterator[Path]) -> Place:
    """A place for one store, with nothing in it yet."""
    if kind == "memory":
        shared = MemoryEngine()
        return Place(lambda: shared, kind)
    if kind == "object store":
        bucket = Bucket.in_memory()
        return Place(lambda: ObjectStoreEngine(bucket, links=links), kind)
    root = next(directories) / "store"
    return Place(lambda: LogEngine(root, durable=False), kind)


def run_machine(
    machine: Callable[[Place], RuleBasedStateMachine],
    new_place: Callable[[], Place],
    *,
    examples: int,
    steps: int,
) -> None:
    """Run a state machine as a test, each example in a place of its own."""
    run_state_machine_as_test(
        lambda: machine(new_place()),  # type: ignore[arg-type]  # a factory does as a type does
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )


class Counting:
    """An engine that notes what it is asked for."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.read_ids: list[bytes] = []
        self.committed: list[Obj] = []
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def read(self, object_id: bytes) -> Obj:
        self.read_ids.append(object_id)
        return self._engine.read(object_id)

    def read_many(self, object_ids: Sequence[bytes]) -> list[Obj]:
        self.read_ids += object_ids
        return self._engine.read_many(object_ids)

    def commit(self, objects: Sequence[Obj], update: Update | None = None) -> Move | None:
        self.commits += 1
        self.committed += objects
        return self._engine.commit(objects, update)

    def forget(self) -> None:
        """Begin to count anew."""
        self.read_ids.clear()
        self.committed.clear()
        self.commits = 0


class Lacking(Counting):
    """An engine that has lost some of its objects."""

    def __init__(self, engine: Engine, lost: set[bytes]) -> None:
        super().__init__(engine)
        self._lost = lost

    def contains(self, object_id: bytes) -> bool:
        return object_id not in self._lost and self._engine.contains(object_id)

    def kind(self, object_id: bytes) -> int:
        return self.read(object_id).kind

    def read(self, object_id: bytes) -> Obj:
        if object_id in self._lost:
            raise ObjectMissing(object_id)
        return super().read(object_id)

    def read_many(self, object_ids: Sequence[bytes]) -> list[Obj]:
        return [self.read(object_id) for object_id in object_ids]


class LackingInFiles(Lacking):
    """The same, of an engine that can be looked through."""

    def scan(self, share: float, progress: Progress | None = None) -> Iterator[Problem | Sheet]:
        for found in self._engine.scan(share, progress):
            yield found if isinstance(found, Problem) else self._without_lost(found)

    def _without_lost(self, sheet: Sheet) -> Sheet:
        left = [at for at, i in enumerate(sheet.ids) if i not in self._lost]
        return sheet._replace(
            ids=[sheet.ids[at] for at in left],
            sizes=[sheet.sizes[at] for at in left],
            contents=[sheet.contents[at] for at in left] if sheet.contents else [],
            others=[o for o in sheet.others if o.id not in self._lost],
        )


def lacking_engine(engine: Engine, lost: set[bytes]) -> Engine:
    """An engine that has lost some of its objects, whatever it is asked for them by."""
    lacking = LackingInFiles if isinstance(engine, Scanned) else Lacking
    return cast(Engine, lacking(engine, lost))
