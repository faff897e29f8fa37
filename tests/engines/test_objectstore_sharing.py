"""A record names all that its ref reaches, wherever it came from: so nothing of it is collected."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import pytest
from buckets import Watched, engine_of, store_on
from given import content

from snapstore import Store, Unreachable, values
from snapstore.engine import Move, Update
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.shelf import Shelf
from snapstore.objects import Stage
from snapstore.refs import SESSIONS


@pytest.fixture
def bucket() -> Bucket:
    """A bucket with a session `first` of twenty turns with messages and a scratchpad."""
    bucket = Bucket.in_memory()
    session = store_on(bucket).session("first")
    session.scratchpad["early"] = "x" * 1000
    for n in range(20):
        session.history.append({"n": n, "text": secrets.token_hex(200)})
        session.scratchpad[f"key{n}"] = n
        session.save()
    return bucket


def forked(store: Store) -> str:
    session = store.session("first").fork("other", at=7)
    session.history.append("onward")
    session.save()
    return "other"


def forked_from_a_rewound_turn(store: Store) -> str:
    first = store.session("first")
    left = first.head
    first.rewind(2)
    first.history.append("another way")
    first.save()
    store.fork(left, "other")
    return "other"


def taken_over(store: Store) -> str:
    session = store.session("other")
    session.history = store.session("first").history
    session.save()
    return "other"


def rewound_to(store: Store) -> str:
    session = store.session("other")
    session.save()
    session.rewind("first@15")
    return "other"


def renamed(store: Store) -> str:
    store.rename("first", "other")
    return "other"


def saved_beside(store: Store) -> str:
    late = store.session("first")
    sooner = store.session("first")
    sooner.history.append("sooner")
    sooner.save()
    late.history.append("late")
    late.save(on_conflict="fork")
    return late.name


def uploaded_in_parts(store: Store) -> str:
    """As a push does: objects first, in several commits, and the ref last."""
    source = Store(store.engine).session("first")
    with Stage(store.objects) as stage:
        middle = stage.put_content(values.encode("a part of its own" * 100))
        stage.commit()
    with Stage(store.objects) as stage:
        tip = store.objects.lists.append(source.head.record.history, [middle], stage.put_node)
        stage.commit()
    with Stage(store.objects) as stage:
        head, _ = store.objects.snapshots.create(None, stage.put_snapshot, time=1, history=tip)
        stage.commit()
    store.engine.commit([], Update(SESSIONS + "other", head, None, "push", 1))
    return "other"


SHARED = [forked, forked_from_a_rewound_turn, taken_over, rewound_to, renamed, saved_beside,
          uploaded_in_parts]  # fmt: skip


@pytest.mark.parametrize("warm", [True, False], ids=["by who saved it", "by a fresh handle"])
@pytest.mark.parametrize("share", SHARED)
def test_what_was_shared_stays_when_its_first_owner_is_deleted(
    bucket: Bucket, share: Callable[[Store], str], warm: bool
) -> None:
    store = store_on(bucket)
    if warm:
        list(store.session("first").history)
    name = share(store)
    expected = state(store, name)
    if store.exists("first"):
        store.delete("first")
    collect_at_once(bucket)
    fresh = store_on(bucket)
    assert state(fresh, name) == expected
    assert [p for p in fresh.verify() if f"session {name}" in p.message] == []


def state(store: Store, name: str) -> list[object]:
    """Every turn of a line, in full."""
    return [
        (turn.turn, list(turn.history), dict(turn.scratchpad)) for turn in store.session(name).log()
    ]


def collect_at_once(bucket: Bucket) -> None:
    """Two collections without any grace, and of what was deleted just now."""
    for _ in range(2):
        engine_of(store_on(bucket)).collect(apply=True, grace=0, keep_deleted=0)


def test_a_fork_names_no_more_than_what_it_was_forked_from(bucket: Bucket) -> None:
    store = store_on(bucket)
    for n in range(10):
        session = store.session("first").fork(f"fork{n}")
        session.history.append(n)
        session.save()
    log = engine_of(store).log
    assert len(log.last(SESSIONS + "fork9").packs) == len(log.last(SESSIONS + "first").packs) + 1


def test_what_was_collected_since_it_was_read_cannot_be_shared(bucket: Bucket) -> None:
    store = store_on(bucket, grace=0.2)
    messages = store.session("first").history
    assert len(list(messages)) == 20
    other = store_on(bucket)
    other.delete("first")
    collect_at_once(bucket)
    time.sleep(0.2)
    session = store.session("other")
    session.history = messages
    with pytest.raises(Unreachable, match="collected"):
        session.save()
    assert store_on(bucket).session("other").turn == 0


def test_a_link_that_leads_nowhere_is_no_reason_to_refuse_a_commit(bucket: Bucket) -> None:
    engine = engine_of(store_on(bucket))
    move = engine.commit([], Update("tags/odd", bytes(32), None, "tag", 1, {"ids": [bytes(32)]}))
    assert isinstance(move, Move)
    assert engine_of(store_on(bucket)).tip("tags/odd") == move


def test_what_was_nowhere_and_then_came_is_named(bucket: Bucket) -> None:
    engine = engine_of(store_on(bucket))
    late = content(b"it comes late")
    for name in ("early", "again"):
        engine.commit([], Update(f"tags/{name}", bytes(32), None, "tag", 1, {"of": late.id}))
        engine.commit([late])
    assert engine_of(store_on(bucket)).read(late.id) == late


def test_an_object_is_there_while_another_thread_is_still_looking_for_it(bucket: Bucket) -> None:
    watched = Watched(bucket)
    engine = engine_of(store_on(watched))
    late = content(b"committed by another handle")
    engine_of(store_on(bucket)).commit([late], Update("tags/t", late.id, None, "tag", 1))
    answers: list[bool] = []

    def ask_meanwhile(what: str, key: str) -> None:
        watched.before = None
        answers.append(engine.contains(late.id))

    watched.before = ask_meanwhile
    answers.append(engine.contains(late.id))
    assert answers == [True, True]


def test_an_object_is_there_whose_pack_another_thread_opened_this_moment(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(store_on(bucket))
    there = content(b"in an open pack")
    engine.commit([there], Update("tags/t", there.id, None, "tag", 1))
    assert not engine.contains(bytes(32))  # for a second, not all refs are looked through
    monkeypatch.setattr(Shelf, "holder", lambda shelf, object_id: None)
    assert engine.contains(there.id)
