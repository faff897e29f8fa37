"""The log ends earlier than it was durable: what is gone is gone, but not without a word.

A log that is cut off where a batch ends looks like one that never went on. What cache/ knows of it
tells the difference, and must never tell one where there is none.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import QuickDisk, batches, files, flip, put, segment_path, unwitnessed
from given import Keeping, content, holds_turn, turn

from snapstore.engines.log import caches
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.errors import Corrupt

TURNS = 8


@pytest.fixture
def log(root: Path) -> Path:
    """The active segment of a store whose writer has left it in order."""
    engine = LogEngine(root, disk=QuickDisk())
    for i in range(TURNS):
        turn(engine, "a", f"turn {i}")
    engine.close()
    return segment_path(root)


def cuts(log: Path) -> list[tuple[int, int]]:
    """(where to cut, where what is left of the log ends): between batches, and within one."""
    (_, *among) = batches(log)
    return [(start, start) for start, _ in among] + [((a + b) // 2, a) for a, b in among]


def refuses(engine: LogEngine, path: Path, offset: int) -> Corrupt:
    """A save is refused, names the place, and changes nothing."""
    before = files(engine.root)
    with pytest.raises(Corrupt) as refused:
        turn(engine, "b", "on top")
    assert (refused.value.path, refused.value.offset) == (str(path), offset)
    assert files(engine.root) == before
    return refused.value


class TestALogThatWasCut:
    def test_takes_no_save_and_says_what_to_do(
        self, log: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        whole = log.read_bytes()
        for cut, end in cuts(log):
            put(log, whole[:cut])
            hint = refuses(log_at(), log, end).hint
            assert "put the file back" in hint and "snapstore repair" in hint
            put(log, whole)

    def test_is_read_as_far_as_it_goes_and_warns(
        self, log: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        (cut, _) = list(batches(log))[4]
        put(log, log.read_bytes()[:cut])
        with pytest.warns(UserWarning, match="the state before some damage") as told:
            engine = log_at()
            tip = engine.tip("a")
        assert tip is not None and tip.gen == 3 and holds_turn(engine, "turn 2")
        assert len(told) == 1
        assert engine.cut_off is not None and engine.cut_off.offset == cut
        assert f"{log} at {cut}" in engine.warnings[0]

    def test_is_found_by_verify_and_shown_by_doctor(
        self, log: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        (cut, _) = list(batches(log))[4]
        put(log, log.read_bytes()[:cut])
        for behind in (b"", b"half a batch"):
            with log.open("ab") as file:
                file.write(behind)
            (problem,) = log_at().verify()
            assert (problem.path, problem.offset, problem.harmless) == (str(log), cut, False)
        (ill,) = [sign for sign in log_at().signs() if not sign.well]
        assert f"{log} at {cut}" in ill.text and "snapstore repair" in ill.advice

    def test_goes_on_when_the_file_is_put_back(
        self, log: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        whole = log.read_bytes()
        put(log, whole[: list(batches(log))[4][0]])
        held = log_at()
        refuses(held, log, list(batches(log))[-1][1])
        put(log, whole)
        for engine in (log_at(), held):
            assert turn(engine, "a", f"turn {engine.tip('a').gen}").gen > TURNS  # type: ignore[union-attr]

    @pytest.mark.parametrize("at", [3, TURNS + 3], ids=["between batches", "within a batch"])
    def test_goes_on_when_repair_gives_up_what_is_gone(
        self, log: Path, log_at: Callable[..., LogEngine], at: int
    ) -> None:
        put(log, log.read_bytes()[: cuts(log)[at][0]])
        engine = log_at()
        assert any("were durable" in problem.message for problem in engine.damage())
        assert engine.salvage(1)
        assert engine.damage() == [] and list(engine.verify()) == []
        again = log_at()
        turn(again, "b", "goes on")
        assert list(again.verify()) == [] and again.warnings == ()

    def test_is_told_from_one_whose_writer_was_killed(
        self, log: Path, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        unwitnessed(root)
        put(log, log.read_bytes()[:-1])
        turn(log_at(), "a", "on")

    def test_is_known_also_when_the_last_saves_were_not_noted(
        self, root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A writer that is killed has left notes on the way."""
        monkeypatch.setattr(caches, "EVERY", 6)
        engine = log_at()
        for i in range(20):
            turn(engine, "a", f"turn {i}")
        log = segment_path(root)
        (cut, _) = list(batches(log))[5]
        put(log, log.read_bytes()[:cut])
        refuses(LogEngine(root), log, cut)


