"""Answers that do not arrive: what was kept counts once, and what was not is not acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from buckets import Watched, engine_of, store_on
from servers.faulty import Faults, FaultyProxy
from servers.s3 import Server

from snapstore import RefMoved, Store, UnknownOutcome, Unreachable
from snapstore.engines.objectstore import client, reflog
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.engines.objectstore.failures import Unclear
from snapstore.links import links


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries follow at once."""
    monkeypatch.setattr(reflog, "FIRST_PAUSE", 0.001)


@pytest.fixture
def bucket() -> Watched:
    """A bucket with a session `s` of one turn, for a handle that knows it."""
    return Watched(Bucket.in_memory())


@pytest.fixture
def store(bucket: Watched) -> Store:
    store = store_on(bucket)
    session = store.session("s")
    session.history.append("first")
    session.save()
    return store


def on_records(act: Callable[[], None], times: int = 1) -> Callable[[str, str], None]:
    """Do something at so many requests to create a record."""
    left = [times]

    def fault(what: str, key: str) -> None:
        if what == "create" and key.startswith("refs/") and left[0] > 0:
            left[0] -= 1
            act()

    return fault


def lose() -> None:
    raise Unclear(Unreachable("no answer"))


def turns(bucket: Watched) -> list[object]:
    bucket.before = bucket.after = None
    store = store_on(bucket)
    assert store.verify() == []
    assert engine_of(store).log.last("sessions/s").move.gen == store.session("s").turn
    return list(store.session("s").history)


def test_a_save_whose_answer_was_lost_was_carried_out(bucket: Watched, store: Store) -> None:
    session = store.session("s")
    session.history.append("second")
    bucket.after = on_records(lose)
    assert session.save().turn == 2
    assert turns(bucket) == ["first", "second"]


def test_a_save_that_never_arrived_is_sent_again(bucket: Watched, store: Store) -> None:
    session = store.session("s")
    session.history.append("second")
    bucket.before = on_records(lose, times=3)
    assert session.save().turn == 2
    assert turns(bucket) == ["first", "second"]


def test_a_save_that_another_writer_overtook_is_a_conflict(bucket: Watched, store: Store) -> None:
    session = store.session("s")
    session.history.append("mine")

    def overtake() -> None:
        bucket.before = None
        other = store_on(bucket).session("s")
        other.history.append("theirs")
        other.save()
        lose()

    bucket.before = on_records(overtake)
    with pytest.raises(RefMoved):
        session.save()
    assert turns(bucket) == ["first", "theirs"]


def test_when_nothing_answers_any_more_the_outcome_is_unknown(
    bucket: Watched, store: Store
) -> None:
    session = store.session("s")
    session.history.append("second")

    def die() -> None:
        def dead(what: str, key: str) -> None:
            raise Unreachable("no answer")

        bucket.before = dead
        lose()

    bucket.after = on_records(die)
    with pytest.raises(UnknownOutcome):
        session.save()
    bucket.before = bucket.after = None
    assert session.save().turn == 2  # repeating it is safe, whichever way it went
    assert turns(bucket) == ["first", "second"]


def test_a_save_that_is_never_answered_is_not_said_to_have_failed(
    bucket: Watched, store: Store
) -> None:
    session = store.session("s")
    session.history.append("second")
    bucket.before = on_records(lose, times=99)
    with pytest.raises(UnknownOutcome):
        session.save()
    bucket.before = None
    assert session.save().turn == 2
    assert turns(bucket) == ["first", "second"]


def test_an_upload_that_failed_changes_nothing(bucket: Watched, store: Store) -> None:
    session = store.session("s")
    session.history.append("second")

    def fail(what: str, key: str) -> None:
        if what == "put":
            raise Unreachable("no answer")

    bucket.before = fail
    with pytest.raises(Unreachable):
        session.save()
    bucket.before = None
    assert turns(bucket) == ["first"]
    assert session.save().turn == 2


def save_all(store: Store, name: str, texts: list[str]) -> None:
    """Save each text as a turn, again and again until it is in."""
    for text in texts:
        while True:
            session = store.session(name)
            session.history.append(text)
            try:
                session.save()
                break
            except RefMoved:
                continue


def behind_faults(server: Server, faults: Faults, writers: int, each: int) -> None:
    url = server.url()
    store_on(Bucket.at(url, server.options())).engine.create()
    with FaultyProxy(server.port, faults) as proxy, ThreadPoolExecutor(writers) as pool:
        handles = [
            Store(ObjectStoreEngine(Bucket.at(url, server.options(proxy.port)), links=links))
            for _ in range(writers)
        ]
        texts = [[f"{n} of {me}" for n in range(each)] for me in range(writers)]
        list(pool.map(lambda me: save_all(handles[me], "shared", texts[me]), range(writers)))
        assert sum(proxy.hit[fault] for fault in ("lost", "failed", "refused", "late")) > 0
    store = store_on(Bucket.at(url, server.options()))
    session = store.session("shared")
    assert sorted(session.history) == sorted(text for some in texts for text in some)
    assert session.turn == writers * each == len(list(store.engine.reflog()))
    assert store.verify() == []


def test_behind_a_proxy_each_acknowledged_save_is_one_move(
    moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(client.RETRIES, "backoff", {"init_backoff": client.PAUSE / 20})
    behind_faults(moto, Faults(lost=0.08, failed=0.08, refused=0.04), writers=3, each=12)


@pytest.mark.slow
def test_behind_a_proxy_that_lets_writes_land_late(moto: Server) -> None:
    faults = Faults(lost=0.08, failed=0.08, refused=0.04, late=0.02)
    behind_faults(moto, faults, writers=3, each=40)


@pytest.mark.ceph
@pytest.mark.parametrize("each", [12, pytest.param(50, marks=pytest.mark.slow)])
def test_behind_a_proxy_before_ceph(ceph: Server, each: int) -> None:
    faults = Faults(lost=0.08, failed=0.08, refused=0.04, late=0.02)
    behind_faults(ceph, faults, writers=4, each=each)
