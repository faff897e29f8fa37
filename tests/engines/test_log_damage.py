"""Bytes that were acknowledged have changed: nothing more is saved, and nothing is thrown away."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from damage import QuickDisk, batches, files, flip, put, segment_path, unwitnessed
from given import content, holds_turn, save, snapshot, turn

from snapstore.engine import Update
from snapstore.engines.log import batch as fmt
from snapstore.engines.log import caches, witness
from snapstore.engines.log import log as log_module
from snapstore.engines.log.batch import Writer
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.engines.log.tail import Tail, examine
from snapstore.errors import Corrupt

TURNS = 6


def make(root: Path, *, handles: int) -> None:
    """A store of TURNS turns, saved through so many handles one after another."""
    for part in range(handles):
        engine = LogEngine(root, disk=QuickDisk())
        for i in range(part * TURNS // handles, (part + 1) * TURNS // handles):
            turn(engine, "a", f"turn {i}")
        engine.close()


@pytest.mark.parametrize("handles", [1, TURNS], ids=["one process", "a process for each turn"])
@pytest.mark.parametrize("hurt", range(TURNS))
class TestDamageBeforeTheLastBatch:
    """hurt: which batch; 0 is the one that a segment starts with."""

    def test_refuses_to_save_and_names_the_place(
        self, root: Path, hurt: int, handles: int, log_at: Callable[..., LogEngine]
    ) -> None:
        make(root, handles=handles)
        log = segment_path(root)
        start, end = list(batches(log))[hurt]
        for at in (start, start + fmt.HEADER_SIZE + 9, end - 1):
            whole = log.read_bytes()
            flip(log, at)
            before = files(root)
            engine = log_at()
            for _ in range(2):
                with pytest.raises(Corrupt) as damage:
                    turn(engine, "b", "on top")
                assert (damage.value.path, damage.value.offset) == (str(log), start)
            assert files(root) == before
            put(log, whole)

    def test_leaves_everything_before_it_readable(
        self, root: Path, hurt: int, handles: int, log_at: Callable[..., LogEngine]
    ) -> None:
        make(root, handles=handles)
        log = segment_path(root)
        start, end = list(batches(log))[hurt]
        flip(log, (start + end) // 2)
        engine = log_at()
        assert [holds_turn(engine, f"turn {i}") for i in range(hurt - 1)] == [True] * (hurt - 1)
        tip = engine.tip("a")
        assert (tip.gen if tip else 0) == max(hurt - 1, 0)

    def test_is_reported_by_verify_with_its_place(
        self, root: Path, hurt: int, handles: int, log_at: Callable[..., LogEngine]
    ) -> None:
        make(root, handles=handles)
        log = segment_path(root)
        start, end = list(batches(log))[hurt]
        flip(log, (start + end) // 2)
        problems = [p for p in log_at().verify() if not p.harmless]
        assert [(p.kind, p.path, p.offset) for p in problems] == [
            ("damaged_batch", str(log), start)
        ]


class TestTellingReaders:
    """Whoever only reads learns that what is shown is older than what was acknowledged."""

    def test_a_handle_warns_once_and_says_where(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        make(root, handles=1)
        start, end = list(batches(segment_path(root)))[4]
        flip(segment_path(root), (start + end) // 2)
        with pytest.warns(UserWarning, match="the state before some damage") as told:
            engine = log_at()
            for _ in range(3):
                engine.tip("a")
        assert len(told) == 1
        (text,) = engine.warnings
        assert f"{segment_path(root)} at {start}" in text and "snapstore repair" in text
        assert engine.cut_off is not None and engine.cut_off.offset == start

    def test_damage_is_seen_by_a_handle_that_was_open_before(
        self, root: Path, log_at: Callable[..., LogEngine]
    ) -> None:
        writer = log_at()
        turn(writer, "a", "turn 0")
        reader = log_at()
        for i in range(1, 4):
            turn(writer, "a", f"turn {i}")
        start, end = list(batches(segment_path(root)))[2]
        flip(segment_path(root), (start + end) // 2)
        with pytest.warns(UserWarning, match="the state before some damage"):
            tip = reader.tip("a")
        assert tip is not None and tip.gen == 1
        assert reader.cut_off is not None

    def test_a_torn_tail_is_no_matter(self, root: Path, log_at: Callable[..., LogEngine]) -> None:
        make(root, handles=1)
        log = segment_path(root)
        put(log, log.read_bytes()[:-1])
        unwitnessed(root)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            engine = log_at()
            engine.tip("a")
        assert (engine.cut_off, engine.warnings) == (None, ())

    def test_the_same_bytes_are_judged_once(
        self, root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make(root, handles=1)
        log = segment_path(root)
        put(log, log.read_bytes() + b"torn")
        judged: list[int] = []

        def counted(data: bytes, path: str, offset: int, number: int) -> Tail:
            judged.append(len(data))
            return examine(data, path, offset, number)

        monkeypatch.setattr(log_module, "examine", counted)
        engine = log_at()
        for _ in range(3):
            engine.tip("a")
        put(log, log.read_bytes() + b" more")
        engine.tip("a")
        assert judged == [4, 9]

    def test_what_was_only_being_written_is_taken_in(
        self, root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A reader may meet half a batch, and the whole ones behind it a moment later."""
        make(root, handles=1)
        log = segment_path(root)
        whole = log.read_bytes()
        flip(log, list(batches(log))[3][0])

        def late(data: bytes, path: str, offset: int, number: int) -> Tail:
            put(log, whole)
            return examine(data, path, offset, number)

        monkeypatch.setattr(log_module, "examine", late)
        engine = log_at()
        tip = engine.tip("a")
        assert tip is not None and tip.gen == TURNS
        assert engine.cut_off is None


