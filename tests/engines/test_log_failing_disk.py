"""The operating system says no: loudly reported, and the store is as it was."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import files, segment_path
from given import content, head, holds_turn, save, snapshot, turn

from snapstore.disk import Disk
from snapstore.engines.log import append
from snapstore.engines.log.engine import LogEngine
from snapstore.errors import DiskError, SnapstoreError, UnknownOutcome

NO_FD = 1 << 20
"""A descriptor that is not open."""


class FullDisk(Disk):
    """A disk with room for so many bytes more; None: as many as wanted."""

    def __init__(self) -> None:
        self.room: int | None = None

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        if self.room is None or len(data) <= self.room:
            self.room = None if self.room is None else self.room - len(data)
            super().write_at(fd, data, offset)
            return
        super().write_at(fd, data[: self.room], offset)
        raise DiskError("writing failed: no space left", errno.ENOSPC)


class BrokenSync(Disk):
    """A disk whose syncs fail from the moment that broken is set."""

    def __init__(self) -> None:
        self.broken = False
        self.asked = 0

    def sync(self, fd: int) -> None:
        self.asked += 1
        if self.broken:
            raise DiskError("syncing failed: input/output error", errno.EIO)
        super().sync(fd)


class CountingDisk(Disk):
    """Counts the calls that cost something."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.written: list[int] = []

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        self.calls["write_at"] += 1
        self.written.append(len(data))
        super().write_at(fd, data, offset)

    def sync(self, fd: int) -> None:
        self.calls["sync"] += 1
        super().sync(fd)

    def sync_dir(self, path: Path) -> None:
        self.calls["sync_dir"] += 1
        super().sync_dir(path)

    def rename(self, old: Path, new: Path) -> None:
        self.calls["rename"] += 1
        super().rename(old, new)

    def truncate(self, fd: int, length: int) -> None:
        self.calls["truncate"] += 1
        super().truncate(fd, length)


