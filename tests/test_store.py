"""Opening a store, what it lists, and that one thing that is broken does not hide the others."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stores import Place

import snapstore
from snapstore import (
    InvalidInput,
    NotFound,
    ObjectMissing,
    Session,
    SnapstoreError,
    Store,
    StoreNotFound,
)
from snapstore.disk import Disk
from snapstore.engines.log.engine import LogEngine
from snapstore.errors import DiskError, NothingToDo, UnknownOutcome


def saved(store: Store, name: str, *messages: Any) -> Session:
    """A session with one more turn for each message."""
    session = store.session(name)
    for message in messages:
        session.history.append(message)
        session.save()
    return session


# --- opening and closing: a directory --------------------------------------------------------


def test_a_directory_becomes_a_store_with_the_first_save(tmp_path: Path) -> None:
    where = tmp_path / "deep" / "store"
    with snapstore.open(where) as store:
        session = store.session("s")
        assert (session.turn, store.sessions(), store.current) == (0, [], None)
        with pytest.raises(NotFound):
            store.resolve("s")
        with pytest.raises(StoreNotFound):
            snapstore.open(where, create=False)
        assert not where.parent.exists()
        session.history.append("hi")
        session.save()
    with snapstore.open(str(where), create=False) as store:
        assert store.session("s").history == ["hi"]


def test_a_directory_without_a_store_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFound, match="no store") as missing:
        snapstore.open(tmp_path, create=False)
    assert "init" in missing.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_need_not_be_durable_holds_the_same(tmp_path: Path) -> None:
    with snapstore.open(tmp_path / "store", durable=False) as store:
        saved(store, "s", "one", "two")
    with snapstore.open(tmp_path / "store") as store:
        assert store.session("s").history == ["one", "two"]


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    for where in (tmp_path / "store", "memory://"):
        store = snapstore.open(where)
        session = saved(store, "s", "one")
        store.close()
        store.close()
        session.history.append("two")
        with pytest.raises(SnapstoreError, match="closed"):
            session.save()
        with pytest.raises(SnapstoreError, match="closed"):
            store.sessions()


@pytest.mark.parametrize("where", ["memory://", "memory://named"])
def test_a_store_in_memory_is_its_own(where: str) -> None:
    with snapstore.open(where) as one, snapstore.open(where) as other:
        saved(one, "s", "one")
        assert one.session("s").turn == 1
        assert other.sessions() == []


class Refusing(Disk):
    """A disk whose writes or syncs fail when told to."""

    failing = ""

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        if self.failing == "write":
            raise DiskError("no space left on device", 28)
        super().write_at(fd, data, offset)

    def sync(self, fd: int) -> None:
        if self.failing == "sync":
            raise DiskError("input/output error", 5)
        super().sync(fd)


def test_a_save_that_the_disk_refused_can_be_repeated(tmp_path: Path) -> None:
    disk = Refusing()
    store = Store(LogEngine(tmp_path / "store", disk=disk))
    session = saved(store, "s", "one")
    session.history.extend(["two", "large " * 50_000])
    session.scratchpad["k"] = "v"
    disk.failing = "write"
    with pytest.raises(DiskError):
        session.save()
    disk.failing = ""
    assert (session.turn, len(session.history), session.unsaved) == (1, 3, True)
    assert session.save().turn == 2
    with snapstore.open(tmp_path / "store") as again:
        assert again.session("s").history == ["one", "two", "large " * 50_000]
        assert again.verify() == []


def test_after_an_unknown_outcome_the_same_save_can_be_made_again(tmp_path: Path) -> None:
    disk = Refusing()
    store = Store(LogEngine(tmp_path / "store", disk=disk))
    session = saved(store, "s", "one")
    session.history.append("two")
    disk.failing = "sync"
    with pytest.raises(UnknownOutcome):
        session.save("label")
    with snapstore.open(tmp_path / "store") as again:
        session = again.session("s")
        assert session.turn in (1, 2)
        session.history = ["one", "two"]
        session.save("label")
        assert [turn.history for turn in session.log()] == [["one", "two"], ["one"]]


# --- sessions --------------------------------------------------------------------------------


def test_sessions_are_listed_by_name_with_what_they_hold(store: Store, place: Place) -> None:
    b = saved(store, "b", "1", "2", "3")
    fork = b.fork("a/fork", at=2)
    empty = store.session("empty")
    empty.save()
    listed = place.open().sessions()
    assert [(info.name, info.turn, info.messages) for info in listed] == [
        ("a/fork", 2, 2), ("b", 3, 3), ("empty", 1, 0),
    ]  # fmt: skip
    assert [info.forked_from for info in listed] == [b.at(2).id, None, None]
    for info, session in zip(listed, (fork, b, empty), strict=True):
        assert session.head is not None
        assert (info.head, info.time) == (session.head.id, session.head.time)
        assert info.problem is None


@pytest.mark.parametrize("part", ["snapshot", "history"])
def test_a_session_that_cannot_be_read_hides_no_other(
    store: Store, place: Place, part: str
) -> None:
    broken, whole = saved(store, "broken", "1", "2"), saved(store, "whole", "3")
    assert broken.head is not None
    lost = broken.head.raw_id if part == "snapshot" else broken.head.record.history
    assert lost is not None
    damaged = place.lacking(lost)
    assert damaged.stats()["sessions"] == 2
    first, second = damaged.sessions()
    assert (first.name, first.head) == ("broken", broken.head.id)
    assert lost.hex() in (first.problem or "")
    assert (second.name, second.messages, second.problem) == ("whole", 1, None)
    assert damaged.session("whole").history == whole.history
    saved(damaged, "whole", "and on")
    with pytest.raises(ObjectMissing):
        damaged.session("broken")
    assert damaged.resolve(broken.at(1).id).history == ["1"]


@pytest.mark.parametrize(
    "name", ["", "../x", "a b", "-x", "a//b", "n" * 201, "a\0", "a@1", "a:b", "a~1"]
)
def test_what_cannot_name_a_session_is_refused(store: Store, name: str) -> None:
    for act in (store.session, store.switch):
        with pytest.raises(InvalidInput):
            act(name)
    assert store.sessions() == []


def test_names_that_look_alike_are_different_sessions(store: Store, place: Place) -> None:
    names = ["pr_x", "pr-x", "pr.x", "PR-x", "pr/x", "日本", "日木"]
    for name in names:
        saved(store, name, name)
    again = place.open()
    assert [info.name for info in again.sessions()] == sorted(names)
    for name in names:
        assert again.session(name).history == [name]


# --- the current session ---------------------------------------------------------------------


def test_the_current_session_is_remembered(store: Store, place: Place) -> None:
    assert store.current is None
    saved(store, "a", "1")
    store.switch("a")
    assert place.open().current == "a"
    before = list(store.engine.reflog())
    store.switch("a")
    assert list(store.engine.reflog()) == before
    store.switch("b")
    assert place.open().current == "b"


def test_of_all_who_switch_at_once_one_has_his_way_and_none_is_refused(place: Place) -> None:
    store, failures = place.open(), []

    def switch(name: str) -> None:
        try:
            for n in range(20):
                store.switch(f"{name}{n % 3}")
        except SnapstoreError as failure:
            failures.append(failure)

    threads = [threading.Thread(target=switch, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.current in {f"{name}{19 % 3}" for name in "abcd"}


# --- care ------------------------------------------------------------------------------------


def test_stats_count_what_there_is(store: Store) -> None:
    assert store.stats()["turns"] == 0
    session = saved(store, "s", "x" * 1000, "y" * 1000)
    session.fork("f")
    stats = store.stats()
    assert (stats["sessions"], stats["turns"]) == (2, 2)
    assert stats["objects"] == 2 + 2 + 2  # messages, list nodes, snapshots
    assert 3000 <= stats["logical_bytes"] <= 3030  # turn 1 holds one message, turn 2 both
    assert stats["bytes"] > 0


def test_a_sound_store_has_no_problems(store: Store, place: Place) -> None:
    assert store.verify() == []
    session = saved(store, "s", "1", "large " * 50_000)
    session.scratchpad.update({str(n): "x" * 300 for n in range(100)})
    session.save()
    session.fork("f", at=1)
    session.rewind(1)
    store.delete("f")
    assert place.open().verify() == []


def test_verify_names_the_session_and_turn_that_miss_an_object(store: Store, place: Place) -> None:
    session = saved(store, "s", "1", "2")
    session.scratchpad["big"] = "x" * 1000
    session.save()
    session.history.append("large " * 50_000)
    session.save()
    head, record = session.head, session.at(3).record
    assert head is not None
    message, chunked = head.history.ids()[1], head.history.ids()[2]
    pieces = store.engine.read(chunked).payload
    for lost, turn in (
        (message, 4), (chunked, 4), (pieces[:32], 4), (record.scratchpad, 4),
        (record.history, 4), (head.raw_id, None), (session.at(2).raw_id, 2),
    ):  # fmt: skip
        assert lost is not None
        problems = place.lacking(lost).verify()
        assert {problem.kind for problem in problems} == {"missing"}
        assert lost.hex() in problems[0].message
        at = f"turn {turn} of " if turn else ""
        assert problems[0].message.startswith(f"{at}session s: ")
        assert not problems[0].harmless


def test_verify_reports_each_loss_once_and_goes_on(store: Store, place: Place) -> None:
    lost = []
    for name in ("a", "b", "c"):
        session = saved(store, name, f"{name}1", f"{name}2")
        session.fork(f"{name}-fork")
        lost.append(session.history.ids()[0])
    problems = place.lacking(*lost).verify()
    assert [problem.id for problem in problems] == lost


def test_verify_looks_at_turns_that_only_undo_could_reach(store: Store, place: Place) -> None:
    session = saved(store, "s", "1", "2")
    gone = session.history.ids()[1]
    session.rewind(1)
    assert [problem.id for problem in place.lacking(gone).verify()] == [gone]


def test_after_a_collection_no_move_leads_nowhere(store: Store) -> None:
    for name in ("stays", "goes"):
        session = store.session(name)
        session.history.append({"role": "user", "content": name})
        session.save()
    store.delete("goes")
    store.gc(apply=True, grace=timedelta(0))
    assert list(store.verify()) == []
    assert [info.name for info in store.sessions()] == ["stays"]
    gone = store.session("goes")
    with suppress(NothingToDo):  # whoever still has it has it whole
        gone.undo()
        assert [message["content"] for message in gone.history] == ["goes"]
