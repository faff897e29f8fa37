"""Each problem names every session and every turn that it touches."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from stores import Place

from snapstore import Store
from snapstore.engine import Kind, Obj, Problem, Touch
from snapstore.engines.log import batch as fmt
from snapstore.engines.log.batch import Header, Writer
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.ids import object_id
from snapstore.store import open_store


def turns(store: Store, name: str, *messages: str) -> None:
    session = store.session(name)
    for message in messages:
        session.history.append(message)
        session.save()


@pytest.fixture
def forked(place: Place) -> Store:
    """Session a of five turns; b and c from its third, each with one more; a tag on its second."""
    store = place.open()
    turns(store, "a", "1", "2", "3", "4", "5")
    for name in ("b", "c"):
        store.session("a").fork(name, at=3)
        turns(store, name, f"of {name}")
    store.tag("t", store.session("a").at(2))
    return store


def touched(place: Place, *lost: bytes | None) -> list[tuple[Touch, ...]]:
    assert None not in lost
    problems = place.lacking(*filter(None, lost)).verify()
    return [problem.touches for problem in problems]


def a(first: int, last: int) -> Touch:
    return Touch("sessions/a", first, last)


def b(first: int, last: int) -> Touch:
    return Touch("sessions/b", first, last)


def c(first: int, last: int) -> Touch:
    return Touch("sessions/c", first, last)


def test_a_message_that_forks_share_touches_them_all(forked: Store, place: Place) -> None:
    message = forked.session("a").history.ids()[1]
    t = Touch("tags/t", 2, 2)
    assert touched(place, message) == [(a(2, 5), b(2, 4), c(2, 4), t)]


def test_a_message_of_one_line_touches_that_alone(forked: Store, place: Place) -> None:
    assert touched(place, forked.session("b").history.ids()[-1]) == [(b(4, 4),)]
    assert touched(place, forked.session("a").history.ids()[3]) == [(a(4, 5),)]


def test_a_piece_of_a_history_touches_what_is_built_on_it(forked: Store, place: Place) -> None:
    assert touched(place, forked.session("a").at(3).record.history) == [(a(3, 5), b(3, 4), c(3, 4))]


def test_behind_a_turn_that_is_gone_nothing_is_reached(forked: Store, place: Place) -> None:
    assert touched(place, forked.session("a").at(3).raw_id) == [(a(1, 3), b(1, 3), c(1, 3))]


def test_a_line_whose_last_turn_is_gone_is_touched_as_a_whole(forked: Store, place: Place) -> None:
    head = forked.session("c").head
    assert head is not None
    assert touched(place, head.raw_id) == [(c(0, 0),)]


def test_a_message_that_was_taken_out_and_came_back_touches_two_runs_of_turns(
    store: Store, place: Place
) -> None:
    turns(store, "a", "1", "2")
    session = store.session("a")
    lost = session.history.ids()[1]
    del session.history[1]
    session.save()
    turns(store, "a", "2", "3")
    assert touched(place, lost) == [(a(2, 2), a(4, 5))]


def test_what_hangs_on_a_turn_touches_the_turns_that_have_it(
    store: Store, place: Place, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "file").write_text("kept")
    session = store.session("a")
    session.worktree = tmp_path / "project"
    session.scratchpad["long"] = "value " * 100
    session.save()
    session.history.append("more " * 30_000)
    session.save()
    session.scratchpad["long"] = "short"
    (tmp_path / "project" / "file").write_text("changed")
    session.save()
    first, second = session.at(1), session.at(2)
    assert first.files is not None
    assert touched(place, bytes.fromhex(first.files["file"].id or "")) == [(a(1, 2),)]
    assert touched(place, first.record.scratchpad) == [(a(1, 2),)]
    assert touched(place, first.record.files) == [(a(1, 2),)]
    large = second.history.ids()[0]
    piece = store.engine.read(large).payload[:32]
    assert touched(place, piece) == [(a(2, 3),)]


def test_turns_that_no_ref_leads_to_are_named_by_where_one_led(store: Store, place: Place) -> None:
    turns(store, "a", "1", "2", "3")
    lost = store.session("a").history.ids()
    store.session("a").rewind(1)
    assert touched(place, lost[2]) == [(a(3, 3),)]
    assert touched(place, lost[0]) == [(a(1, 1),)]
    store.delete("a")
    assert touched(place, lost[0]) == [(a(1, 3),)]


def test_a_chunk_list_that_names_itself_does_not_keep_it_busy(store: Store, place: Place) -> None:
    """Its id is that of what its chunks make up, so nothing stops whoever means harm."""
    turns(store, "a", "x" * 100_000, "lost")
    large, lost = store.session("a").history.ids()
    hostile = place.lacking(lost)
    read, found = hostile.engine.read, Obj(large, Kind.CHUNKED, large)
    hostile.engine.read = lambda i: found if i == large else read(i)  # type: ignore[method-assign]
    assert [problem.touches for problem in hostile.verify()] == [(a(2, 2),)]


def test_each_cause_is_told_once(forked: Store, place: Place) -> None:
    lost = (forked.session("a").history.ids()[0], forked.session("a").at(2).record.history)
    assert len(touched(place, *lost)) == 2


# --- in files ------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Sessions a and b, saved in turn, in several segments."""
    root = tmp_path / "store"
    with Store(LogEngine(root, seal_at=4000)) as store:
        for n in range(12):
            for name in "ab":
                turns(store, name, f"{name} {n} " * 30)
    return root