def test_a_log_that_ends_before_a_segment_that_was_durable_takes_no_save(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    """Segments and manifest were brought back from an older copy."""
    engine = log_at(seal_at=600)
    turn(engine, "a", "turn 0")
    layout = Layout(root)
    old = {path: path.read_bytes() for path in (layout.manifest, layout.segment(1))}
    for i in range(1, 12):
        turn(engine, "a", f"turn {i}")
    engine.close()
    last = layout.segments_on_disk()[-1]
    assert last > 1
    for number in range(2, last + 1):
        layout.segment(number).unlink()
    for path, data in old.items():
        put(path, data)
    again = log_at()
    refuses(again, layout.segment(last), 0)
    assert again.salvage(1)
    turn(log_at(), "b", "goes on")
    turn(log_at(), "b", "and on")


def test_segments_that_an_older_manifest_does_not_name_are_set_aside_by_a_repair(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at(seal_at=600)
    turn(engine, "a", "turn 0")
    layout = Layout(root)
    old = layout.manifest.read_bytes()
    for i in range(1, 12):
        turn(engine, "a", f"turn {i}")
    engine.close()
    segments = {path.read_bytes() for path in (root / "log").glob("*.seg")}
    put(layout.manifest, old)
    refuses(log_at(), layout.segment(layout.segments_on_disk()[-1]), 0)
    assert log_at().salvage(1)
    turn(log_at(), "b", "goes on")
    kept = [path.read_bytes() for path in layout.damaged.iterdir()]
    assert all(any(whole.startswith(data) for whole in kept) for data in segments)


@pytest.mark.parametrize("left", ["nothing", "half of it", "all but a byte"])
def test_an_active_segment_that_lost_its_first_batch_takes_no_save_though_nobody_bears_witness(
    left: str, root: Path, log_at: Callable[..., LogEngine]
) -> None:
    """As after a collection: all refs stand in that batch, and nothing was written behind it."""
    engine = log_at(disk=QuickDisk())
    turn(engine, "a", "kept")
    turn(engine, "a", "let go of")
    engine.rewrite(Keeping([content(b"message of let go of").id]), now=0, grace=0)
    engine.close()
    unwitnessed(root)
    active = segment_path(root, max(Layout(root).segments_on_disk()))
    whole = active.read_bytes()
    assert len(list(batches(active))) == 1
    size = {"nothing": 0, "half of it": len(whole) // 2, "all but a byte": len(whole) - 1}[left]
    put(active, whole[:size])

    again = log_at(disk=QuickDisk())
    assert again.tip("a") is None and again.cut_off is not None
    refuses(again, active, 0)
    (problem,) = again.verify()
    assert (problem.kind, problem.path, problem.offset) == ("damaged_batch", str(active), 0)
    assert not problem.harmless
    assert not all(sign.well for sign in again.signs())
    again.close()
    assert log_at(disk=QuickDisk()).salvage(0)
    mended = log_at(disk=QuickDisk())
    assert holds_turn(mended, "kept")
    tip = mended.tip("a")
    assert tip is not None and tip.gen == 2
    turn(mended, "a", "and on")


def test_a_sealed_segment_that_was_cut_takes_no_save(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    for indexed in (True, False):
        shutil.rmtree(root, ignore_errors=True)
        engine = LogEngine(root, disk=QuickDisk(), seal_at=600)
        for i in range(12):
            turn(engine, "a", f"turn {i}")
        engine.close()
        log = segment_path(root)
        *_, (last, _) = batches(log)
        put(log, log.read_bytes()[:last])
        if not indexed:
            Layout(root).index(1).unlink()
        refuses(log_at(), log, last)
        assert [problem.offset for problem in log_at().damage()] == [last]
        assert (str(log), last) in [(p.path, p.offset) for p in log_at().verify()]
        assert log_at().salvage(1)
        again = log_at()
        turn(again, "b", "goes on")
        assert list(again.verify()) == []


class TestNoSoundStoreIsRefused:
    def test_a_copy_made_while_somebody_saved(self, log: Path, root: Path, tmp_path: Path) -> None:
        """log/ was copied first, cache/ after further saves."""
        (early, _) = list(batches(log))[5]
        copy = tmp_path / "copy"
        shutil.copytree(root, copy)
        put(segment_path(copy), log.read_bytes()[:early])
        engine = LogEngine(copy)
        assert engine.warnings == ()
        turn(engine, "a", "goes on")
        engine.close()

    def test_a_store_that_was_collected(self, log: Path, log_at: Callable[..., LogEngine]) -> None:
        engine = log_at()
        assert engine.discard([content(b"message of turn 3").id], {}) == 1
        turn(engine, "a", "goes on")
        engine.close()
        turn(log_at(), "a", "and on")

    def test_a_store_made_anew_beside_an_old_cache(
        self, log: Path, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        segment_path(root).unlink()
        for path in (Layout(root).manifest, Layout(root).format):
            path.unlink()
        engine = log_at()
        turn(engine, "a", "first")
        engine.close()
        turn(log_at(), "a", "second")

    def test_one_that_another_process_has_gone_on_with(
        self, log: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        first, second = log_at(seal_at=600), log_at(seal_at=600)
        for i in range(12):
            turn(first, "a", f"first {i}")
            turn(second, "b", f"second {i}")
            log_at(seal_at=600).close()
        first.close()
        turn(second, "b", "goes on")
        turn(log_at(seal_at=600), "c", "goes on")

    @pytest.mark.parametrize("garbled", [b"", b"1 2 3", b"1 " * 6, b"x y z 1 2 3", b"9" * 5000])
    def test_one_whose_notes_are_garbled(
        self, log: Path, root: Path, log_at: Callable[..., LogEngine], garbled: bytes
    ) -> None:
        for path in (Layout(root).checked, Layout(root).known_damage):
            path.write_bytes(garbled)
        turn(log_at(), "a", "goes on")


class TestDamageInASealedSegment:
    """What lies in it is hurt, what is written behind it would not be; and yet nothing is."""

    @pytest.fixture
    def hurt(self, root: Path) -> tuple[Path, int]:
        """A sealed segment in which turn 0 is damaged, and where."""
        engine = LogEngine(root, disk=QuickDisk(), seal_at=600)
        for i in range(12):
            turn(engine, "a", f"turn {i}")
        engine.close()
        (_, (start, end), *_) = batches(segment_path(root))
        flip(segment_path(root), (start + end) // 2)
        return segment_path(root), start

    def test_stops_saves_once_it_was_met_in_reading(
        self, hurt: tuple[Path, int], log_at: Callable[..., LogEngine]
    ) -> None:
        engine = log_at()
        turn(engine, "a", "saved in good faith")
        with pytest.raises(Corrupt):
            engine.read(content(b"message of turn 0").id)
        refuses(engine, *hurt)
        assert holds_turn(engine, "saved in good faith")

    @pytest.mark.parametrize("look", [LogEngine.verify, LogEngine.reflog], ids=["verify", "reflog"])
    def test_stops_saves_of_later_processes_too(
        self,
        hurt: tuple[Path, int],
        look: Callable[[LogEngine], object],
        log_at: Callable[..., LogEngine],
    ) -> None:
        engine = log_at()
        try:
            list(look(engine))  # type: ignore[call-overload]
        except Corrupt as met:
            assert (met.path, met.offset) == (str(hurt[0]), hurt[1])
        refuses(engine, *hurt)
        later = log_at()
        refuses(later, *hurt)
        assert later.cut_off is None and "nothing is saved" in later.warnings[0]
        assert any(not s.well and "snapstore repair" in s.advice for s in later.signs())

    def test_is_remembered_also_where_somebody_removed_the_cache(
        self, hurt: tuple[Path, int], root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        shutil.rmtree(root / "cache")
        list(log_at().verify())
        refuses(log_at(), *hurt)

    def test_counts_no_more_once_it_is_mended(
        self, hurt: tuple[Path, int], root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        list(log_at().verify())
        flip(hurt[0], sum(list(batches(hurt[0]))[1]) // 2)
        turn(log_at(), "a", "goes on")
        assert not Layout(root).known_damage.exists()

    def test_counts_no_more_for_who_met_it_once_it_is_mended(
        self, hurt: tuple[Path, int], log_at: Callable[..., LogEngine]
    ) -> None:
        engine = log_at()
        list(engine.verify())
        refuses(engine, *hurt)
        flip(hurt[0], sum(list(batches(hurt[0]))[1]) // 2)
        turn(engine, "a", "goes on")

    def test_counts_no_more_for_who_met_it_once_another_process_repaired_it(
        self, hurt: tuple[Path, int], log_at: Callable[..., LogEngine]
    ) -> None:
        engine = log_at()
        list(engine.verify())
        refuses(engine, *hurt)
        assert log_at().salvage(1)
        turn(engine, "a", "goes on")

    def test_counts_no_more_once_it_was_repaired(
        self, hurt: tuple[Path, int], log_at: Callable[..., LogEngine]
    ) -> None:
        list(log_at().verify())
        assert log_at().salvage(1)
        turn(log_at(), "a", "goes on")
        assert log_at().warnings == ()

    def test_is_met_in_opening_where_the_index_is_gone(
        self, hurt: tuple[Path, int], root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        Layout(root).index(1).unlink()
        refuses(log_at(), *hurt)


@pytest.mark.parametrize("at", [0, 20, -20, -10, -3], ids=str)
def test_the_reflog_names_the_batch_that_is_damaged(
    root: Path, log_at: Callable[..., LogEngine], at: int
) -> None:
    """It is walked backwards, and where a batch begins stands at its end."""
    engine = log_at(seal_at=600)
    for i in range(12):
        turn(engine, "a", f"turn {i}")
    engine.close()
    (_, (start, end), *_) = batches(segment_path(root))
    flip(segment_path(root), start + at if at >= 0 else end + at)
    with pytest.raises(Corrupt) as met:
        list(log_at().reflog())
    assert (met.value.path, met.value.offset) == (str(segment_path(root)), start)
