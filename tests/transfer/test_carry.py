"""Sessions brought from one store into another, on every pair of engines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from between import PAIRS, CutOffError, Failing, filled, heads, is_whole, two_places
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import Place

from snapstore import Corrupt, NotFound, ObjectMissing, Store, formats, refs
from snapstore.engine import Engine, Obj
from snapstore.engines.memory import MemoryEngine
from snapstore.model.layout import LAYOUT
from snapstore.transfer import arrivals
from snapstore.transfer.carry import Carried, Outcome, carry
from snapstore.transfer.imports import import_transcript
from snapstore.transfer.original import original
from snapstore.transfer.origins import last_import


@pytest.fixture(params=PAIRS, ids="-".join)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Place, Place]]:
    one, other = two_places(request.param, tmp_path)
    with one, other:
        yield one, other


@pytest.fixture
def here(places: tuple[Place, Place]) -> Store:
    """The store that is brought from."""
    return places[0].open()


@pytest.fixture
def there(places: tuple[Place, Place]) -> Store:
    """The store that is brought to."""
    return places[1].open()


def in_memory() -> Store:
    return Store(MemoryEngine())


def outcomes(done: list[Carried]) -> dict[str, tuple[str, Outcome]]:
    return {one.source: (one.name, one.outcome) for one in done}


def test_everything_comes_with_the_same_ids(here: Store, there: Store, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "large").write_bytes(os.urandom(300_000))
    (tmp_path / "w" / "small").write_text("x")
    session = here.session("s")
    session.worktree = tmp_path / "w"
    session.history += [{"content": "x" * 100_000}, "short"]
    session.scratchpad.update({f"k{n}": {"n": n, "raw": b"\0" * 300} for n in range(100)})
    session.meta["m"] = 1
    here.tag("t", session.save("label"))
    session.fork("f").save("other")
    carry(here, there)
    assert heads(there) == heads(here)
    assert is_whole(there)
    mine, theirs = here.resolve("s"), there.resolve("s")
    assert list(mine.history) == list(theirs.history)
    assert dict(mine.scratchpad) == dict(theirs.scratchpad)
    assert theirs.files is not None
    assert theirs.files.read("large") == (tmp_path / "w" / "large").read_bytes()


def test_only_what_is_missing_goes_over(here: Store, there: Store) -> None:
    filled(here, "s", *(f"message {n}" for n in range(20)))
    (first,) = carry(here, there)
    filled(here, "s", "one more")
    (second,) = carry(here, there)
    (third,) = carry(here, there)
    assert first.objects == 60  # of each turn a message, a node of the history, a snapshot
    assert (second.outcome, second.objects) == (Outcome.MOVED, 3)
    assert (third.outcome, third.objects) == (Outcome.SAME, 0)


def test_forks_bring_what_they_share_once(here: Store, there: Store) -> None:
    filled(here, "s", *(f"message {n}" for n in range(20)))
    for n in range(5):
        here.session("s").fork(f"f{n}", at=10 + n)
    done = carry(here, there)
    assert sum(one.objects for one in done) == 60
    assert heads(there) == heads(here)


def test_some_by_name(here: Store, there: Store) -> None:
    filled(filled(here, "a", 1), "b", 2)
    carry(here, there, ["b"])
    assert heads(there).keys() == {"sessions/b"}
    with pytest.raises(NotFound, match="no session or tag c"):
        carry(here, there, ["c"])


def test_deleted_sessions_and_what_only_undo_reaches_stay_where_they_are(
    here: Store, there: Store
) -> None:
    filled(filled(here, "gone", 1), "s", 1, 2)
    here.delete("gone")
    here.session("s").rewind(1)
    carry(here, there)
    assert heads(there) == heads(here)
    assert there.resolve("s").turn == 1


def test_a_store_that_went_on_stays_as_it_is(here: Store, there: Store) -> None:
    filled(here, "s", 1)
    carry(here, there)
    filled(there, "s", 2)
    before = heads(there)
    assert outcomes(carry(here, there)) == {"s": ("s", Outcome.AHEAD)}
    assert heads(there) == before


def test_where_both_went_on_theirs_is_kept_beside_and_followed(here: Store, there: Store) -> None:
    filled(here, "s", 1)
    carry(here, there)
    filled(here, "s", "here")
    mine = filled(there, "s", "there").resolve("s")
    assert outcomes(carry(here, there)) == {"s": ("s+1", Outcome.BESIDE)}
    assert (there.resolve("s"), there.resolve("s+1").id) == (mine, here.resolve("s").id)
    assert outcomes(carry(here, there)) == {"s": ("s+1", Outcome.SAME)}
    filled(here, "s", "here again")
    assert outcomes(carry(here, there)) == {"s": ("s+1", Outcome.MOVED)}
    assert [info.name for info in there.sessions()] == ["s", "s+1"]


@pytest.mark.parametrize("hosts", [2, 3])
def test_hosts_that_go_on_with_one_session_each_do_not_multiply_it(hosts: int) -> None:
    middle, stores = in_memory(), [in_memory() for _ in range(hosts)]
    filled(middle, "s", "how it began")
    for store in stores:
        carry(middle, store)
    for n in range(5):
        for host, store in enumerate(stores):
            filled(store, "s", f"{n} of {host}")
            if n == 0:
                store.tag("t", store.resolve("s"))
        for store in stores:
            carry(store, middle)
            carry(middle, store)
    carry(middle, stores[0])
    said = {tuple(middle.session(s.name).history) for s in middle.sessions()}
    assert said >= {
        ("how it began", *(f"{n} of {host}" for n in range(5))) for host in range(hosts)
    }
    for store in (middle, *stores):
        assert len(list(store.sessions())) <= hosts + 1
        assert len(store.tags()) <= hosts + 1


def test_a_session_of_the_same_name_that_has_nothing_in_common_is_kept_beside(
    here: Store, there: Store
) -> None:
    filled(here, "s", "one")
    filled(there, "s", "another")
    assert outcomes(carry(here, there)) == {"s": ("s+1", Outcome.BESIDE)}
    there.delete("s+1")
    assert outcomes(carry(here, there)) == {"s": ("s+2", Outcome.BESIDE)}


def test_a_tag_is_not_hidden_by_a_session_of_its_name(here: Store, there: Store) -> None:
    here.tag("t", here.session("s").save())
    own = there.session("t").save()
    for outcome in (Outcome.BESIDE, Outcome.SAME):
        assert outcomes(carry(here, there, ["t"])) == {"t": ("t+1", outcome)}
    assert (there.resolve("t"), there.resolve("t+1")) == (own, here.resolve("t"))


def test_a_tag_is_never_moved(here: Store, there: Store) -> None:
    for store in (here, there):
        session = store.session("s")
        session.history.append(store is here)
        store.tag("t", session.save())
    carry(here, there, ["t"])
    assert there.tags()["t"] == there.resolve("s").id
    assert there.tags()["t+1"] == here.tags()["t"]


def test_what_a_session_was_forked_from_comes_with_it(here: Store, there: Store) -> None:
    filled(here, "s", 1, 2)
    fork = here.session("s").fork("f", at=2)
    fork.rewind(1)
    carry(here, there, ["f"])
    (info,) = there.sessions()
    assert info.forked_from == here.resolve("s@2").id
    assert there.resolve(info.forked_from).turn == 2
    assert is_whole(there)


def test_an_imported_session_is_still_the_file_that_it_was(here: Store, there: Store) -> None:
    data = (
        b'{"type":"user","uuid":"a","parentUuid":null,"sessionId":"x","message":{"role":"user",'
        b'"content":"hi"}}\n\n {"type":"summary","summary":"odd"}\r\n'
    )
    transcript = formats.read(data, "x.jsonl")
    import_transcript(here, transcript, name="s", source="/x.jsonl")
    carry(here, there)
    tip = refs.live(there.engine, "sessions/s")
    assert tip is not None
    imported = last_import(there.engine, tip)
    assert imported is not None
    assert b"".join(original(there.objects, imported.info[LAYOUT])) == data
    assert is_whole(there)
    (again,) = import_transcript(there, formats.read(data, "x.jsonl"), source="/x.jsonl")
    assert (again.name, again.created) == ("s", False)


def test_undo_in_the_other_store_takes_the_arrival_back(here: Store, there: Store) -> None:
    filled(here, "s", 1)
    carry(here, there)
    filled(here, "s", 2)
    carry(here, there, op="pull", described="/from/there")
    tip = there.engine.tip("sessions/s")
    assert tip is not None
    assert (tip.op, tip.info["from"]) == ("pull", "/from/there")
    there.undo("s")
    assert there.resolve("s").turn == 1


@pytest.mark.parametrize("commits", range(6))
def test_one_that_is_cut_off_goes_on_from_there(
    places: tuple[Place, Place], commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "PORTION", 2000)
    source = places[0].open()
    filled(source, "s", *("x" * 900 + str(n) for n in range(12)))
    failing = Store(cast(Engine, Failing(places[1].engine(), commits)))
    with pytest.raises(CutOffError):
        carry(source, failing)
    target = places[1].open()
    assert heads(target) == {}
    assert is_whole(target)
    (done,) = carry(source, target)
    assert heads(target) == heads(source)
    assert is_whole(target)
    assert done.bytes < 13_000 - 900 * commits


def test_what_garbage_collection_took_meanwhile_is_brought_again() -> None:
    source, engine = filled(in_memory(), "s", "a", "b"), MemoryEngine()
    message = source.resolve("s").history._objects.lists.item(source.resolve("s").record.history, 0)

    class Collected:
        """Loses an object that nothing refers to yet, just before the ref comes that does."""

        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

        def commit(self, objects: list[Obj], update: Any = None) -> Any:
            if update is not None:
                engine.discard([message], {})
                objects = [o for o in objects if o.id != message]
            return engine.commit(objects, update)

    carry(source, Store(cast(Engine, Collected())))
    assert list(Store(engine).session("s").history) == ["a", "b"]


def test_another_writer_meanwhile_is_no_loss() -> None:
    source, engine = filled(in_memory(), "s", "theirs"), MemoryEngine()

    class Busy:
        """Somebody else makes the session in the very moment that it arrives."""

        was = False

        def __getattr__(self, name: str) -> Any:
            return getattr(engine, name)

        def commit(self, objects: list[Obj], update: Any = None) -> Any:
            if update is not None and not self.was:
                self.was = True
                filled(Store(engine), "s", "ours")
            return engine.commit(objects, update)

    assert outcomes(carry(source, Store(cast(Engine, Busy())))) == {"s": ("s+1", Outcome.BESIDE)}
    store = Store(engine)
    assert [list(store.session(name).history) for name in ("s", "s+1")] == [["ours"], ["theirs"]]


def test_an_object_that_is_not_what_its_id_says_is_not_let_in() -> None:
    source, engine = filled(in_memory(), "s", "a", "b"), MemoryEngine()

    class Lying:
        def __getattr__(self, name: str) -> Any:
            return getattr(source.engine, name)

        def read(self, object_id: bytes) -> Obj:
            found = source.engine.read(object_id)
            return found._replace(payload=b"\xa1x") if found.payload == b"\xa1b" else found

    with pytest.raises(Corrupt):
        carry(Store(cast(Engine, Lying())), Store(engine))
    assert heads(Store(engine)) == {}


def test_a_source_that_is_not_whole_brings_no_ref(places: tuple[Place, Place]) -> None:
    source = filled(places[0].open(), "s", "a", "b")
    message = source.objects.lists.item(source.resolve("s").record.history, 0)
    target = places[1].open()
    with pytest.raises(ObjectMissing):
        carry(places[0].lacking(message), target)
    assert heads(target) == {}


names = st.sampled_from(["a", "b", "c"])
steps = st.lists(
    st.tuples(st.sampled_from(["save", "fork", "rewind", "carry", "back"]), st.booleans(), names),
    min_size=1,
    max_size=15,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
def test_no_turn_of_a_session_is_ever_lost_whoever_goes_on_and_carries(
    script: list[tuple[str, bool, str]],
) -> None:
    stores = in_memory(), in_memory()
    saved: set[str] = set()
    for n, (what, first, name) in enumerate(script):
        store, other = stores if first else stores[::-1]
        session = store.session(name)
        if what == "save":
            session.history.append(n)
            saved.add(session.save().id)
        elif what == "fork" and session.head and not store.exists("d"):
            session.fork("d")
        elif what == "rewind" and session.turn > 1:
            session.rewind(session.turn - 1)
        elif what in ("carry", "back"):
            carry(store, other)
            assert set(heads(store).values()) <= _all_turns(other)
    for store in stores:
        assert is_whole(store)
    assert saved <= set().union(*map(_ever, stores))


def _all_turns(store: Store) -> set[str]:
    lines = (store.session(info.name).log() for info in store.sessions())
    return {turn.id for line in lines for turn in line}


def _ever(store: Store) -> set[str]:
    """Every turn that the store's reflog ever stood on."""
    return {move.new.hex() for move in store.engine.reflog() if move.new is not None}