def test_verify_names_what_is_hidden_behind_damage(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at()
    for ref in ("a", "hurt", "b", "c"):
        turn(engine, ref, f"turn of {ref}")
    engine.close()
    start, end = list(batches(segment_path(root)))[2]
    flip(segment_path(root), (start + end) // 2)
    (problem,) = [p for p in log_at().verify() if not p.harmless]
    assert problem.message.endswith("hidden until a repair: b, c")


def test_what_cannot_be_read_again_is_stored_again(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at(seal_at=600)
    for i in range(12):
        turn(engine, "a", f"turn {i}")
    engine.close()
    (_, first, *_) = batches(segment_path(root))
    flip(segment_path(root), (first[0] + first[1]) // 2)
    hurt = [content(b"message of turn 0"), snapshot(b"snapshot of turn 0")]
    again = log_at()
    again.commit(hurt)
    assert again.read_many([o.id for o in hurt]) == hurt
    assert log_at().read_many([o.id for o in hurt]) == hurt


def test_an_object_with_a_whole_copy_elsewhere_is_read_from_there(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    """A turn is not looked for before it is stored, so a repeated one is there twice."""
    snap = snapshot(b"saved twice" * 20)
    engine = log_at(seal_at=600)
    engine.commit([snap], Update("sessions/one", snap.id, None, "save", 1, fresh=True))
    for i in range(6):
        turn(engine, "a", f"turn {i}")
    engine.commit([snap], Update("sessions/two", snap.id, None, "save", 2, fresh=True))
    for i in range(6, 12):
        turn(engine, "a", f"turn {i}")
    engine.close()
    logs = [segment_path(root, number) for number in Layout(root).segments_on_disk()]
    copies = [log for log in logs if snap.payload in log.read_bytes()]
    assert len(copies) == 2
    for log in copies:
        whole = log.read_bytes()
        flip(log, whole.index(snap.payload) + 5)
        assert log_at().read(snap.id) == snap
        put(log, whole)


def test_a_copy_stored_again_in_the_same_segment_is_read_instead_of_the_damaged_one(
    root: Path, log_at: Callable[..., LogEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk may change bytes behind the back of the checks that a writer makes first."""
    monkeypatch.setattr(caches, "WORTH_CLOSING", 1)
    monkeypatch.setattr(witness.Witness, "was_checked", lambda *_: True)
    hurt = content(b"unlucky")
    engine = log_at()
    engine.commit([hurt])
    turn(engine, "a", "turn")
    engine.close()
    log = segment_path(root)
    flip(log, log.read_bytes().index(hurt.payload))
    engine = log_at()
    engine.commit([hurt])
    engine.close()
    assert log_at().read(hurt.id) == hurt


def test_a_segment_that_is_missing_is_damage(root: Path, log_at: Callable[..., LogEngine]) -> None:
    make(root, handles=1)
    segment_path(root).unlink()
    with pytest.raises(Corrupt, match="missing") as damage:
        log_at()
    assert damage.value.path == str(segment_path(root))


def test_a_segment_that_was_cut_under_an_open_handle_takes_no_save(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at()
    turn(engine, "a", "one")
    log = segment_path(root)
    put(log, log.read_bytes()[:-1])
    with pytest.raises(Corrupt):
        turn(engine, "a", "two")


class TestJudgingTheTail:
    """What lies behind the first bad byte, at offset 1000, decides."""

    OFFSET = 1000

    def judge(self, *tail: bytes) -> bool:
        data = b"".join(tail)
        found = examine(data, "file", self.OFFSET, number=8)
        assert (found.offset, found.length) == (self.OFFSET, len(data))
        return found.acknowledged

    def batch(
        self, durable_end: int = 0, *, flags: int = 0, number: int = 9, holds: bytes = b""
    ) -> bytes:
        data, _ = Writer().pack(
            [content(holds)],
            [],
            flags=flags,
            number=number,
            durable_end=durable_end,
            previous=b"before",
        )
        return data

    def test_nothing_whole_is_a_torn_tail(self) -> None:
        whole = self.batch(2000)
        assert not self.judge(b"\0" * 5000)
        assert not self.judge(b"bad", whole[:-1])
        assert not self.judge(b"bad", whole[1:])

    def test_one_that_claims_the_bad_byte_to_be_synced_is_damage(self) -> None:
        assert self.judge(b"bad", self.batch(self.OFFSET + 1))
        assert self.judge(b"bad", self.batch(self.OFFSET + 1, flags=fmt.LOOSE))
        assert self.judge(b"bad", b"snpB" * 9, self.batch(self.OFFSET + 3), b"bad again")

    def test_one_that_claims_no_more_than_what_lies_before_is_a_torn_tail(self) -> None:
        assert not self.judge(b"bad", self.batch(self.OFFSET))

    def test_two_that_were_waited_for_are_damage(self) -> None:
        assert self.judge(b"bad", self.batch(), self.batch())
        assert self.judge(b"bad", self.batch(), b"bad", self.batch())

    def test_any_number_that_nobody_waited_for_is_a_torn_tail(self) -> None:
        loose = self.batch(flags=fmt.LOOSE)
        assert not self.judge(b"bad", loose, loose, loose)
        assert not self.judge(b"bad", loose, loose, self.batch())

    def test_ones_that_are_older_than_what_is_missing_say_nothing(self) -> None:
        old = self.batch(9999, number=8)
        assert not self.judge(b"bad", old, old, self.batch(9999, number=2))

    def test_a_batch_within_a_batch_says_nothing(self) -> None:
        outer = self.batch(number=8, holds=self.batch(9999))
        hurt = outer[:-1] + b"?"
        assert not self.judge(hurt)
        assert self.judge(hurt, self.batch(9999))


def test_an_update_is_not_granted_on_top_of_damage(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    make(root, handles=1)
    start, _ = list(batches(segment_path(root)))[2]
    flip(segment_path(root), start)
    snap = snapshot(b"new")
    with pytest.raises(Corrupt):
        log_at().commit([snap], save("fresh", snap.id, None))
    assert log_at().tip("fresh") is None
