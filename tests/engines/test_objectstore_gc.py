"""Collection: what nothing names goes, after two marks and a grace time; nothing else ever does."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from buckets import Watched, engine_of, store_on

from snapstore import NotFound, NothingToDo, RefMoved, Refused, Store, Unreachable
from snapstore.engines.objectstore import engine as engine_module
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.engines.objectstore.gc import Collected
from snapstore.engines.objectstore.layout import PACKS
from snapstore.engines.objectstore.packs import WHOLE
from snapstore.links import links

GRACE = 0.3


@pytest.fixture
def bucket() -> Bucket:
    return Bucket.in_memory()


def saved(store: Store, name: str, turns: int) -> None:
    session = store.session(name)
    for n in range(turns):
        session.history.append(f"{name} {n}")
        session.save()


def packs(bucket: Bucket) -> set[str]:
    return {found.key for found in bucket.every(PACKS)}


def collect(bucket: Bucket, **options: float) -> Collected:
    """A collection by a handle of its own, after a moment in which the grace time passes."""
    time.sleep(GRACE * 1.1)
    touch(bucket)
    return engine_of(store_on(bucket)).collect(**({"apply": True, "grace": GRACE} | options))


def touch(bucket: Bucket) -> None:
    """Let the server's clock be seen: collections go by the newest time in their listing."""
    store_on(bucket).switch(f"at{random.random()}")


def test_shows_what_it_would_do_and_does_nothing(bucket: Bucket) -> None:
    store = store_on(bucket)
    saved(store, "s", 20)
    before = {found.key for found in bucket.every("")}
    shown = engine_of(store).collect(grace=0)
    assert shown.bytes > 0 and shown.objects == 0  # all of it was merged into what stays
    assert not shown.applied
    assert {found.key for found in bucket.every("")} == before


def test_deletes_merged_packs_in_the_second_run_and_not_before(bucket: Bucket) -> None:
    saved(store_on(bucket), "s", 20)
    before = packs(bucket)
    first = collect(bucket)
    assert (first.bytes, packs(bucket) >= before) == (0, True)
    assert first.condemned > 0
    second = collect(bucket)
    assert second.bytes > 0
    assert len(packs(bucket)) < len(before)
    assert list(store_on(bucket).session("s").history) == [f"s {n}" for n in range(20)]
    assert store_on(bucket).verify() == []


def test_spares_what_is_younger_than_the_grace_time(bucket: Bucket) -> None:
    saved(store_on(bucket), "s", 20)
    before = packs(bucket)
    for _ in range(3):
        engine_of(store_on(bucket)).collect(apply=True, grace=60)
    assert packs(bucket) == before


def test_spares_what_a_handle_may_still_go_by(bucket: Bucket) -> None:
    """Packs count until a grace time after the record that no longer names them."""
    reader = store_on(bucket)
    saved(store_on(bucket), "s", 7)
    assert reader.session("s").turn == 7  # knows seven packs, and has read none of them
    time.sleep(2 * GRACE)
    saved(store_on(bucket), "s", 1)  # the eighth is of the next tier
    assert engine_of(store_on(bucket)).collect(apply=True, grace=GRACE).condemned == 0
    assert len(packs(bucket)) == 8
    assert len(list(reader.session("s").history)) == 8


def test_a_handle_finds_its_way_when_what_it_goes_by_is_gone(bucket: Bucket) -> None:
    store = store_on(bucket)
    saved(store, "s", 7)
    reader = store_on(bucket)
    history = reader.session("s").history
    saved(store, "s", 1)
    engine_of(store).collect(apply=True, grace=0)
    assert list(history) == [f"s {n}" for n in range(7)]


