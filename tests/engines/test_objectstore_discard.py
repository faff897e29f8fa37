"""Purging a store in a bucket: no byte of the text is left, and nobody else loses anything."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from buckets import Watched, engine_of, saved, store_on
from servers.azure import Azurite
from servers.s3 import Server

from snapstore import NothingToDo, ObjectMissing, RefMoved, Refused, Store, Unreachable
from snapstore.engine import Update
from snapstore.engines.log.batch import Batch
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.engines.objectstore.layout import PACKS, REFS
from snapstore.engines.objectstore.records import decode
from snapstore.engines.objectstore.stored import objects_in
from snapstore.links import links
from snapstore.maintenance.purge import purge

KEY = "the-leaked-key-42"
GRACE = 0.4


@pytest.fixture
def bucket() -> Bucket:
    return Bucket.in_memory()


@pytest.fixture(params=["memory", "moto", pytest.param("ceph", marks=pytest.mark.ceph), "azurite"])
def anywhere(request: pytest.FixtureRequest) -> Bucket:
    """A bucket on each kind of server in turn."""
    if request.param == "memory":
        return Bucket.in_memory()
    server: Server | Azurite = request.getfixturevalue(request.param)
    return Bucket.at(server.url(), server.options())


def holding(bucket: Bucket) -> list[str]:
    """The keys under which the text is found, in what was compressed too."""
    return [found.key for found in bucket.every("") if KEY.encode() in _bare(bucket, found.key)]


def _bare(bucket: Bucket, key: str) -> bytes:
    data = bucket.get(key)
    parts = [data]
    if key.startswith(PACKS):
        opened = Batch(data, (key, 0))
        parts += [opened.payload(slot) for slot in range(opened.objects)]
    elif key.startswith(REFS):
        record = decode(data, key)
        parts += [repr(record).encode(), *(o.payload for o in record.inline)]
    return b"\n".join(parts)


def said(store: Store, name: str) -> list[str]:
    return [message["content"] for message in store.session(name).history]


def leaked(bucket: Bucket) -> Store:
    """A store in which the text is in turns, labels, tags, forks, and what was merged."""
    store = store_on(bucket)
    turns = [f"{n}" for n in range(10)]
    session = saved(store, "s", *turns, KEY, *turns)
    session.scratchpad["key"] = KEY
    session.save(f"label {KEY}")
    store.tag("tagged", session.head)
    session.fork("late")
    session.fork("early", at=5)
    saved(store, "early", "on", "and on")
    session.rewind(3)
    saved(store, "s", "another way")
    saved(store, "gone", KEY)
    store.delete("gone")
    saved(store, "other", "nothing", "of it")
    return store


def test_no_byte_of_it_is_left_anywhere(anywhere: Bucket) -> None:
    leaked(anywhere)
    assert len(holding(anywhere)) > 5
    purge(store_on(anywhere), KEY, apply=True)
    assert holding(anywhere) == []
    store = store_on(anywhere)
    assert store.verify() == []
    assert said(store, "late") == [*map(str, range(10)), "[purged]", *map(str, range(10))]
    assert store.resolve("late").label == "label [purged]"
    assert store.resolve("tagged").scratchpad["key"] == "[purged]"
    assert said(store, "s") == ["0", "1", "2", "another way"]
    assert store.resolve("s@{1}").turn == 22
    store.undo("gone")
    assert said(store, "gone") == ["[purged]"]
    with pytest.raises(NothingToDo):
        store.undo("s")


def test_a_session_that_only_shares_with_those_stays_what_it_was(bucket: Bucket) -> None:
    before = leaked(bucket).resolve("early").id
    moves_ago = store_on(bucket).resolve("early@{1}").id
    purge(store_on(bucket), KEY, apply=True)
    store = store_on(bucket)
    assert store.resolve("early").id == before
    assert store.resolve("early@{1}").id == moves_ago
    assert said(store, "early") == ["0", "1", "2", "3", "4", "on", "and on"]
    store.undo("early")
    assert store.resolve("early").id == moves_ago
    store.redo("early")
    saved(store, "early", "further")
    store.undo("early")
    assert store.resolve("early").id == before
    assert store.verify() == []


def test_a_session_that_shares_nothing_is_not_touched(bucket: Bucket) -> None:
    leaked(bucket)
    store = store_on(bucket)
    before = store.engine.tip("sessions/other")
    purge(store, KEY, apply=True)
    assert store_on(bucket).engine.tip("sessions/other") == before


def test_doing_it_again_writes_nothing(bucket: Bucket) -> None:
    leaked(bucket)
    purge(store_on(bucket), KEY, apply=True)
    before = {found.key for found in bucket.every("")}
    watched = Watched(bucket)
    assert purge(store_on(watched), KEY, apply=True).sessions == ()
    assert {found.key for found in bucket.every("")} == before
    assert watched.requests["put"] == watched.requests["create"] == 0


def test_nothing_is_left_in_the_cache_of_this_machine(bucket: Bucket, tmp_path: Path) -> None:
    leaked(bucket)

    def cached() -> list[Path]:
        return [path for path in tmp_path.rglob("*") if path.is_file()]

    store = Store(ObjectStoreEngine(bucket, links=links, cache=tmp_path))
    assert said(store, "late")
    assert cached()
    purge(store, KEY, apply=True)
    assert cached() == []
    assert said(store, "other") == ["nothing", "of it"]


def test_other_machines_forget_what_they_have_cached_when_they_open_it_again(
    bucket: Bucket, tmp_path: Path
) -> None:
    leaked(bucket)

    def elsewhere() -> Store:
        return Store(ObjectStoreEngine(bucket, links=links, cache=tmp_path))

    def cached() -> list[str]:
        return sorted(path.name for path in tmp_path.rglob("*") if path.is_file())

    assert said(elsewhere(), "late")
    assert cached()
    purge(store_on(bucket), KEY, apply=True)
    assert said(elsewhere(), "other")
    now = cached()
    assert holding(bucket) == []
    assert {name for name in now if name != "purged"} <= {
        found.key.rpartition("/")[2] for found in bucket.every(PACKS)
    }
    assert said(elsewhere(), "other")
    assert cached() == now


def test_the_turns_after_it_build_on_what_is_left(bucket: Bucket) -> None:
    store = leaked(bucket)
    purge(store, KEY, apply=True)
    saved(store, "late", *(f"more {n}" for n in range(20)))
    assert holding(bucket) == []
    assert store_on(bucket).verify() == []
    assert len(said(store_on(bucket), "late")) == 41
    for _ in range(3):
        time.sleep(GRACE * 1.1)
        store.switch(f"at{time.time()}")
        engine_of(store_on(bucket)).collect(apply=True, grace=GRACE)
    assert store_on(bucket).verify() == []


# --- others ---------------------------------------------------------------------------------------


class Stopped(threading.Thread):
    """A save that stops after it has uploaded its pack, until it is told to go on."""

    def __init__(self, bucket: Bucket, name: str, text: str) -> None:
        super().__init__()
        self.uploaded, self.goes_on = threading.Event(), threading.Event()
        watched = Watched(bucket)
        store = store_on(watched)
        self._session = store.session(name)
        len(self._session.history)
        self._text = text
        self.failed: Exception | None = None
        watched.before = self._pause

    def _pause(self, what: str, key: str) -> None:
        if what == "create" and not self.uploaded.is_set():
            self.uploaded.set()
            assert self.goes_on.wait(20)

    def run(self) -> None:
        self._session.history.append({"role": "user", "content": self._text})
        try:
            self._session.save(self._text)
        except Exception as error:
            self.failed = error

    def upload(self) -> None:
        self.start()
        assert self.uploaded.wait(20)

    def finish(self) -> None:
        self.goes_on.set()
        self.join(20)


def test_a_save_that_has_merged_what_is_to_go_is_made_again_without_it(bucket: Bucket) -> None:
    store = store_on(bucket)
    saved(store, "s", "1", "2", "3", KEY)
    shared = saved(store, "s", "5").fork("w", at=3)
    assert shared.turn == 3
    saved(store, "w", "4", "5", "6")
    writer = Stopped(bucket, "w", "the eighth, which merges")
    writer.upload()
    purge(store_on(bucket), KEY, apply=True)
    writer.finish()
    assert writer.failed is None
    assert holding(bucket) == []
    fresh = store_on(bucket)
    assert said(fresh, "w") == ["1", "2", "3", "4", "5", "6", "the eighth, which merges"]
    assert fresh.verify() == []


def test_a_save_of_the_text_itself_that_is_under_way_is_not_lost(bucket: Bucket) -> None:
    saved(store_on(bucket), "s", KEY)
    writer = Stopped(bucket, "w", f"again {KEY}")
    writer.upload()
    with pytest.raises(Refused, match="under way"):
        purge(store_on(bucket), KEY, apply=True)
    writer.finish()
    assert writer.failed is None
    assert said(store_on(bucket), "w") == [f"again {KEY}"]
    purge(store_on(bucket), KEY, apply=True)
    assert said(store_on(bucket), "w") == ["again [purged]"]
    assert holding(bucket) == []
    assert store_on(bucket).verify() == []


def test_what_a_save_left_that_was_cut_off_goes_when_it_can_not_be_under_way_any_more(
    bucket: Bucket,
) -> None:
    dying = Watched(bucket)
    session = store_on(dying).session("s")

    def die(what: str, key: str) -> None:
        if what == "create" and key.startswith(REFS):
            raise KeyboardInterrupt

    dying.before = die
    session.history.append(KEY)
    with suppress(KeyboardInterrupt):
        session.save()
    assert len(holding(bucket)) == 1
    with pytest.raises(Refused, match="under way"):
        purge(store_on(bucket, grace=GRACE), KEY, apply=True)
    time.sleep(GRACE)
    store_on(bucket).switch("somebody")  # lets the server's clock be seen
    purge(store_on(bucket, grace=GRACE), KEY, apply=True)
    assert holding(bucket) == []


@pytest.mark.parametrize("turns", [1, 20], ids=["which was read", "of which little was read"])
def test_a_program_that_stands_on_a_turn_that_is_gone_keeps_its_state(
    bucket: Bucket, turns: int
) -> None:
    saved(store_on(bucket), "s", KEY, *map(str, range(turns)))
    held = store_on(bucket).session("s")
    assert len(held.history) == turns + 1
    purge(store_on(bucket), KEY, apply=True)
    held.history.append({"role": "user", "content": "unsaved"})
    with pytest.raises(RefMoved):
        held.save()
    with pytest.raises(Refused, match="purged"):
        held.save(on_conflict="fork")
    assert held.history[-1]["content"] == "unsaved"
    assert holding(bucket) == []


def test_a_fork_of_a_turn_that_is_gone_is_refused_and_of_another_is_whole(bucket: Bucket) -> None:
    leaked(bucket)
    program = store_on(bucket)
    held, other = program.session("late"), program.session("early")
    assert (len(held.history), len(other.history)) == (21, 7)
    purge(store_on(bucket), KEY, apply=True)
    for turn in (None, 20):
        with pytest.raises((Unreachable, ObjectMissing)):
            held.fork("of-gone", at=turn)
    other.fork("of-another", at=5)
    fresh = store_on(bucket)
    assert said(fresh, "of-another") == ["0", "1", "2", "3", "4"]
    assert [info.name for info in fresh.sessions() if info.problem] == []
    assert fresh.verify() == []


def test_writers_who_go_on_meanwhile_lose_nothing(bucket: Bucket) -> None:
    store = leaked(bucket)
    stopping = threading.Event()
    kept: dict[str, list[str]] = {}
    failures: list[Exception] = []

    def write(name: str) -> None:
        mine = store_on(bucket)
        session = mine.session(name)
        told = [message["content"] for message in session.history]
        try:
            for n in range(1000):
                if stopping.is_set():
                    break
                session.history.append({"role": "user", "content": f"{name} {n}"})
                session.save()
                told.append(f"{name} {n}")
        except Exception as error:
            failures.append(error)
        kept[name] = told

    threads = [threading.Thread(target=write, args=(name,)) for name in ("new", "other")]
    for thread in threads:
        thread.start()
    try:
        purge(store, KEY, apply=True)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert failures == []
    fresh = store_on(bucket)
    assert {name: said(fresh, name) for name in kept} == kept
    assert all(len(told) > 2 for told in kept.values())
    assert fresh.verify() == []
    assert holding(bucket) == []


# --- killed ---------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is no more. Not an Exception, so that nothing handles it."""


