"""What saving and loading cost on an object store, in requests."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from buckets import Watched, store_on
from servers.relay import CountingRelay
from servers.s3 import Server

from snapstore.engines.objectstore.client import Bucket
from snapstore.store import open_store

TURNS = 3000


@pytest.fixture(scope="module")
def long() -> Bucket:
    """A bucket with a session `long` of 3,000 turns."""
    bucket = Bucket.in_memory()
    session = store_on(bucket).session("long")
    for n in range(TURNS):
        session.history.extend(
            [{"role": "user", "content": f"question {n} " + "x" * 200}, f"answer {n}"]
        )
        session.save()
    return bucket


def test_a_warm_save_is_two_writes_and_nothing_else_also_when_packs_are_merged() -> None:
    bucket = Watched(Bucket.in_memory())
    session = store_on(bucket).session("s")
    session.save()
    bucket.requests.clear()
    for n in range(600):
        session.history.append(f"message {n}")
        session.scratchpad["n"] = n
        session.save()
    assert bucket.requests == {"put": 600, "create": 600}


def test_a_move_without_objects_is_one_write() -> None:
    bucket = Watched(Bucket.in_memory())
    store = store_on(bucket)
    session = store.session("s")
    for n in range(20):
        session.history.append(n)
        session.save()
    for move in (
        lambda: session.rewind(7),
        lambda: session.undo(),
        lambda: session.redo(),
        lambda: session.fork("other"),
        lambda: store.delete("other"),
        lambda: store.tag("v1", session.at(3)),
    ):
        bucket.requests.clear()
        move()
        assert (bucket.requests["create"], bucket.requests["put"]) == (1, 0)


def test_a_fresh_handle_knows_the_head_of_a_long_session_after_three_requests(long: Bucket) -> None:
    bucket = Watched(long)
    session = store_on(bucket).session("long")
    assert session.turn == TURNS
    assert len(session.history) == 2 * TURNS
    assert bucket.requests == {"get": 2, "list": 1}


def test_a_fresh_handle_loads_a_long_history_with_few_requests(long: Bucket) -> None:
    bucket = Watched(long)
    history = list(store_on(bucket).session("long").history)
    assert history[1::2] == [f"answer {n}" for n in range(TURNS)]
    assert sum(bucket.requests.values()) <= 64


def test_a_fresh_handle_reads_the_last_messages_without_the_old_packs(long: Bucket) -> None:
    bucket = Watched(long)
    last = store_on(bucket).session("long").history[-2:]
    assert last[1] == f"answer {TURNS - 1}"
    assert sum(bucket.requests.values()) <= 3 + 8


def test_a_fresh_handle_goes_on_saving_without_opening_all_packs(long: Bucket) -> None:
    bucket = Watched(long)
    session = store_on(bucket).session("long").fork("onward")
    bucket.requests.clear()
    session.history.append("onward")
    session.save()
    assert bucket.requests["put"] == bucket.requests["create"] == 1
    assert bucket.requests["get"] <= 8
    assert store_on(long).session("onward").history[-1] == "onward"


def test_turns_are_walked_without_reading_the_messages_of_merged_saves() -> None:
    bucket = Watched(Bucket.in_memory())
    session = store_on(bucket).session("s")
    for _ in range(520):
        session.history.append(secrets.token_hex(1500))
        session.save()
    fresh = Watched(bucket)
    assert [turn.turn for turn in store_on(fresh).session("s").log()] == [*range(520, 0, -1)]
    assert fresh.bytes < 520 * 1500 / 3
    assert store_on(bucket).session("s").history[5:300] == session.history[5:300]
    assert store_on(bucket).session("s").history[7] == session.history[7]


def test_a_save_to_a_server_is_two_put_requests(moto: Server) -> None:
    with CountingRelay(moto.port) as relay:
        bucket = Bucket.at(moto.url(), moto.options(relay.port))
        session = store_on(bucket).session("s")
        session.save()
        relay.forget()
        for n in range(20):
            session.history.append(n)
            session.save()
        assert relay.requests == {"PUT": 40}


def test_what_one_handle_saved_another_loads_through_a_shared_cache(
    moto: Server, tmp_path: Path
) -> None:
    with CountingRelay(moto.port) as relay:
        url, options = moto.url(), moto.options(relay.port)
        session = open_store(url, cache=tmp_path, options=options).session("s")
        for n in range(20):
            session.history.append(n)
            session.save()
        relay.forget()
        assert list(open_store(url, cache=tmp_path, options=options).session("s").history) == [
            *range(20)
        ]
        assert relay.requests == {"GET": 3}
