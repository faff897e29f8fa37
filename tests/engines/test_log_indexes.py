"""Indexes can be missing, old, garbled or somebody else's: that costs time and nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import QuickDisk, flip, put, segment_path, unwitnessed
from given import NOWHERE, content, holds_turn, turn
from powerloss import ProcessDied

from snapstore.engine import Move
from snapstore.engines.log import caches, trash
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.errors import Corrupt, DiskError, ObjectMissing

TURNS = 60


@pytest.fixture(autouse=True)
def indexed_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Index files after a few batches."""
    monkeypatch.setattr(caches, "EVERY", 8)
    monkeypatch.setattr(caches, "WORTH_CLOSING", 2)


@pytest.fixture(params=[1 << 20, 1500], ids=["active", "sealed"])
def moves(request: pytest.FixtureRequest, root: Path) -> list[Move]:
    """The moves of a store, whose indexes are of the active or mostly of sealed segments."""
    engine = LogEngine(root, disk=QuickDisk(), seal_at=request.param)
    made = [turn(engine, f"r{i % 7}", f"turn {i}") for i in range(TURNS)]
    engine.close()
    assert indexes(root)
    return made


def indexes(root: Path) -> list[Path]:
    """Every index file."""
    return sorted(root.rglob("*.idx"))


def check_whole(engine: LogEngine, moves: list[Move]) -> None:
    """Everything is found, and nothing else."""
    assert all(holds_turn(engine, f"turn {i}") for i in range(len(moves)))
    assert [engine.move(m.ref, m.gen) for m in moves] == moves
    last = {m.ref: m for m in moves}
    assert {m.ref: m for m in engine.tips()} == last
    assert {ref: engine.tip(ref) for ref in last} == last
    assert list(engine.reflog()) == moves[::-1]
    assert len(list(engine.ids(b"", 0))) == 2 * len(moves)
    assert not engine.contains(NOWHERE)
    with pytest.raises(ObjectMissing):
        engine.read(NOWHERE)


def check_whole_and_goes_on(root: Path, moves: list[Move]) -> None:
    """As check_whole, through handles that see the store for the first time, and after a save."""
    reader = LogEngine(root, disk=QuickDisk())
    check_whole(reader, moves)
    assert [p for p in reader.verify() if not p.harmless] == []
    reader.close()
    writer = LogEngine(root, disk=QuickDisk())
    more = turn(writer, "r0", f"turn {len(moves)}")
    check_whole(writer, [*moves, more])
    writer.close()
    check_whole(again := LogEngine(root), [*moves, more])
    again.close()


def test_whole_ones_are_used(root: Path, moves: list[Move]) -> None:
    engine = LogEngine(root)
    covered = sum(
        index.cover.last - index.cover.first for s in engine._log.segments for index in s.indexes
    )
    assert covered > 0.8 * sum(s.size() for s in engine._log.segments)
    engine.close()
    check_whole_and_goes_on(root, moves)


def test_missing_ones_are_made_again(root: Path, moves: list[Move]) -> None:
    for path in indexes(root):
        path.unlink()
    check_whole_and_goes_on(root, moves)


def test_the_whole_cache_can_be_deleted(root: Path, moves: list[Move]) -> None:
    shutil.rmtree(root / "cache")
    check_whole_and_goes_on(root, moves)
    assert indexes(root) and (root / "cache").stat().st_mode & 0o777 == 0o700


def test_no_cache_is_made_where_the_store_was_removed(root: Path, moves: list[Move]) -> None:
    reader = LogEngine(root)
    shutil.rmtree(root)
    reader.tip("r0")
    reader.close()
    assert not root.exists()