def damaged(root: Path, segment: int, batch: int) -> list[Problem]:
    """The problems after the middle of a batch was damaged."""
    path = Layout(root).segment(Layout(root).segments_on_disk()[segment])
    data, start = bytearray(path.read_bytes()), 0
    for _ in range(batch):
        start += Header(bytes(data[start:]), (str(path), start)).size
    data[start + Header(bytes(data[start:]), (str(path), start)).size // 2] ^= 0xFF
    path.write_bytes(data)
    with open_store(root) as store:
        return [problem for problem in store.verify() if not problem.harmless]


def test_a_damaged_batch_touches_what_all_its_objects_do(root: Path) -> None:
    batch, *objects = damaged(root, 0, 3)  # batch 0 has no turn, so this is the second turn of a
    assert (batch.kind, batch.touches) == ("damaged_batch", (a(1, 12),))
    assert {problem.touches for problem in objects} == {(a(1, 2),), (a(3, 12),)}


def test_damage_of_the_last_segment_touches_the_turns_that_are_hidden_behind_it(root: Path) -> None:
    with open_store(root) as store:
        store.session("a").fork("c")
        turns(store, "c", "of c", "more of c")
    (problem,) = damaged(root, -1, 1)
    hidden = {touch.ref: touch for touch in problem.touches}
    assert hidden["sessions/c"] == c(1, 14)  # the fork too was made behind it
    with open_store(root) as store:
        for ref, touch in hidden.items():
            shown = store.session(ref.removeprefix("sessions/")).turn
            assert ref == "sessions/c" or touch == Touch(ref, shown + 1, 12)


def test_an_object_that_holds_something_else_touches_its_turns(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a writer that goes wrong makes such a store: the batch as a whole verifies."""
    store = open_store(root)
    pack = Writer.pack

    def wrong(self: Writer, objects: list[Obj], *rest: object, **more: object) -> object:
        changed = [
            o._replace(payload=b"\xa4evil") if o.kind == Kind.CONTENT else o for o in objects
        ]
        return pack(self, changed, *rest, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "pack", wrong)
        turns(store, "a", "good")
    turns(store, "a", "next")
    (problem,) = store.verify()
    assert (problem.kind, problem.id) == ("wrong_content", object_id(b"\xa4good"))
    assert problem.touches == (a(13, 14),)
    assert store.verify(quick=True) == []


def test_a_block_that_cannot_be_read_is_one_problem_that_touches_all_in_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(root)
    session = store.session("a")
    session.history.extend(["one " * 100, "two " * 100])
    with monkeypatch.context() as patch:
        patch.setattr("snapstore.engines.log.batch.smaller", _garbled)
        session.save()
    problems = store.verify()
    assert [problem.kind for problem in problems] == ["damaged_record"]
    assert problems[0].touches == (a(13, 13),)


def _garbled(raw: bytes, *_: object) -> tuple[int, bytes]:
    """What compresses contents, in a store where that goes wrong."""
    return (fmt.ZSTD, b"no frame") if b"one" in raw else (fmt.RAW, raw)


def test_a_quick_verification_reads_no_content_of_a_large_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size, root = 1 << 20, tmp_path / "large"
    with open_store(root) as store:
        turns(store, "a", random.Random(1).randbytes(size).hex())
    read: list[int] = []
    _count_reads(monkeypatch, read.append)
    with open_store(root) as store:
        assert store.session("a").turn == 1
        read.clear()  # what opening reads is no matter here
        assert store.verify(quick=True) == []
    assert sum(read) < size / 4


def _count_reads(monkeypatch: pytest.MonkeyPatch, note: Callable[[int], None]) -> None:
    pread = os.pread

    def counted(fd: int, length: int, offset: int) -> bytes:
        data = pread(fd, length, offset)
        note(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
