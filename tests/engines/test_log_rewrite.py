"""Rewriting a store's segments beside others, and what a crash in the middle of it leaves."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from itertools import count
from pathlib import Path

import pytest
from damage import QuickDisk, flip, segment_path
from given import Keeping, content, head, node, save, snapshot, turn
from powerloss import (
    EVERYTHING,
    NOTHING,
    Journal,
    Luck,
    ProcessDied,
    RecordingDisk,
    Some,
    Wreckage,
)

from snapstore.disk import Disk
from snapstore.engine import Move, Obj
from snapstore.engines.log import pack, rewrite
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.errors import DiskError, Locked, ObjectMissing

NOW = 1_700_000_000_000_000
DAY = 86_400_000_000


class Watching(QuickDisk):
    """Counts what is done while the store's lock is held."""

    def __init__(self) -> None:
        self.held = False
        self.written = self.syncs = 0

    def lock(self, fd: int, *, timeout: float) -> None:
        super().lock(fd, timeout=timeout)
        self.held = True

    def unlocker(self, fd: int) -> Callable[[], object]:
        give_back = super().unlocker(fd)

        def unlock() -> None:
            self.held = False
            give_back()

        return unlock

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        self.written += len(data) * self.held
        super().write_at(fd, data, offset)

    def sync(self, fd: int) -> None:
        self.syncs += self.held

    def sync_dir(self, path: Path) -> None:
        self.syncs += self.held


@pytest.fixture(autouse=True)
def packs_small_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "WORTHWHILE", 1)


def text(n: int) -> bytes:
    """Messages that have something in common, and something of their own."""
    own = random.Random(n).randbytes(200).hex()
    return f'{{"role": "user", "content": "{n} {own}"}}'.encode()


def filled(engine: LogEngine, turns: int = 30) -> list[Obj]:
    objects: list[Obj] = []
    for n in range(turns):
        made = [content(text(n)), node(b"node %d" % n), snapshot(b"turn %d" % n)]
        engine.commit(made, save("abc"[n % 3], made[2].id, head(engine, "abc"[n % 3])))
        objects += made
    return objects


def picture(engine: LogEngine, objects: Sequence[Obj]) -> object:
    """All that one can ask about refs and objects."""
    there = [o for o in objects if engine.contains(o.id)]
    assert engine.read_many([o.id for o in there]) == there
    moves = list(engine.reflog())
    assert [engine.move(m.ref, m.gen) for m in moves] == moves
    return there, moves, list(engine.tips()), sorted(engine.ids(b"", 0))