@pytest.mark.parametrize(
    "garble",
    [
        lambda data: b"",
        lambda data: data[:40],
        lambda data: data[:-8],
        lambda data: data + bytes(8),
        lambda data: bytes(len(data)),
        lambda data: data[:76] + bytes(len(data) - 76),
        lambda data: data[:76] + b"\xff" * (len(data) - 76),
        lambda data: data[:76] + data[76:][::-1],
        lambda data: data[:76] + bytes(b ^ 1 for b in data[76:]),
        lambda data: data[:8] + bytes([data[8] ^ 1]) + data[9:],
    ],
)
def test_garbled_ones_are_made_again(
    root: Path, moves: list[Move], garble: Callable[[bytes], bytes]
) -> None:
    for path in indexes(root):
        path.write_bytes(garble(path.read_bytes()))
    check_whole_and_goes_on(root, moves)


USES: dict[str, Callable[[LogEngine, Move], bool]] = {
    "read": lambda e, m: m.new is not None and e.read(m.new).id == m.new,
    "read_many": lambda e, m: m.new is not None and e.read_many([m.new])[0].id == m.new,
    "contains": lambda e, m: m.new is not None and e.contains(m.new),
    "move": lambda e, m: e.move(m.ref, m.gen) == m,
    "tip": lambda e, m: e.tip(m.ref) is not None,
    "ids": lambda e, m: m.new is not None and len(list(e.ids(m.new, 64))) == 1,
}


def _misplaced(data: bytes) -> bytes:
    """An index with the right keys, whose objects lie one byte further on."""
    count = int.from_bytes(data[40:44], "little")
    places = memoryview(data)[76 + 8 * count : 76 + 16 * count].cast("Q")
    moved = b"".join((place + (1 << 24)).to_bytes(8, "little") for place in places)
    return data[: 76 + 8 * count] + moved + data[76 + 16 * count :]


def _filled(filler: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:76] + bytes([filler]) * (len(data) - 76)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("garble", [_filled(0x00), _filled(0x01), _filled(0xFF), _misplaced])
def test_the_first_question_is_answered_in_spite_of_garbled_ones(
    root: Path,
    moves: list[Move],
    garble: Callable[[bytes], bytes],
    use: Callable[[LogEngine, Move], bool],
) -> None:
    for path in indexes(root):
        path.write_bytes(garble(path.read_bytes()))
    for move in moves[::6]:
        engine = LogEngine(root, disk=QuickDisk())
        assert use(engine, move)
        engine.close()
        shutil.rmtree(root / "cache")  # nor may it be the last handle's repair that helps
        (root / "cache").mkdir()


def test_any_garbled_byte_is_harmless(root: Path, moves: list[Move]) -> None:
    for path in indexes(root)[:2]:
        whole = path.read_bytes()
        for at in [*range(76), *range(76, len(whole), 37)]:
            flip(path, at, 0x10)
            engine = LogEngine(root, disk=QuickDisk())
            assert all(holds_turn(engine, f"turn {i}") for i in range(0, TURNS, 5))
            assert [engine.move(m.ref, m.gen) for m in moves[::9]] == moves[::9]
            engine.close()
            path.write_bytes(whole)


def test_reading_past_damaged_ones_writes_only_in_the_cache(root: Path, moves: list[Move]) -> None:
    for path in indexes(root):
        path.write_bytes(path.read_bytes()[:76] + bytes(path.stat().st_size - 76))
    before = {
        p: p.read_bytes() for p in root.rglob("*") if p.is_file() and p.parent.name != "cache"
    }
    engine = LogEngine(root)
    check_whole(engine, moves)
    engine.close()
    assert before == {
        p: p.read_bytes() for p in root.rglob("*") if p.is_file() and p.parent.name != "cache"
    }