def test_killed_at_any_request_it_has_lost_nothing_and_can_be_done_again() -> None:
    for at in _every_step():
        bucket = Bucket.in_memory()
        _small(bucket)
        dying = Watched(bucket)
        store = store_on(dying)
        dying.before = _dies_at(at)
        try:
            purge(store, KEY, apply=True)
        except Killed:
            pass
        else:
            assert at > 5
            return
        fresh = store_on(bucket)
        assert [w.replace(KEY, "[purged]") for w in said(fresh, "s")] == ["1", "[purged]", "3"]
        assert said(fresh, "f") == ["1", "f"]
        purge(fresh, KEY, apply=True)
        assert holding(bucket) == [], at
        fresh = store_on(bucket)
        assert said(fresh, "s") == ["1", "[purged]", "3"]
        assert said(fresh, "f") == ["1", "f"]
        assert fresh.verify() == [], at


def _every_step() -> Iterator[int]:
    yield from range(200)
    raise AssertionError("it never came to its end")


def _small(bucket: Bucket) -> None:
    store = store_on(bucket)
    session = saved(store, "s", "1", KEY)
    session.fork("f", at=1)
    saved(store, "f", "f")
    saved(store, "s", "3")


def _dies_at(at: int) -> Any:
    left = at

    def die(what: str, key: str) -> None:
        nonlocal left
        if what in ("put", "create", "delete"):
            if left == 0:
                raise Killed
            left -= 1

    return die