class TestWhatIsWritten:
    @pytest.mark.parametrize("seal_at", [2_000, 64 << 20], ids=["many segments", "one segment"])
    def test_holds_everything_that_stays(
        self, log_at: Callable[..., LogEngine], seal_at: int
    ) -> None:
        engine = log_at(disk=QuickDisk(), seal_at=seal_at)
        objects = filled(engine)
        before = picture(engine, objects)
        engine.rewrite(Keeping(), now=NOW, grace=0)
        assert picture(engine, objects) == before
        assert picture(log_at(), objects) == before
        assert list(log_at().verify()) == []

    def test_no_longer_holds_what_goes(self, root: Path, log_at: Callable[..., LogEngine]) -> None:
        engine = log_at(disk=QuickDisk())
        objects = filled(engine)
        gone = objects[9]
        dropped = engine.rewrite(Keeping([gone.id]), now=NOW, grace=0)
        assert (dropped.objects, dropped.bytes) == (1, len(gone.payload))
        with pytest.raises(ObjectMissing):
            engine.read(gone.id)
        assert picture(engine, objects)[0] == [o for o in objects if o != gone]  # type: ignore[index]

    def test_is_small_and_shares_a_dictionary(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        engine = log_at(disk=QuickDisk())
        word = random.Random(1)
        phrases = [word.randbytes(60).hex() for _ in range(300)]
        messages = [
            content("".join(word.choices(phrases, k=20)).encode() + b"%d" % n) for n in range(800)
        ]
        engine.commit(messages)
        loose = engine.stats().bytes
        engine.rewrite(Keeping(), now=NOW, grace=0)
        assert engine.stats().bytes < 0.75 * loose
        assert engine.read_many([o.id for o in messages]) == messages

    def test_can_be_read_when_one_copy_of_the_dictionary_is_damaged(
        self, root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pack, "LEARN", 1 << 20)
        engine = log_at(disk=QuickDisk())
        messages = [content((b"the same again and again %d " % n) * 90) for n in range(900)]
        engine.commit(messages)
        engine.rewrite(Keeping(), now=NOW, grace=0)
        engine.close()
        packed = Manifest.read(Layout(root).manifest).segments[0]
        flip(segment_path(root, packed), 200)
        again = log_at()
        assert again.read_many([o.id for o in messages]) == messages
        assert not all(problem.harmless for problem in again.verify())

    def test_a_segment_that_is_large_packed_and_whole_is_left_alone(
        self, root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rewrite, "SETTLED", 1)
        engine = log_at(disk=QuickDisk())
        filled(engine)
        engine.rewrite(Keeping(), now=NOW, grace=0)
        turn(engine, "a", "one more")
        first = Manifest.read(Layout(root).manifest).segments[0]
        engine.rewrite(Keeping(), now=NOW, grace=0)
        assert Manifest.read(Layout(root).manifest).segments[0] == first

    def test_nothing_is_written_when_nothing_goes_and_little_is_loose(
        self, root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rewrite, "WORTHWHILE", 1 << 20)
        engine = log_at(disk=QuickDisk())
        filled(engine)
        before = Layout(root).manifest.read_bytes()
        engine.rewrite(Keeping(), now=NOW, grace=0)
        assert Layout(root).manifest.read_bytes() == before


class TestBesideOthers:
    def test_handles_that_were_open_go_on(self, log_at: Callable[..., LogEngine]) -> None:
        engine, reader, writer = (log_at(disk=QuickDisk()) for _ in range(3))
        objects = filled(engine)
        before = picture(reader, objects)
        assert picture(writer, objects) == before
        log_at(disk=QuickDisk()).rewrite(Keeping(), now=NOW, grace=0)
        assert picture(reader, objects) == before
        move = turn(writer, "a", "after")
        assert engine.tip("a") == reader.tip("a") == move

    def test_a_walk_through_the_reflog_that_has_begun_is_finished(
        self, log_at: Callable[..., LogEngine]
    ) -> None:
        engine = log_at(disk=QuickDisk(), seal_at=2_000)
        filled(engine)
        moves = list(engine.reflog())
        walk = engine.reflog()
        begun = [next(walk), next(walk)]
        engine.rewrite(Keeping(), now=NOW, grace=0)
        turn(engine, "a", "after")
        assert [*begun, *walk] == moves

    def test_what_is_saved_meanwhile_is_kept(
        self, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rewrite, "LITTLE", 0)
        engine, writer = log_at(disk=QuickDisk()), log_at(disk=QuickDisk(), seal_at=4_000)
        objects, saved = filled(engine), []

        def save_more() -> None:
            if len(saved) < 40:
                saved.extend(turn(writer, "w", f"{len(saved)} {n}") for n in range(20))

        engine.rewrite(Keeping(asked=save_more), now=NOW, grace=0)
        again = log_at()
        assert [m for m in again.reflog() if m.ref == "w"] == saved[::-1]
        assert again.read_many([o.id for o in objects]) == objects
        assert list(again.verify()) == []

    def test_what_is_needed_again_at_the_last_moment_is_kept(
        self, log_at: Callable[..., LogEngine]
    ) -> None:
        engine, other = log_at(disk=QuickDisk()), log_at(disk=QuickDisk())
        objects = filled(engine)
        again = objects[3].id

        class Regretting(Keeping):
            def begin(self) -> None:
                self.gone = {again}
                turn(other, "a", "stands on it")

            def meet(self, objects: Sequence[Obj], moves: Sequence[Move]) -> Collection[bytes]:
                was_gone, self.gone = self.gone, set()
                return was_gone

        dropped = engine.rewrite(Regretting(), now=NOW, grace=0)
        assert dropped.objects == 0
        assert engine.read_many([o.id for o in objects]) == objects

    @pytest.mark.parametrize("turns", [30, 300])
    def test_what_is_done_while_writers_wait_does_not_grow_with_the_store(
        self, log_at: Callable[..., LogEngine], turns: int
    ) -> None:
        disk = Watching()
        engine = log_at(disk=disk)
        filled(engine, turns)
        disk.written, disk.syncs = 0, 0
        engine.rewrite(Keeping(), now=NOW, grace=0)
        assert disk.written < 4_000
        assert disk.syncs <= 16  # both times together

    def test_a_second_rewriting_at_the_same_time_is_refused(
        self, log_at: Callable[..., LogEngine]
    ) -> None:
        engine, other = log_at(disk=QuickDisk()), log_at(disk=QuickDisk())
        filled(engine)

        def rewrite_too() -> None:
            with pytest.raises(Locked):
                other.rewrite(Keeping(), now=NOW, grace=0)

        engine.rewrite(Keeping(asked=rewrite_too), now=NOW, grace=0)

    def test_what_a_save_was_prepared_upon_must_still_be_there(
        self, log_at: Callable[..., LogEngine]
    ) -> None:
        engine, other = log_at(disk=QuickDisk()), log_at(disk=QuickDisk())
        objects = filled(engine)
        gone = objects[2].id
        assert other.contains(gone)
        engine.rewrite(Keeping([gone]), now=NOW, grace=0)
        with pytest.raises(ObjectMissing):
            other.commit([], save("fork", gone, None))
        assert head(other, "fork") is None


class TestTrash:
    def test_replaced_files_stay_for_the_grace_time(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        engine = log_at(disk=QuickDisk())
        old = filled(engine)
        files = segment_path(root).read_bytes()
        engine.rewrite(Keeping([old[0].id]), now=NOW, grace=DAY)
        (kept,) = Layout(root).trash.iterdir()
        assert kept.read_bytes().startswith(files)
        engine.rewrite(Keeping(), now=NOW + DAY - 1, grace=DAY)
        assert kept.exists()
        engine.rewrite(Keeping(), now=NOW + DAY + 1, grace=DAY)
        assert not kept.exists()

    def test_without_grace_nothing_of_what_goes_is_left_in_any_file(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        engine = log_at(disk=QuickDisk())
        filled(engine)
        secret = content(b"a canary that nobody must find again")
        engine.commit([secret])
        engine.rewrite(Keeping([secret.id]), now=NOW, grace=0)
        held = [path.read_bytes() for path in root.rglob("*") if path.is_file()]
        assert not any(b"canary" in data for data in held)


def test_too_little_room_is_found_out_before_anything_is_written(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    class Full(QuickDisk):
        def free(self, path: Path) -> int:
            return 1000

    engine = log_at(disk=Full())
    filled(engine)
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    with pytest.raises(DiskError, match="1000 are free"):
        engine.rewrite(Keeping(), now=NOW, grace=0)
    after = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    after.pop(Layout(root).collect)
    assert after == before


# --- crashes --------------------------------------------------------------------------------------


def _rewritten_by(root: Path, disk: Disk, gone: Collection[bytes]) -> None:
    engine = LogEngine(root, disk=disk)
    try:
        engine.rewrite(Keeping(gone), now=NOW, grace=DAY)
    finally:
        engine._drop_files()  # as the kernel does


def _check(root: Path, objects: list[Obj], gone: Obj, moves: list[Move]) -> None:
    """All that stays is there, and the store goes on and can be collected."""
    engine = LogEngine(root, disk=QuickDisk())
    staying = [o for o in objects if o != gone]
    assert engine.read_many([o.id for o in staying]) == staying
    assert list(engine.reflog()) == moves
    later = turn(engine, "a", "after the crash")
    assert [p for p in engine.verify() if not p.harmless] == []
    engine.rewrite(Keeping([gone.id]), now=NOW, grace=0)
    assert not engine.contains(gone.id)
    engine.close()
    again = LogEngine(root, disk=QuickDisk())
    assert again.read_many([o.id for o in staying]) == staying
    assert list(again.reflog()) == [later, *moves]
    named = Manifest.read(Layout(root).manifest).segments
    assert set(Layout(root).segments_on_disk()) == set(named)
    assert not list((root / "log").glob("*.new"))
    again.close()


def test_a_crash_at_any_call_leaves_the_store_whole(tmp_path: Path) -> None:
    for call in count():
        base = tmp_path / f"live-{call}"
        base.mkdir()
        engine = LogEngine(base / "store", disk=QuickDisk(), seal_at=3_000)
        objects = filled(engine, turns=12)
        moves, gone = list(engine.reflog()), objects[4]
        engine.close()
        journal = Journal(base)
        try:
            _rewritten_by(base / "store", RecordingDisk(journal, call), [gone.id])
            died = False
        except ProcessDied:
            died = True
        wreckage = Wreckage(journal)
        for step in journal.steps:
            wreckage.take(step)
        lucks: list[Luck] = [NOTHING, EVERYTHING, *(Some(random.Random(i)) for i in range(2))]
        for i, luck in enumerate(lucks):
            left = tmp_path / f"left-{call}-{i}"
            wreckage.lay_out(left, luck)
            _check(left / "store", objects, gone, moves)
        _check(base / "store", objects, gone, moves)
        if not died:
            break
    assert call > 15