def test_a_seal_that_one_covers_is_known_to_who_relies_on_it(root: Path) -> None:
    """One who died between the seal and the manifest leaves the active segment sealed."""

    class Dying(QuickDisk):
        def write_file(self, path: Path, data: bytes) -> None:
            raise ProcessDied

    writer = LogEngine(root, disk=QuickDisk())
    moves = [turn(writer, "a", f"turn {i}") for i in range(20)]
    writer.close()
    dying = LogEngine(root, disk=Dying(), seal_at=500)
    with pytest.raises(ProcessDied):
        turn(dying, "a", "the one that seals")
    dying._drop_files()
    for path in indexes(root):
        path.unlink()
    LogEngine(root, disk=QuickDisk()).close()  # covers the seal
    assert indexes(root)
    after = LogEngine(root, disk=QuickDisk())
    moves.append(turn(after, "a", f"turn {len(moves)}"))
    after.close()
    for path in indexes(root):
        path.unlink()
    check_whole_and_goes_on(root, moves)


def test_old_ones_are_continued(root: Path, moves: list[Move]) -> None:
    kept = {path: path.read_bytes() for path in indexes(root)}
    engine = LogEngine(root)
    more = [turn(engine, "r0", f"turn {i}") for i in range(TURNS, TURNS + 30)]
    engine.close()
    for path in indexes(root):
        path.unlink()
    for path, data in kept.items():
        path.write_bytes(data)
    check_whole_and_goes_on(root, moves + more)


def test_ones_of_a_log_that_was_cut_and_went_on_otherwise_do_not_count(root: Path) -> None:
    engine = LogEngine(root, disk=QuickDisk())
    moves = [turn(engine, "a", f"turn {i}") for i in range(20)]
    engine.close()
    early = segment_path(root).read_bytes()
    engine = LogEngine(root, disk=QuickDisk())
    for i in range(20, 60):
        turn(engine, "a", f"a future that never was {i}")
    engine.close()
    put(segment_path(root), early)
    unwitnessed(root)
    engine = LogEngine(root, disk=QuickDisk())
    moves += [turn(engine, "a", f"turn {i}") for i in range(20, 60)]
    assert list(engine.reflog()) == moves[::-1]
    assert not engine.contains(content(b"message of a future that never was 30").id)
    engine.close()
    again = LogEngine(root)
    assert list(again.reflog()) == moves[::-1]
    assert all(holds_turn(again, f"turn {i}") for i in range(60))
    again.close()


def test_a_writer_does_not_build_on_what_an_index_says_of_bytes_that_changed(root: Path) -> None:
    engine = LogEngine(root, disk=QuickDisk())
    for i in range(20):
        turn(engine, "a", f"turn {i}")
    engine.close()
    log = segment_path(root)
    whole = log.read_bytes()
    flip(log, len(whole) // 2)
    os.utime(log)  # later than the save, on clocks that tick slowly too
    reader = LogEngine(root)
    assert holds_turn(reader, "turn 19")  # found through the index
    reader.close()
    engine = LogEngine(root)
    with pytest.raises(Corrupt) as damage:
        turn(engine, "a", "on top")
    assert damage.value.path == str(log)
    engine.close()


@pytest.mark.parametrize(
    "name",
    [
        "cache/00000001.²-5.idx",
        "cache/00000001.5-².idx",
        "log/².seg",
        "trash/²-1.seg",
    ],
)
def test_a_name_with_digits_that_are_no_number_is_passed_over(
    root: Path, moves: list[Move], name: str
) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(b"")
    engine = LogEngine(root, disk=QuickDisk())
    check_whole(engine, moves)
    engine.close()
    layout = Layout(root)
    trash.empty_trash(layout, QuickDisk(), before=10**18)
    assert all(layout.segment(number).exists() for number in layout.segments_on_disk())


def test_a_read_only_store_is_read_without_them(root: Path, moves: list[Move]) -> None:
    class ReadOnly(QuickDisk):
        def _create(self, path: Path) -> int:
            raise DiskError("read-only file system", 30)

    shutil.rmtree(root / "cache")
    (root / "cache").mkdir()
    for path in indexes(root):
        path.unlink()
    engine = LogEngine(root, disk=ReadOnly())
    check_whole(engine, moves)
    engine.close()
    assert indexes(root) == []