class TestFullDisk:
    @pytest.mark.parametrize("room", [0, 1, 35, 36, 100, 140])
    def test_leaves_the_store_as_it_was_and_goes_on_later(
        self, root: Path, room: int, log_at: Callable[..., LogEngine]
    ) -> None:
        disk = FullDisk()
        engine = log_at(disk=disk)
        first = turn(engine, "a", "first")
        before = files(root)
        disk.room = room
        with pytest.raises(DiskError) as full:
            turn(engine, "a", "does not fit")
        assert full.value.errno == errno.ENOSPC
        assert files(root) == before
        assert engine.tip("a") == first
        assert not engine.contains(content(b"message of does not fit").id)
        disk.room = None
        turn(engine, "a", "fits again")
        assert holds_turn(engine, "fits again")
        assert list(log_at().verify()) == []
        assert not (root / "torn").exists()

    def test_while_a_store_is_made_leaves_none_and_no_temporary_files(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        for room in range(0, 300, 7):
            disk = FullDisk()
            disk.room = room
            engine = LogEngine(root, disk=disk)
            try:
                engine.create()
            except DiskError:
                assert not engine.exists()
                assert not log_at().exists()
                assert list(root.rglob("*.tmp")) == []
                engine.close()
                continue
            engine.close()
            break
        assert room > 50
        turn(log_at(), "a", "turn")

    def test_while_sealing_leaves_a_store_that_goes_on(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        disk = FullDisk()
        engine = log_at(disk=disk, seal_at=700)
        done = 0
        for room in range(0, 900, 23):
            disk.room = room
            try:
                turn(engine, "a", f"turn {done}")
            except DiskError:
                disk.room = None
                assert head(engine, "a") == head(log_at(), "a")
                assert list(root.rglob("*.tmp")) == []
                turn(engine, "a", f"turn {done}")
            done += 1
        assert len(list((root / "log").glob("*.seg"))) > 3
        assert all(holds_turn(log_at(), f"turn {i}") for i in range(done))
        assert list(log_at().verify()) == []

    def test_in_a_commit_of_several_batches_moves_no_ref(
        self, root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(append, "SPLIT_AT", 500)
        disk = FullDisk()
        engine = log_at(disk=disk)
        first = turn(engine, "a", "first")
        many = [content(os.urandom(300)) for _ in range(10)]
        snap = snapshot(b"of many")
        disk.room = 1500
        with pytest.raises(DiskError):
            engine.commit([*many, snap], save("a", snap.id, first.new))
        assert engine.tip("a") == log_at().tip("a") == first
        disk.room = None
        engine.commit([*many, snap], save("a", snap.id, first.new))
        assert head(log_at(), "a") == snap.id
        assert log_at().read_many([o.id for o in many]) == many
        assert list(log_at().verify()) == []

    def test_for_an_index_is_no_reason_to_fail(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        class NoCache(Disk):
            def write_cache(self, path: Path, data: bytes) -> bool:
                return False

        engine = log_at(disk=NoCache(), seal_at=600)
        for i in range(20):
            turn(engine, "a", f"turn {i}")
        engine.close()
        assert all(holds_turn(log_at(), f"turn {i}") for i in range(20))


def test_short_writes_are_continued(
    root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole(fd, bytes(data)[:7], at))
    engine = log_at(seal_at=600)
    for i in range(8):
        turn(engine, "a", f"turn {i}")
    monkeypatch.undo()
    assert all(holds_turn(log_at(), f"turn {i}") for i in range(8))
    assert list(log_at().verify()) == []


def test_a_write_that_takes_nothing_is_an_error(
    root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = log_at()
    turn(engine, "a", "first")
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: 0)
    with pytest.raises(DiskError) as stuck:
        turn(engine, "a", "second")
    assert stuck.value.errno == errno.EIO


class TestFailedSync:
    def test_is_an_unknown_outcome_and_ends_the_handle(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        disk = BrokenSync()
        engine = log_at(disk=disk)
        turn(engine, "a", "first")
        disk.broken = True
        with pytest.raises(UnknownOutcome):
            turn(engine, "a", "second")
        asked = disk.asked
        disk.broken = False
        uses: list[Callable[[], object]] = [
            lambda: turn(engine, "a", "third"),
            lambda: engine.tip("a"),
            lambda: engine.read(content(b"message of first").id),
            lambda: list(engine.tips()),
        ]
        for use in uses:
            with pytest.raises(UnknownOutcome):
                use()
        assert disk.asked == asked, "a sync that failed is never tried again"

    def test_leaves_the_old_or_the_new_state_to_the_next_handle(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        disk = BrokenSync()
        engine = log_at(disk=disk)
        first = turn(engine, "a", "first")
        disk.broken = True
        with pytest.raises(UnknownOutcome):
            turn(engine, "a", "second")
        engine.close()
        after = log_at()
        tip = after.tip("a")
        assert tip == first or holds_turn(after, "second")
        turn(after, "a", "third")
        assert holds_turn(after, "third")

    def test_of_a_whole_file_leaves_no_trace(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        disk = BrokenSync()
        disk.broken = True
        with pytest.raises(DiskError):
            log_at(disk=disk).create()
        assert not (root / "FORMAT").exists()
        assert list(root.rglob("*.tmp")) == []
        log_at().create()

    def test_while_setting_a_torn_tail_aside_ends_the_handle(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        class SyncsFilesOnly(BrokenSync):
            def write_file(self, path: Path, data: bytes) -> None:
                broken, self.broken = self.broken, False
                super().write_file(path, data)
                self.broken = broken

        disk = SyncsFilesOnly()
        engine = log_at(disk=disk)
        turn(engine, "a", "first")
        with segment_path(root).open("ab") as file:
            file.write(b"torn")
        disk.broken = True
        with pytest.raises(UnknownOutcome):
            turn(engine, "a", "second")
        with pytest.raises(UnknownOutcome):
            turn(engine, "a", "second")


class TestCost:
    def test_of_a_commit_is_one_write_and_one_sync(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        disk = CountingDisk()
        engine = log_at(disk=disk)
        turn(engine, "a", "first")
        for i in range(10):
            size = segment_path(root).stat().st_size
            disk.calls.clear()
            disk.written.clear()
            turn(engine, "a", f"turn {i}", content(os.urandom(5000)))
            assert disk.calls == {"write_at": 1, "sync": 1}
            assert segment_path(root).stat().st_size == size + disk.written[0]

    def test_of_a_commit_with_nothing_new_is_nothing(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        disk = CountingDisk()
        engine = log_at(disk=disk)
        engine.commit([content(b"same")])
        disk.calls.clear()
        size = segment_path(root).stat().st_size
        engine.commit([content(b"same")])
        engine.commit([])
        assert disk.calls == {}
        assert segment_path(root).stat().st_size == size

    def test_of_reading_is_nothing(self, root: Path, log_at: Callable[..., LogEngine]) -> None:
        turn(log_at(), "a", "turn")
        disk = CountingDisk()
        engine = log_at(disk=disk)
        assert holds_turn(engine, "turn")
        assert list(engine.verify()) == []
        engine.close()
        assert disk.calls == {}

    def test_of_a_handle_that_is_not_durable_has_no_sync(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        log_at().create()
        disk = CountingDisk()
        engine = log_at(disk=disk, durable=False)
        for i in range(10):
            turn(engine, "a", f"turn {i}")
        assert disk.calls == {"write_at": 10}
        engine.close()
        assert all(holds_turn(log_at(), f"turn {i}") for i in range(10))

    def test_of_the_first_commit_after_one_that_was_not_durable_makes_that_durable_too(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        log_at(durable=False).commit([content(b"not waited for")])
        disk = CountingDisk()
        log_at(disk=disk).commit([content(b"not waited for")])
        assert disk.calls["sync"] == 1


def test_every_refused_call_is_in_the_tree_of_errors(tmp_path: Path) -> None:
    disk = Disk()
    missing = tmp_path / "missing" / "file"
    calls: list[Callable[[], object]] = [
        lambda: disk.open(missing, writable=False),
        lambda: disk.open_lock(missing),
        lambda: disk.write_at(NO_FD, b"data", 0),
        lambda: disk.sync(NO_FD),
        lambda: disk.truncate(NO_FD, 0),
        lambda: disk.rename(missing, tmp_path / "new"),
        lambda: disk.sync_dir(missing),
        lambda: disk.write_file(missing, b"data"),
        lambda: disk.lock(NO_FD, timeout=0),
    ]
    for call in calls:
        with pytest.raises(DiskError) as refused:
            call()
        assert isinstance(refused.value, SnapstoreError)
        assert refused.value.errno in (errno.ENOENT, errno.EBADF)
    assert not disk.write_cache(missing, b"data")
    disk.remove(missing)
