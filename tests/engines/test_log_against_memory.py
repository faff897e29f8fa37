"""Any sequence of commits, reopenings, torn tails and lost caches looks like the memory engine."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from damage import QuickDisk
from given import content, node, save, snapshot
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from snapstore.engine import Obj, Update
from snapstore.engines.log import caches
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.engines.memory import MemoryEngine
from snapstore.errors import ObjectMissing, RefMoved

REFS = st.sampled_from(["a", "b", "dir/c"])
DATA = st.integers(0, 40)
WHICH = st.integers(0, 1)
KINDS = [content, node, snapshot]


def some_object(n: int) -> Obj:
    """One of the objects that the test plays with; each kind is met in every third number."""
    return KINDS[n % 3](b"object %d " % n * (1 + n % 5 * 20))


class LogAgainstMemory(RuleBasedStateMachine):
    """Two handles on one local store, and a memory engine that is told the same."""

    @initialize(seal_at=st.sampled_from([400, 2000, 1 << 20]))
    def start(self, seal_at: int) -> None:
        self.base = Path(tempfile.mkdtemp())
        self.root = self.base / "store"
        self.seal_at = seal_at
        self.model = MemoryEngine()
        self.handles = [self.open(), self.open()]

    def open(self) -> LogEngine:
        return LogEngine(self.root, disk=QuickDisk(), seal_at=self.seal_at)

    def teardown(self) -> None:
        for handle in self.handles:
            handle.close()
        shutil.rmtree(self.base)

    def both(self, which: int, objects: list[Obj], update: Update | None) -> None:
        """Commit to the log and to the model; both must say the same."""
        try:
            wanted = self.model.commit(objects, update)
        except RefMoved as refused:
            with pytest.raises(RefMoved) as moved:
                self.handles[which].commit(objects, update)
            assert (moved.value.expected, moved.value.actual) == (refused.expected, refused.actual)
            return
        assert self.handles[which].commit(objects, update) == wanted

    @rule(which=WHICH, ref=REFS, data=st.lists(DATA, max_size=4), head=DATA)
    def save(self, which: int, ref: str, data: list[int], head: int) -> None:
        tip = self.model.tip(ref)
        new = some_object(head)
        objects = [*map(some_object, data), new]
        self.both(which, objects, save(ref, new.id, tip.new if tip else None))

    @rule(which=WHICH, data=st.lists(DATA, max_size=4))
    def store(self, which: int, data: list[int]) -> None:
        self.both(which, [some_object(n) for n in data], None)

    @rule(which=WHICH, ref=REFS, head=DATA, expect=DATA, at=st.one_of(st.none(), st.integers(0, 4)))
    def save_with_a_guess(
        self, which: int, ref: str, head: int, expect: int, at: int | None
    ) -> None:
        update = save(ref, some_object(head).id, some_object(expect).id, at=at)
        self.both(which, [some_object(head)], update)

    @rule(which=WHICH, ref=REFS)
    def delete(self, which: int, ref: str) -> None:
        tip = self.model.tip(ref)
        self.both(which, [], save(ref, None, tip.new if tip else None))

    @rule(which=WHICH)
    def reopen(self, which: int) -> None:
        self.handles[which].close()
        self.handles[which] = self.open()

    @rule()
    def lose_the_cache(self) -> None:
        shutil.rmtree(self.root / "cache", ignore_errors=True)

    @rule()
    def lose_the_indexes(self) -> None:
        for path in self.root.glob("log/*.idx"):
            path.unlink()

    @precondition(lambda self: self.root.exists())
    @rule(tail=st.one_of(st.binary(min_size=1, max_size=60), st.integers(1, 300)))
    def tear(self, tail: bytes | int) -> None:
        """A killed process leaves noise, or the first bytes of an old batch, behind the log."""
        last = Layout(self.root).segment(Layout(self.root).segments_on_disk()[-1])
        with last.open("r+b") as file:
            torn = file.read(tail)[:-1] if isinstance(tail, int) else tail
            file.seek(0, 2)
            file.write(torn)

    @rule(which=WHICH, n=DATA)
    def read(self, which: int, n: int) -> None:
        o = some_object(n)
        assert self.handles[which].contains(o.id) == self.model.contains(o.id)
        if self.model.contains(o.id):
            assert self.handles[which].read(o.id) == o
            return
        with pytest.raises(ObjectMissing):
            self.handles[which].read(o.id)

    @rule(which=WHICH)
    def read_all(self, which: int) -> None:
        handle, model = self.handles[which], self.model
        ids = list(model.ids(b"", 0))
        assert list(handle.ids(b"", 0)) == ids
        assert handle.read_many([i for i, _ in ids]) == model.read_many([i for i, _ in ids])
        assert [p for p in handle.verify() if not p.harmless] == []

    @invariant()
    def refs_are_alike(self) -> None:
        for handle in self.handles:
            assert list(handle.tips()) == list(self.model.tips())
            assert list(handle.reflog()) == list(self.model.reflog())
            for tip in self.model.tips("dir/"):
                assert handle.move(tip.ref, 1) == self.model.move(tip.ref, 1)


TestLogAgainstMemory = LogAgainstMemory.TestCase
TestLogAgainstMemory.settings = settings(
    deadline=None,
    max_examples=150,
    stateful_step_count=35,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True, scope="module")
def small_indexes() -> object:
    """Index files after a few batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(caches, "EVERY", 6)
        patch.setattr(caches, "WORTH_CLOSING", 2)
        yield