def test_objects_of_a_stored_pack_that_is_gone_are_none(bucket: Bucket) -> None:
    assert objects_in(bucket, bytes(16)) == []


def test_who_knows_a_session_from_before_others_saved_and_purged_is_overtaken(
    bucket: Bucket,
) -> None:
    store = store_on(bucket)
    saved(store, "s", "first", KEY)
    held = store_on(bucket).session("s")
    assert len(held.history) == 2
    saved(store, "s", "third", "fourth")
    purge(store_on(bucket), KEY, apply=True)
    held.history.append({"role": "user", "content": "unsaved"})
    with pytest.raises(RefMoved):
        held.save()
    assert said(store_on(bucket), "s") == ["first", "[purged]", "third", "fourth"]
    assert [move.ref for move in store_on(bucket).engine.reflog()].count("sessions/s") == 2
    assert holding(bucket) == []


def test_a_dropped_move_is_not_made_anew_and_its_number_is_free_when_nobody_goes_by_it(
    bucket: Bucket,
) -> None:
    engine = engine_of(store_on(bucket, grace=GRACE))
    waiting = engine_of(store_on(bucket))
    for n in range(6):
        before = bytes([n - 1]) * 32 if n else None
        engine.commit([], Update("state/t", bytes([n]) * 32, before, "x", 1))
        if n == 1:
            assert waiting.tip("state/t") == engine.tip("state/t")
    engine.discard((), {"state/t": 6})
    assert engine_of(store_on(bucket)).move("state/t", 3) is None
    last = engine.tip("state/t")
    with pytest.raises(RefMoved):
        waiting.commit([], Update("state/t", bytes([9]) * 32, bytes([1]) * 32, "x", 1))
    assert waiting.tip("state/t") == last
    time.sleep(GRACE * 1.2)
    engine.commit([], Update("state/t", None, bytes([5]) * 32, "x", 1))
    engine.discard((), {"state/t": 7})
    assert len(list(bucket.every(REFS))) == 1
