"""Power loss at every call that writes: what was acknowledged is there, the rest all or nothing."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from given import content, node, save, snapshot
from powerloss import (
    EVERYTHING,
    NONE,
    NOTHING,
    Faults,
    Journal,
    Luck,
    ProcessDied,
    RecordingDisk,
    Remark,
    Some,
    Step,
    Wreckage,
    any_luck,
)

from snapstore.disk import Disk
from snapstore.engine import Obj
from snapstore.engines.log import append, caches
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.engines.log.witness import Witness
from snapstore.errors import SnapstoreError

SEAL_AT = 1500
SPLIT_AT = 700


class QuickDisk(Disk):
    """For looking at what is left: nothing more can happen to it, so nothing needs to be synced."""

    def sync(self, fd: int) -> None:
        """Not needed."""

    def sync_dir(self, path: Path) -> None:
        """Not needed."""


@dataclass(frozen=True)
class Try:
    """A commit has begun."""

    ref: str | None
    new: bytes | None
    objects: tuple[Obj, ...]


@dataclass(frozen=True)
class Acknowledged:
    """A commit has returned."""

    of: Try


@dataclass
class Known:
    """What one may rely on at a moment, and what may be there besides."""

    done: list[Try] = field(default_factory=list)
    open: list[Try] = field(default_factory=list)

    def take(self, step: Step) -> None:
        """Go one step further."""
        if isinstance(step, Remark):
            if isinstance(step.what, Try):
                self.open.append(step.what)
            elif isinstance(step.what, Acknowledged):
                self.done.append(step.what.of)

    def check(self, left: Path) -> None:
        """That a store keeps it all, goes on, and is well."""
        engine = LogEngine(left, disk=QuickDisk(), seal_at=SEAL_AT)
        try:
            self._check_kept(engine)
            more = content(b"said after the crash")
            engine.commit([more], save("after", more.id, None))
            problems = [p for p in engine.verify() if not p.harmless]
            assert problems == [], problems
        finally:
            engine.close()
        again = LogEngine(left, disk=QuickDisk())
        try:
            self._check_kept(again)
            assert again.read(more.id) == more
        finally:
            again.close()

    def _check_kept(self, engine: LogEngine) -> None:
        present = {move.new for move in engine.reflog()}
        for tried in self.done:
            assert tried.new is None or tried.new in present, "an acknowledged move is gone"
            assert engine.read_many([o.id for o in tried.objects]) == list(tried.objects)
        for tried in self.open:
            if tried.new in present:
                assert engine.read_many([o.id for o in tried.objects]) == list(tried.objects)
        for name in {tried.ref for tried in self.done if tried.ref}:
            self._check_ref(engine, name)

    def _check_ref(self, engine: LogEngine, name: str) -> None:
        tip = engine.tip(name)
        assert tip is not None
        last = [tried.new for tried in self.done if tried.ref == name][-1]
        tries = [tried.new for tried in self.open if tried.ref == name]
        assert tip.new in [last, *tries[tries.index(last) + 1 :]]
        assert [engine.move(name, gen) is not None for gen in range(1, tip.gen + 1)].count(
            False
        ) == 0


class Workload:
    """Processes that commit to one store, one of which dies now and then."""

    def __init__(self, journal: Journal, root: Path, seed: int, faults: Faults = NONE) -> None:
        self._journal, self._root, self._faults = journal, root, faults
        self._rng = random.Random(seed)
        self._names = (b"%d of %d" % (n, seed) for n in count())
        self._handles: list[tuple[LogEngine, RecordingDisk]] = []

    def run(self, commits: int, *, deaths: int = 0) -> None:
        """Commit so many times; now and then a process is killed."""
        dying = set(self._rng.sample(range(1, commits), deaths))
        self._handles = [self._start(), self._start()]
        for i in range(commits):
            at = self._rng.randrange(2)
            tried = self._next_try()
            if i in dying:
                self._die(at, tried)
            elif self._rng.random() < 0.1:
                self._handles[at][0].close()
                self._handles[at] = self._start()
            self._commit(at, tried)
        for engine, _ in self._handles:
            engine.close()

    def _start(self) -> tuple[LogEngine, RecordingDisk]:
        disk = RecordingDisk(self._journal, faults=self._faults)
        return LogEngine(self._root, disk=disk, seal_at=SEAL_AT), disk

    def _die(self, at: int, tried: Try) -> None:
        """The same commit is tried by a process that is killed on the way."""
        engine, disk = self._handles[at]
        disk.dies_after = self._rng.randrange(12)
        try:
            self._commit(at, tried)
            engine.close()
        except ProcessDied:
            engine._drop_files()  # as the kernel does
        self._handles[at] = self._start()

    def _next_try(self) -> Try:
        name = next(self._names)
        size = self._rng.choice((10, 100, 600))
        objects = [content(name + self._rng.randbytes(size))]
        objects.append(node(b"node " + name))
        if self._rng.random() < 0.15:
            objects += [content(self._rng.randbytes(500)) for _ in range(4)]
        ref = self._rng.choice(("a", "b", "c", None))
        if ref is None:
            return Try(None, None, tuple(objects))
        snap = snapshot(b"snapshot " + name)
        return Try(ref, snap.id, (*objects, snap))

    def _commit(self, at: int, tried: Try) -> None:
        engine, _ = self._handles[at]
        self._journal.steps.append(Remark(tried))
        update = None
        if tried.ref is not None:
            tip = engine.tip(tried.ref)
            if tip is None or tip.new != tried.new:  # else the one who died got that far
                update = save(tried.ref, tried.new, tip.new if tip else None)
        engine.commit(tried.objects, update)
        self._journal.steps.append(Remark(Acknowledged(tried)))


def crashes(
    journal: Journal, known: Known, rng: random.Random, tmp: Path, each: int
) -> Iterator[tuple[Path, Known]]:
    """Stores as a power loss at each step may leave them, each step ``each`` times."""
    wreckage = Wreckage(journal)
    target = tmp / "left"
    tmp.mkdir(exist_ok=True)
    for step in [Remark("start"), *journal.steps]:
        wreckage.take(step)
        known.take(step)
        for _ in range(1 if isinstance(step, Remark) else each):
            shutil.rmtree(target, ignore_errors=True)
            wreckage.lay_out(target, any_luck(rng))
            yield target, known


def _recorded(tmp: Path, seed: int, commits: int, deaths: int, faults: Faults = NONE) -> Journal:
    base = tmp / f"live-{seed}"
    base.mkdir()
    journal = Journal(base)
    Workload(journal, base / "store", seed, faults).run(commits, deaths=deaths)
    return journal


def _killed_at(call: int, base: Path, tried: Try, size: int) -> tuple[Journal, bool]:
    """A process is killed at a call while it commits; another one then does the same commit."""
    base.mkdir()
    root = base / "store"
    engine, log_file = LogEngine(root, disk=QuickDisk()), Layout(root).segment(1)
    while (log_file.stat().st_size if log_file.exists() else 0) < size:
        engine.commit([content(b"said before, at %d" % engine.stats().objects)])
    engine.close()
    journal = Journal(base)
    dying = LogEngine(root, disk=RecordingDisk(journal, call), seal_at=SEAL_AT)
    try:
        dying.commit(tried.objects)
        died = False
    except ProcessDied:
        died = True
    dying._drop_files()  # as the kernel does
    heir = LogEngine(root, disk=RecordingDisk(journal), seal_at=SEAL_AT)
    heir.commit(tried.objects)
    heir.close()
    return journal, died


def _crash_everywhere(tmp: Path, seed: int, *, commits: int, deaths: int, each: int) -> int:
    journal = _recorded(tmp, seed, commits, deaths)
    rng, done = random.Random(seed), 0
    for left, known in crashes(journal, Known(), rng, tmp, each):
        known.check(left / "store")
        done += 1
    return done


def _crash_twice(tmp: Path, seed: int, *, commits: int, one_in: int) -> int:
    journal = _recorded(tmp, seed, commits, 3)
    rng, done = random.Random(seed), 0
    for left, known in crashes(journal, Known(), rng, tmp, 1):
        if rng.randrange(one_in):
            continue
        second = tmp / f"second-{done}"
        shutil.copytree(left, second)
        recovery = Journal(second)
        Workload(recovery, second / "store", seed + done + 1).run(3)
        carried = Known(list(known.done), list(known.open))
        for left_again, known_by_now in crashes(recovery, carried, rng, second.parent / "b", 1):
            known_by_now.check(left_again / "store")
            done += 1
    return done


def _lost(left: Path, known: Known) -> bool:
    try:
        known.check(left)
    except (AssertionError, SnapstoreError):
        return True
    return False


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches and indexes so small that a short run sees every kind of write."""
    monkeypatch.setattr(append, "SPLIT_AT", SPLIT_AT)
    monkeypatch.setattr(caches, "EVERY", 6)
    monkeypatch.setattr(caches, "WORTH_CLOSING", 2)
    # What a crash leaves is laid out in another directory, and is to count as the same.
    monkeypatch.setattr(Witness, "_folder", lambda self: 1)


