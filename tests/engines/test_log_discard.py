"""Letting go of objects and moves: nothing of them is left in any file, and all else stays."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from given import content, holds_turn, save, snapshot, turn
from powerloss import Journal, RecordingDisk, Wreckage, any_luck

from snapstore import ObjectMissing
from snapstore.disk import Disk
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout, Manifest

CANARY = random.Random(5).randbytes(400)
"""Too random to be compressed, so that it stands in a file as it is."""


class QuickDisk(Disk):
    """Power loss is simulated here, so nothing has to wait for the real disk."""

    def sync(self, fd: int) -> None:
        """Not needed."""

    def sync_dir(self, path: Path) -> None:
        """Not needed."""


def opened(root: Path, seal_at: int = 64 << 20) -> LogEngine:
    return LogEngine(root, disk=QuickDisk(), seal_at=seal_at)


def in_files(root: Path) -> list[str]:
    """The files that hold the canary."""
    return [p.name for p in root.rglob("*") if p.is_file() and CANARY in p.read_bytes()]


def filled(engine: LogEngine, turns: int = 4) -> bytes:
    """Turns of two refs, and one object that is to go; its id."""
    for n in range(turns):
        turn(engine, "a", f"a {n}")
        turn(engine, "b", f"b {n}")
    doomed = content(CANARY)
    turn(engine, "a", "with it", doomed)
    turn(engine, "a", "after it")
    return doomed.id


def is_well(engine: LogEngine) -> bool:
    return [problem for problem in engine.verify() if not problem.harmless] == []


def test_what_is_dropped_is_in_no_file_and_the_rest_is_there(tmp_path: Path) -> None:
    engine = opened(tmp_path / "s")
    doomed = filled(engine)
    assert in_files(tmp_path)
    assert engine.discard([doomed, bytes(32)], {}) == 1
    assert in_files(tmp_path) == []
    with pytest.raises(ObjectMissing):
        engine.read(doomed)
    assert not engine.contains(doomed)
    for text in ("a 0", "b 3", "with it", "after it"):
        assert holds_turn(engine, text)
    assert is_well(engine)
    engine.close()
    again = opened(tmp_path / "s")
    assert [move.gen for move in again.reflog() if move.ref == "a"] == [6, 5, 4, 3, 2, 1]
    turn(again, "a", "and on")
    assert is_well(again)


def test_moves_before_a_given_one_are_dropped_and_their_numbers_count_on(tmp_path: Path) -> None:
    engine = opened(tmp_path / "s")
    filled(engine)
    engine.discard([], {"a": 5})
    for handle in (engine, opened(tmp_path / "s")):
        assert [move.gen for move in handle.reflog() if move.ref == "a"] == [6, 5]
        assert [move.gen for move in handle.reflog() if move.ref == "b"] == [4, 3, 2, 1]
        assert handle.move("a", 4) is None
        assert handle.move("a", 5) is not None
    assert turn(engine, "a", "next").gen == 7
    assert is_well(engine)


def test_with_nothing_to_drop_no_segment_is_touched(tmp_path: Path) -> None:
    engine = opened(tmp_path / "s")
    filled(engine)
    layout = Layout(tmp_path / "s")
    before = {p: p.read_bytes() for p in (tmp_path / "s").rglob("*") if p.is_file()}
    assert engine.discard([bytes(32)], {"none": 3}) == 0
    assert all(path.read_bytes() == data for path, data in before.items())
    assert Manifest.read(layout.manifest).generation == 1


def test_torn_tails_the_trash_and_files_that_nothing_names_are_removed(tmp_path: Path) -> None:
    root = tmp_path / "s"
    engine = opened(root)
    filled(engine)
    for folder in ("torn", "trash"):
        (root / folder).mkdir()
        (root / folder / "kept").write_bytes(CANARY)
    (root / "log" / "00000009.seg").write_bytes(CANARY)
    engine.discard([content(CANARY).id], {})
    assert in_files(tmp_path) == []


def test_a_store_that_was_never_made_holds_nothing(tmp_path: Path) -> None:
    assert opened(tmp_path / "s").discard([bytes(32)], {}) == 0
    assert not (tmp_path / "s").exists()


def test_another_handle_goes_on_and_stores_again_what_it_once_saw(tmp_path: Path) -> None:
    engine, other = opened(tmp_path / "s"), opened(tmp_path / "s")
    doomed = filled(engine)
    assert other.contains(doomed)
    engine.discard([doomed], {"a": 6})
    assert turn(other, "a", "of the other", content(CANARY)).gen == 7
    assert engine.read(doomed).payload == CANARY
    assert opened(tmp_path / "s").read(doomed).payload == CANARY
    assert other.move("a", 5) is None
    assert is_well(other)


def test_another_handle_does_not_find_it_any_more(tmp_path: Path) -> None:
    engine, other = opened(tmp_path / "s"), opened(tmp_path / "s")
    doomed = filled(engine)
    engine.discard([doomed], {})
    assert other.tip("a") == engine.tip("a")
    assert not other.contains(doomed)


def test_power_loss_at_any_moment_leaves_the_store_whole(tmp_path: Path) -> None:
    base = tmp_path / "live"
    base.mkdir()
    engine = opened(base / "s", seal_at=1200)
    doomed = filled(engine, turns=6)
    engine.close()
    journal = Journal(base)
    engine = LogEngine(base / "s", disk=RecordingDisk(journal), seal_at=1200)
    engine.discard([doomed], {"a": 7})
    engine.close()
    wreckage, rng, left = Wreckage(journal), random.Random(1), 0
    for step in journal.steps:
        wreckage.take(step)
        for _ in range(6):
            left += 1
            target = tmp_path / f"left-{left}"
            wreckage.lay_out(target, any_luck(rng))
            _check(target / "s", doomed)
    assert left > 60


def _check(root: Path, doomed: bytes) -> None:
    engine = opened(root, seal_at=1200)
    assert [move.gen for move in engine.reflog() if move.ref == "a"][:2] == [8, 7]
    assert all(holds_turn(engine, text) for text in ("a 0", "b 5", "with it", "after it"))
    turn(engine, "a", "after the crash")
    assert is_well(engine)
    engine.discard([doomed], {"a": 7})
    assert in_files(root) == []
    assert engine.move("a", 6) is None
    assert holds_turn(engine, "after the crash")
    assert is_well(engine)
    engine.close()


def test_many_objects_of_one_batch_are_dropped_one_by_one(tmp_path: Path) -> None:
    engine = opened(tmp_path / "s")
    objects = [content(b"%d " % n * 50) for n in range(40)]
    snap = snapshot(b"snap")
    engine.commit([*objects, snap], save("a", snap.id, None))
    rng = random.Random(3)
    while objects:
        gone = objects.pop(rng.randrange(len(objects)))
        assert engine.discard([gone.id], {}) == 1
        assert engine.read_many([o.id for o in objects]) == objects
    assert engine.read(snap.id) == snap
    assert is_well(engine)
