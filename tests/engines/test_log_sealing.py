"""A segment that is large enough is sealed, and writing goes on in the next one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from damage import QuickDisk, batches, segment_path
from given import content, head, holds_turn, save, snapshot, turn
from powerloss import Journal, ProcessDied, RecordingDisk

from snapstore.engines.log import append
from snapstore.engines.log.batch import SEAL, START, Batch
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.engines.log.log import Log

SEAL_AT = 800


def segments(root: Path) -> tuple[int, ...]:
    """What the manifest names."""
    return Manifest.read(Layout(root).manifest).segments


def seal(engine: LogEngine, root: Path) -> None:
    """Commit until there is one segment more."""
    before = segments(root)
    while segments(root) == before:
        turn(engine, "filler", f"filler {engine.stats().objects}")


def test_each_segment_starts_with_the_refs_and_ends_with_a_seal(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at(seal_at=SEAL_AT)
    for i in range(40):
        turn(engine, f"r{i % 3}", f"turn {i}")
    numbers = segments(root)
    assert numbers == tuple(range(1, len(numbers) + 1)) and len(numbers) > 3
    for number in numbers:
        path = segment_path(root, number)
        data = path.read_bytes()
        flags = [Batch(data[a:b], (str(path), a)).header.flags for a, b in batches(path)]
        assert [bool(f & START) for f in flags] == [True] + [False] * (len(flags) - 1)
        sealed = number != numbers[-1]
        assert [bool(f & SEAL) for f in flags] == [False] * (len(flags) - 1) + [sealed]
        assert (path.with_suffix(".idx")).exists() == sealed


def test_everything_is_found_across_segments(root: Path, log_at: Callable[..., LogEngine]) -> None:
    engine = log_at(seal_at=SEAL_AT)
    moves = [turn(engine, f"r{i % 3}", f"turn {i}") for i in range(40)]
    for handle in (engine, log_at()):
        assert list(handle.reflog()) == moves[::-1]
        assert [handle.move(m.ref, m.gen) for m in moves] == moves
        assert all(holds_turn(handle, f"turn {i}") for i in range(40))
        assert list(handle.verify()) == []


def test_a_ref_that_did_not_move_since_is_known_from_the_newest_segment(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at(seal_at=SEAL_AT)
    old = turn(engine, "old", "old")
    gone = engine.commit([], save("gone", None, turn(engine, "gone", "gone").new))
    for _ in range(3):
        seal(engine, root)
    for handle in (engine, log_at()):
        assert handle.tip("old") == old
        assert handle.tip("gone") == gone
        assert handle.tip("never") is None


def test_another_handle_follows_into_the_next_segment(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    writer, reader = log_at(seal_at=SEAL_AT), log_at()
    for i in range(40):
        move = turn(writer, "a", f"turn {i}")
        if i % 7 == 0:
            assert reader.tip("a") == move
            assert holds_turn(reader, f"turn {i}")
    assert turn(reader, "a", "its own").gen == 41
    assert holds_turn(writer, "its own")


def test_a_handle_that_saw_only_the_seal_does_not_make_the_next_segment_again(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    """Else it would put an empty segment in the place of one that holds saves."""

    class Watched(QuickDisk):
        def write_file(self, path: Path, data: bytes) -> None:
            onlooker.tip("a")
            super().write_file(path, data)

    turn(log_at(), "a", "first")
    onlooker = log_at()
    engine = log_at(seal_at=SEAL_AT, disk=Watched())
    seal(engine, root)
    turn(engine, "a", "in the new segment")
    onlooker.commit([content(b"by the onlooker")])
    after = log_at()
    assert holds_turn(after, "in the new segment")
    assert after.contains(content(b"by the onlooker").id)


def test_a_seal_that_was_read_while_it_was_written_is_no_damage(
    root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopping(QuickDisk):
        def write_file(self, path: Path, data: bytes) -> None:
            raise ProcessDied

    turn(log_at(), "a", "first")
    reader = log_at()
    writer = log_at(seal_at=SEAL_AT, disk=Stopping())
    with pytest.raises(ProcessDied):
        seal(writer, root)
    taken_in, looks = Log._take_in, iter([False])

    def not_yet(log: Log, until: float = float("inf")) -> bool:
        return next(looks, True) and taken_in(log, until)

    monkeypatch.setattr(Log, "_take_in", not_yet)
    assert reader.tip("filler") is not None
    assert reader.cut_off is None


def test_a_process_that_dies_while_sealing_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    for calls in range(40):
        base = tmp_path / f"{calls}"
        base.mkdir()
        root = base / "store"
        engine = LogEngine(root, disk=QuickDisk(), seal_at=SEAL_AT)
        while segment_path(root).exists() is False or segment_path(root).stat().st_size < SEAL_AT:
            turn(engine, "a", f"turn {engine.stats().objects}")
        engine.close()
        before = engine_moves(root)
        disk = RecordingDisk(Journal(base), dies_after=calls)
        dying = LogEngine(root, disk=disk, seal_at=SEAL_AT)
        died = False
        try:
            turn(dying, "a", "the one that seals")
        except ProcessDied:
            died = True
        dying._drop_files()  # as the kernel does
        after = LogEngine(root, disk=QuickDisk(), seal_at=SEAL_AT)
        if died:
            turn(after, "a", "after")
            assert holds_turn(after, "after")
        assert list(after.reflog())[-len(before) :] == before
        assert list(after.verify()) == []
        assert segments(root) == (1, 2)
        assert not list(root.rglob("*.tmp"))
        after.close()
        if not died:
            return
    raise AssertionError("the process never came to the end of its work")


def engine_moves(root: Path) -> list[object]:
    """All moves that a fresh handle sees."""
    engine = LogEngine(root)
    try:
        return list(engine.reflog())
    finally:
        engine.close()


def test_a_large_commit_goes_over_several_segments(
    root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append, "SPLIT_AT", 1000)
    engine = log_at(seal_at=5000)
    many = [content(bytes([i]) * 3 + b"%d" % i * 150) for i in range(100)]
    snap = snapshot(b"of them all")
    engine.commit([*many, snap], save("a", snap.id, None))
    sizes = [segment_path(root, n).stat().st_size for n in segments(root)]
    assert len(sizes) > 1
    assert max(sizes) < 5000 + 2 * 1000
    for handle in (engine, log_at()):
        assert handle.read_many([o.id for o in many]) == many
        assert head(handle, "a") == snap.id
        assert list(handle.verify()) == []


def test_opening_reads_no_sealed_segment_that_has_its_index(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at(seal_at=SEAL_AT)
    for i in range(40):
        turn(engine, "a", f"turn {i}")
    engine.close()
    first = segment_path(root)
    first.write_bytes(bytes(first.stat().st_size - 24) + first.read_bytes()[-24:])
    assert head(log_at(), "a") is not None
    assert holds_turn(log_at(), "turn 39")
