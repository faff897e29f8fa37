"""What others do between two requests of a purge, or a purge between two of theirs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from buckets import Fault, Watched, engine_of, saved, store_on
from servers.s3 import Server

from snapstore import ObjectMissing, Store, UnknownOutcome, Unreachable
from snapstore.engines.log.batch import Batch
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.layout import CONDEMNED, FORMAT, PACKS, REFS, record_key, ref_dir
from snapstore.maintenance.purge import purge

KEY = "the-leaked-key-42"
GRACE = 0.3


@pytest.fixture
def bucket() -> Bucket:
    """A session `s` that meets the text in its third turn, and one that shares nothing with it."""
    return leaking(Bucket.in_memory())


def leaking(bucket: Bucket) -> Bucket:
    saved(store_on(bucket), "s", "1", "2", KEY, "4")
    saved(store_on(bucket), "other", "a")
    return bucket


def said(store: Store, name: str) -> list[str]:
    return [message["content"] for message in store.session(name).history]


def once(do: Callable[[], object], what: str = "", where: str = "", nth: int = 1) -> Fault:
    """Does something at the nth request of a kind, or of any, for such a key."""
    met = 0

    def fault(asked: str, key: str) -> None:
        nonlocal met
        if asked.startswith(what) and where in key:
            met += 1
            if met == nth:
                do()

    return fault


def purged(bucket: Bucket) -> Callable[[], object]:
    """Takes the text out, by a handle of its own."""
    return lambda: purge(store_on(bucket), KEY, apply=True)


def holding(bucket: Bucket) -> list[str]:
    """The packs that hold the text."""
    found = []
    for entry in bucket.every(PACKS):
        opened = Batch(bucket.get(entry.key), (entry.key, 0))
        held = (opened.payload(slot) for slot in range(opened.objects))
        found += [entry.key for payload in held if KEY.encode() in payload]
    return found


# --- who takes over from another ref --------------------------------------------------------------


def fork(store: Store, turn: int) -> None:
    store.session("s").fork("f", at=turn)


def tag(store: Store, turn: int) -> None:
    store.tag("f", store.session("s").at(turn))


@pytest.mark.parametrize("act", [fork, tag])
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_shares_with_a_session_that_is_purged_meanwhile_rests_on_what_is_left(
    bucket: Bucket, act: Callable[[Store, int], None], when: str
) -> None:
    watched = Watched(bucket)
    setattr(watched, when, once(purged(bucket), "create", REFS))
    act(store_on(watched), 2)
    store = store_on(bucket)
    assert [message["content"] for message in store.resolve("f").history] == ["1", "2"]
    assert store.verify() == []  # each pack that it names is there
    assert said(store, "s") == ["1", "2", "[purged]", "4"]
    assert holding(bucket) == []


def test_the_same_on_a_server(moto: Server) -> None:
    bucket = leaking(Bucket.at(moto.url(), moto.options()))
    watched = Watched(bucket)
    watched.before = once(purged(bucket), "create", REFS)
    fork(store_on(watched), 2)
    assert said(store_on(bucket), "f") == ["1", "2"]
    assert store_on(bucket).verify() == []


def test_a_rename_meanwhile_keeps_the_session(bucket: Bucket) -> None:
    saved(store_on(bucket), "s", "5").fork("early", at=2)
    watched = Watched(bucket)
    watched.before = once(purged(bucket), "create", REFS)
    store_on(watched).rename("early", "new")
    assert said(store_on(bucket), "new") == ["1", "2"]
    assert {info.name for info in store_on(bucket).sessions()} == {"s", "other", "new"}
    assert store_on(bucket).verify() == []


@pytest.mark.parametrize("act", [fork, tag])
def test_a_new_name_for_a_turn_that_goes_meanwhile_is_withdrawn(
    bucket: Bucket, act: Callable[[Store, int], None]
) -> None:
    watched = Watched(bucket)
    watched.before = once(purged(bucket), "create", REFS)
    with pytest.raises(Unreachable, match="purged since"):
        act(store_on(watched), 4)
    store = store_on(bucket)
    assert ([info.name for info in store.sessions()], store.tags()) == (["other", "s"], {})
    assert store.verify() == []
    purge(store, KEY, apply=True)  # which reads all that any ref ever led to
    act(store, 4)
    assert [m["content"] for m in store.resolve("f").history] == ["1", "2", "[purged]", "4"]
    assert store_on(bucket).verify() == []


def test_a_tag_that_cannot_be_moved_to_a_turn_that_goes_meanwhile_stays_where_it_was(
    bucket: Bucket,
) -> None:
    store_on(bucket).tag("t", store_on(bucket).resolve("other"))
    watched = Watched(bucket)
    watched.before = once(purged(bucket), "create", REFS)
    store = store_on(watched)
    with pytest.raises(Unreachable, match="purged since"):
        store.tag("t", store.resolve("s"))
    fresh = store_on(bucket)
    assert fresh.tags() == {"t": fresh.resolve("other").id}
    assert fresh.verify() == []


def test_when_nobody_answers_whether_a_purge_came_by_the_outcome_is_unknown(
    bucket: Bucket,
) -> None:
    def silence() -> None:
        raise Unreachable("no answer")

    watched = Watched(bucket)
    store = store_on(watched)
    session = store.session("s")
    watched.before = once(silence, "get", FORMAT, nth=2)  # before the fork's record, and after it
    with pytest.raises(UnknownOutcome):
        session.fork("f", at=2)
    assert said(store, "f") == ["1", "2"]
    assert store_on(bucket).verify() == []


def test_a_new_name_for_a_turn_that_is_still_there_is_purged_too(bucket: Bucket) -> None:
    watched = Watched(bucket)
    watched.after = once(purged(bucket), "create", REFS)
    fork(store_on(watched), 4)
    assert said(store_on(bucket), "f") == ["1", "2", "[purged]", "4"]
    assert store_on(bucket).verify() == []
    assert holding(bucket) == []


def test_what_was_merged_into_a_pack_after_the_packs_were_listed_goes_too(bucket: Bucket) -> None:
    behind = store_on(bucket).session("s")
    assert len(behind.history) == 4
    saved(store_on(bucket), "s", "5", "6")  # with the purge's own that makes seven packs

    def save_beside() -> None:
        behind.history.append({"role": "user", "content": "beside"})
        behind.save(on_conflict="fork")

    watched = Watched(bucket)
    # By its second record it has moved the ref, and lets it name other packs.
    watched.before = once(save_beside, "create", REFS, nth=2)
    purge(store_on(watched), KEY, apply=True)
    assert behind.name == "s+1"
    assert said(store_on(bucket), "s+1") == ["1", "2", "[purged]", "4", "beside"]
    assert holding(bucket) == []
    assert store_on(bucket).verify() == []


# --- who reads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_session_that_is_purged_while_sessions_are_listed_is_among_them(
    bucket: Bucket, nth: int
) -> None:
    watched = Watched(bucket)
    watched.before = once(purged(bucket), "get", REFS, nth)
    listed = store_on(watched).sessions()
    assert [(info.name, info.turn, info.problem) for info in listed] == [
        ("other", 1, None), ("s", 4, None),
    ]  # fmt: skip


def test_a_session_that_is_purged_while_it_is_opened_is_not_empty(bucket: Bucket) -> None:
    watched = Watched(bucket)
    watched.before = once(purged(bucket), "get", REFS)
    assert said(store_on(watched), "s") == ["1", "2", "[purged]", "4"]


@pytest.mark.parametrize("nth", range(1, 6))
def test_an_object_is_looked_for_again_when_its_pack_has_gone_meanwhile(
    bucket: Bucket, nth: int
) -> None:
    session = saved(store_on(bucket), "s", *"56789")  # the eighth merged them all into one pack
    message = session._store.objects.lists.item(session.head.record.history, 0)
    watched = Watched(bucket)
    watched.before = once(purged(bucket), "get", PACKS, nth)
    assert store_on(watched).objects.value(message) == {"role": "user", "content": "1"}


@pytest.mark.parametrize("nth", range(1, 6))
def test_all_objects_are_listed_whatever_is_purged_meanwhile(bucket: Bucket, nth: int) -> None:
    session = store_on(bucket).session("s")
    messages = session._store.objects.lists.slice(session.head.record.history, 0, 4)
    watched = Watched(bucket)
    watched.before = once(purged(bucket), "get", PACKS, nth)
    listed = {i for i, _ in store_on(watched).engine.ids(b"", 0)}
    assert {messages[0], messages[1], messages[3]} <= listed


def test_what_is_missing_because_it_was_purged_is_told_for_what_it_is(bucket: Bucket) -> None:
    turn = store_on(bucket).session("s").at(4).raw_id
    early = store_on(bucket)
    purge(store_on(bucket), KEY, apply=True)
    for reader, hint in ((early, "purged"), (store_on(bucket), "snapstore verify")):
        with pytest.raises(ObjectMissing) as missing:
            reader.engine.read(turn)
        assert hint in missing.value.hint
        with pytest.raises(ObjectMissing) as missing:
            reader.engine.read_many([turn])
        assert hint in missing.value.hint


def test_a_verification_finds_nothing_wrong_at_whatever_request_a_purge_comes_by() -> None:
    for nth in range(1, 100):
        bucket = leaking(Bucket.in_memory())
        watched = Watched(bucket)
        store = store_on(watched)
        watched.before = once(purged(bucket), nth=nth)
        watched.requests.clear()
        assert store.verify() == [], nth
        if watched.requests.total() < nth:
            assert nth > 10
            return
    raise AssertionError("it never came to its end")


# --- who collects ---------------------------------------------------------------------------------


def test_a_collection_condemns_nothing_that_is_named_since_a_purge_came_by(bucket: Bucket) -> None:
    time.sleep(GRACE * 1.1)
    saved(store_on(bucket), "other", "b")  # lets the server's clock be seen
    last = record_key(ref_dir("sessions/s"), 4)
    watched = Watched(bucket)
    watched.before = once(purged(bucket), "get", last)
    engine_of(store_on(watched)).collect(apply=True, grace=GRACE)
    assert said(store_on(bucket), "s")[2] == "[purged]"
    records = engine_of(store_on(bucket)).log.every_last()
    named = {ref.id.hex() for record in records for ref in record.packs}
    condemned = [json.loads(bucket.get(found.key))["packs"] for found in bucket.every(CONDEMNED)]
    assert named.isdisjoint(pack for packs in condemned for pack in packs)