def test_a_handle_finds_what_was_merged_out_of_a_pack_of_which_it_has_only_the_front(
    bucket: Bucket, tmp_path: Path
) -> None:
    writer = store_on(bucket).session("s")
    said = [random.Random(n).randbytes(WHOLE // 4).hex() for n in range(16)]
    for text in said[:8]:
        writer.history.append(text)
        writer.save()
    reader = Store(ObjectStoreEngine(bucket, links=links, cache=tmp_path))
    history = reader.session("s").history
    assert history[0] == said[0]
    for text in said[8:] * 7:
        writer.history.append(text + random.Random().randbytes(WHOLE // 8).hex())
        writer.save()
    before = packs(bucket)
    engine_of(store_on(bucket)).collect(apply=True, grace=0)
    assert before - packs(bucket)
    assert list(history) == said[:8]


def test_deletes_what_a_save_left_that_never_came_to_its_end(bucket: Bucket) -> None:
    saved(store_on(bucket), "s", 2)
    dying = Watched(bucket)
    session = store_on(dying).session("s")
    session.history.append("never")

    def die(what: str, key: str) -> None:
        if what == "create":
            raise KeyboardInterrupt

    dying.before = die
    with suppress(KeyboardInterrupt):
        session.save()
    orphaned = packs(bucket)
    assert collect(bucket).condemned == 1
    assert collect(bucket).objects == 3
    assert len(packs(bucket) & orphaned) == len(orphaned) - 1
    assert store_on(bucket).verify() == []


def test_a_store_with_nothing_in_it_yet_has_nothing_to_collect(bucket: Bucket) -> None:
    store = store_on(bucket)
    store.engine.create()
    assert engine_of(store).collect(apply=True) == Collected(0, 0, 0, True)


def test_what_was_deleted_can_be_brought_back_for_a_while(bucket: Bucket) -> None:
    store = store_on(bucket)
    saved(store, "s", 9)
    store.delete("s")
    for _ in range(3):
        collect(bucket)
    fresh = store_on(bucket)
    fresh.undo("s")
    assert len(list(fresh.session("s").history)) == 9
    assert fresh.verify() == []


def test_what_was_deleted_long_ago_is_let_go(bucket: Bucket) -> None:
    store = store_on(bucket)
    saved(store, "gone", 9)
    saved(store, "kept", 2)
    store.delete("gone")
    for _ in range(3):
        collect(bucket, keep_deleted=GRACE)
    fresh = store_on(bucket)
    assert [info.name for info in fresh.sessions()] == ["kept"]
    assert fresh.verify() == []
    with pytest.raises(NothingToDo):
        fresh.undo("gone")
    left = [found for found in bucket.every("refs") if bucket.get(found.key).find(b"gone") > 0]
    assert len(left) == 1
    saved(fresh, "gone", 1)
    assert engine_of(fresh).tip("sessions/gone").gen == 11


def test_without_any_grace_one_run_lets_go_of_all_that_only_undo_would_reach(
    bucket: Bucket,
) -> None:
    store = store_on(bucket)
    saved(store, "gone", 9)
    saved(store, "kept", 2)
    store.delete("gone")
    assert engine_of(store_on(bucket)).collect(apply=True, grace=0).objects == 27
    assert len(packs(bucket)) == 2
    fresh = store_on(bucket)
    assert fresh.verify() == []
    with pytest.raises(NothingToDo):
        fresh.undo("gone")


def test_a_session_that_is_brought_back_between_the_marks_is_spared(bucket: Bucket) -> None:
    store = store_on(bucket)
    saved(store, "s", 9)
    store.delete("s")
    early = store_on(bucket)
    assert early.engine.tip("sessions/s").new is None
    collect(bucket, keep_deleted=GRACE)  # condemned, and the last record made bare
    early.undo("s")  # by a handle that still knows the old one
    collect(bucket, keep_deleted=GRACE)
    fresh = store_on(bucket)
    assert len(list(fresh.session("s").history)) == 9
    assert fresh.verify() == []


def test_a_save_that_was_stopped_for_too_long_is_not_carried_out(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Watched(bucket)
    store = store_on(slow, grace=GRACE)
    saved(store, "s", 1)
    session = store.session("s")
    session.history.append("late")
    slow.after = lambda what, key: time.sleep(GRACE) if what == "put" else None
    with pytest.raises(Unreachable, match="too long"):
        session.save()
    slow.after = None
    assert store_on(bucket).session("s").turn == 1
    assert session.save().turn == 2
    assert engine_module.GRACE == 24 * 3600


def test_what_is_known_of_a_ref_counts_for_half_the_grace_time(bucket: Bucket) -> None:
    watched = Watched(bucket)
    store = store_on(watched, grace=GRACE)
    saved(store, "s", 1)
    session = store.session("s")
    session.history.append("later")
    time.sleep(GRACE)
    watched.requests.clear()
    session.save()
    assert watched.requests["list"] == 1


def test_races_with_writers_leave_nothing_dangling() -> None:
    """Writers save, fork, rewind, delete and undo while collections run one after the other."""
    bucket = Bucket.in_memory()
    saved(store_on(bucket), "base", 10)
    ends = time.monotonic() + 4
    failures: list[BaseException] = []

    def write(me: int) -> None:
        rng = random.Random(me)
        store = store_on(bucket, grace=GRACE)
        for n in moments(ends):
            try:
                act(store, rng, me, n)
            except (RefMoved, Refused, NotFound, NothingToDo, Unreachable):
                continue
            except BaseException as error:
                failures.append(error)
                return

    def collect_on() -> None:
        for _ in moments(ends):
            engine_of(store_on(bucket)).collect(apply=True, grace=GRACE, keep_deleted=GRACE)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    threads.append(threading.Thread(target=collect_on))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store = store_on(bucket)
    living = {f"session {info.name}" for info in store.sessions()}
    assert len(living) > 1
    assert [p for p in store.verify() if any(p.message.find(name) > 0 for name in living)] == []
    for info in store.sessions():
        assert info.problem is None
        assert len(list(store.session(info.name).history)) == info.messages


def moments(ends: float) -> Iterator[int]:
    n = 0
    while time.monotonic() < ends:
        yield n
        n += 1


def act(store: Store, rng: random.Random, me: int, n: int) -> None:
    """One step of a writer."""
    names = [info.name for info in store.sessions()]
    name = rng.choice(names)
    session = store.session(name)
    kind = rng.random()
    if kind < 0.6:
        session.history.append(f"{n} by {me}")
        session.save()
    elif kind < 0.75:
        session.fork(f"fork-{me}-{n}", at=rng.randint(1, max(1, session.turn)))
    elif kind < 0.85 and session.turn > 1:
        session.rewind(rng.randint(1, session.turn))
    elif kind < 0.93 and len(names) > 4 and name != "base":
        store.delete(name)
    else:
        session.undo()