@pytest.mark.parametrize("seed", range(4))
def test_what_was_acknowledged_survives_power_loss_at_every_step(tmp_path: Path, seed: int) -> None:
    assert _crash_everywhere(tmp_path, seed, commits=25, deaths=5, each=2) >= 600


def test_it_survives_power_loss_during_the_recovery_from_a_power_loss(tmp_path: Path) -> None:
    assert _crash_twice(tmp_path, 7, commits=16, one_in=50) >= 100


@pytest.mark.parametrize("size", [0, 1, SEAL_AT], ids=["making the store", "plain", "sealing"])
def test_what_a_killed_process_left_half_done_is_durable_when_the_next_one_says_so(
    tmp_path: Path, size: int
) -> None:
    """The objects may all be there already, and all names in place, and yet nothing be synced."""
    tried = Try(None, None, (content(b"said once"), node(b"and structured")))
    for call in count():
        journal, died = _killed_at(call, tmp_path / f"live-{call}", tried, size)
        wreckage = Wreckage(journal)
        for step in journal.steps:
            wreckage.take(step)
        lucks: list[Luck] = [NOTHING, EVERYTHING, *(Some(random.Random(i)) for i in range(6))]
        for i, luck in enumerate(lucks):
            left = tmp_path / f"left-{call}-{i}"
            wreckage.lay_out(left, luck)
            Known([tried]).check(left / "store")
        if not died:
            break
    assert call > 1


@pytest.mark.parametrize("lie", [Faults(forgets_syncs=True), Faults(forgets_names=True)])
def test_a_disk_that_does_not_sync_is_found_out(tmp_path: Path, lie: Faults) -> None:
    journal = _recorded(tmp_path, 3, 25, 0, lie)
    assert any(
        _lost(left / "store", known)
        for left, known in crashes(journal, Known(), random.Random(3), tmp_path, 2)
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_what_was_acknowledged_survives_many_more(tmp_path: Path, seed: int) -> None:
    assert _crash_everywhere(tmp_path, seed, commits=40, deaths=12, each=3) >= 700
    assert _crash_twice(tmp_path, seed + 1000, commits=30, one_in=40) >= 100
