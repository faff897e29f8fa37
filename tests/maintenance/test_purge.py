"""A text taken out of a store for good."""

from __future__ import annotations

import contextlib
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_keys import ANTHROPIC
from stores import START, Place, ticking

from snapstore import (
    Corrupt,
    InvalidInput,
    NotFound,
    NothingToDo,
    ObjectMissing,
    RefMoved,
    Refused,
    Store,
    formats,
    refs,
)
from snapstore.engine import Discarding
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.memory import MemoryEngine
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.maintenance.purge import purge
from snapstore.maintenance.unwanted import Unwanted
from snapstore.model.layout import LAYOUT
from snapstore.model.maps import Inline, Link
from snapstore.objects import Stage
from snapstore.transfer.imports import import_transcript
from snapstore.transfer.original import original
from snapstore.transfer.origins import last_import

KEY = "the-leaked-key-42"


@pytest.fixture
def store(place: Place) -> Store:
    """A store on an engine that can let go of what it held."""
    found = place.open()
    if not isinstance(found.engine, Discarding):
        pytest.skip("this engine keeps everything")
    return found


def ids(store: Store) -> set[bytes]:
    return {object_id for object_id, _ in store.engine.ids(b"", 0)}


def is_gone(store: Store) -> bool:
    """Whether no object and no move of a store holds the text, and all is well with it."""
    unwanted = Unwanted(KEY)
    held = [o for o in ids(store) if unwanted.is_in(store.objects.content(o))]
    told = [move for move in store.engine.reflog() if KEY in str(move.info)]
    return not held and not told and store.verify() == []


def two_turns(store: Store, name: str = "s") -> Any:
    """A session that meets the text in its second turn."""
    session = store.session(name)
    session.history.append({"role": "user", "content": "hello"})
    session.save("first")
    session.history.append({"role": "user", "content": f"use {KEY} please"})
    session.save("second")
    return session


def test_it_only_shows_what_it_would_do_unless_told(store: Store) -> None:
    two_turns(store)
    before, moves = ids(store), list(store.engine.reflog())
    shown = purge(store, KEY)
    assert (shown.sessions, shown.turns, shown.messages, shown.applied) == (
        ("session s",), 1, 1, False,
    )  # fmt: skip
    assert (ids(store), list(store.engine.reflog())) == (before, moves)
    done = purge(store, KEY, apply=True)
    assert (done.turns, done.messages, done.objects) == (1, 1, shown.objects)


def test_everything_that_a_turn_holds_is_changed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / ".env").write_text(f"KEY={KEY}\n")
    (tmp_path / "large").write_bytes(os.urandom(200_000) + KEY.encode() + os.urandom(200_000))
    (tmp_path / "link").symlink_to(f"nowhere/{KEY}")
    (tmp_path / f"named {KEY}").write_text("x")
    session = store.session("s")
    session.worktree = tmp_path
    session.history += [{"content": [{"text": f"a {KEY} b"}]}, {KEY: 1}, "x" * 100_000 + KEY]
    session.scratchpad.update({"short": KEY, "long": {"x": "y" * 500 + KEY}, f"k {KEY}": 1})
    session.meta = {"m": KEY.encode()}
    session.save(f"label {KEY}")
    purge(store, KEY, apply=True)
    assert is_gone(store)
    turn = store.resolve("s")
    assert turn.history[0] == {"content": [{"text": "a [purged] b"}]}
    assert turn.history[1] == {"[purged]": 1}
    assert turn.history[2] == "x" * 100_000 + "[purged]"
    assert turn.scratchpad["short"] == "[purged]"
    assert turn.scratchpad["long"] == {"x": "y" * 500 + "[purged]"}
    assert turn.scratchpad["k [purged]"] == 1
    assert (turn.meta["m"], turn.label) == (b"[purged]", "label [purged]")
    assert turn.files is not None
    assert turn.files.read("deep/.env") == b"KEY=[purged]\n"
    assert turn.files["deep/.env"].size == len(b"KEY=[purged]\n")
    assert turn.files.read("large") == (tmp_path / "large").read_bytes().replace(
        KEY.encode(), b"[purged]"
    )
    assert turn.files["link"].target == "nowhere/[purged]"
    assert turn.files.read("named [purged]") == b"x"


def test_turn_numbers_labels_times_and_unchanged_beginnings_stay(store: Store) -> None:
    session = two_turns(store)
    session.history.append("later")
    session.save("third")
    before = {turn.turn: turn for turn in session.log()}
    facts = {n: (turn.label, turn.time, len(turn.history)) for n, turn in before.items()}
    purge(store, KEY, apply=True)
    after = {turn.turn: turn for turn in store.session("s").log()}
    assert {n: (turn.label, turn.time, len(turn.history)) for n, turn in after.items()} == facts
    assert after[1] == before[1]
    assert {n for n in after if after[n] != before[n]} == {2, 3}


def test_forks_share_what_they_shared(store: Store) -> None:
    session = two_turns(store)
    session.fork("f")
    session.fork("early", at=1)
    count = len(ids(store))
    purge(store, KEY, apply=True)
    assert store.resolve("f") == store.resolve("s")
    assert store.resolve("early") == store.resolve("s@1")
    assert len(ids(store)) == count
    assert [info.forked_from for info in store.sessions()] == [
        store.resolve("s@1").id, store.resolve("s").id, None,
    ]  # fmt: skip


def test_what_does_not_hold_the_text_is_left_alone(store: Store) -> None:
    two_turns(store)
    other = store.session("other")
    other.history.append("fine")
    other.save()
    other.history.append("fine too")
    other.save()
    before = store.resolve("other")
    purge(store, KEY, apply=True)
    assert store.resolve("other") == before
    store.undo("other")
    assert store.resolve("other").turn == 1


def test_old_ids_are_not_found_and_undo_does_not_go_back_beyond(store: Store, place: Place) -> None:
    old = two_turns(store).head.id
    purge(store, KEY, apply=True)
    with pytest.raises(NotFound):
        place.open().resolve(old)
    with pytest.raises(NothingToDo, match="purge"):
        store.undo("s")
    session = store.session("s")
    session.history.append("new")
    session.save()
    session.undo()
    with pytest.raises(NothingToDo, match="purge"):
        session.undo()
    session.redo()
    assert session.history[-1] == "new"


def test_tags_deleted_sessions_and_captures_are_changed_too(store: Store) -> None:
    session = two_turns(store)
    store.tag("t", session.head)
    session.fork("gone")
    store.delete("gone")
    store.engine.commit([], _capture(store, session.head.raw_id))
    purge(store, KEY, apply=True)
    assert is_gone(store)
    new = store.resolve("s").id
    assert store.tags() == {"t": new}
    assert not store.exists("gone")
    store.undo("gone")
    assert store.resolve("gone").id == new


def _capture(store: Store, turn: bytes) -> Any:
    from snapstore.engine import Update

    return Update(refs.CAPTURES + "x", turn, None, "capture", store.clock())


def test_turns_that_only_undo_reached_are_kept_where_moves_ago_finds_them(store: Store) -> None:
    session = two_turns(store)
    session.rewind(1)
    session.history.append("another way")
    session.save("other second")
    purge(store, KEY, apply=True)
    assert is_gone(store)
    assert list(store.resolve("s").history)[1] == "another way"
    assert store.resolve("s@{1}").label == "second"
    assert store.resolve("s@{1}").history[1]["content"] == "use [purged] please"
    with pytest.raises(NothingToDo):
        store.undo("s")


def test_a_text_that_only_rewound_turns_held_leaves_head_what_it_was(store: Store) -> None:
    session = two_turns(store)
    session.rewind(1)
    head = session.head
    purge(store, KEY, apply=True)
    assert is_gone(store)
    assert store.resolve("s") == head


def test_the_move_records_that_something_was_purged_but_not_what(store: Store) -> None:
    two_turns(store)
    purge(store, KEY, apply=True)
    move = next(iter(store.engine.reflog()))
    assert move.op == "purge"
    purged = dict(move.info["purged"])
    assert START < purged.pop("at") < move.time
    assert purged == {"turns": 1, "messages": 1, "files": 0, "more": False}


def test_doing_it_again_finds_nothing_and_another_text_can_follow(store: Store) -> None:
    two_turns(store)
    purge(store, KEY, apply=True)
    moves = list(store.engine.reflog())
    assert purge(store, KEY, apply=True).sessions == ()
    assert list(store.engine.reflog()) == moves
    before = ids(store)
    purge(store, "please", apply=True)
    assert store.resolve("s").history[1]["content"] == "use [purged] [purged]"
    assert len(ids(store)) == len(before)
    assert not any("please" in str(store.objects.content(o)) for o in ids(store))
    assert store.verify() == []


def test_a_purge_that_was_cut_off_is_finished_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_turns(store)
    two_turns(store, "t")
    discard = type(store.engine).discard  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setattr(type(store.engine), "discard", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            purge(store, KEY, apply=True)
    assert type(store.engine).discard is discard  # type: ignore[attr-defined]
    assert any(KEY in str(store.objects.content(o)) for o in ids(store))
    purge(store, KEY, apply=True)
    assert is_gone(store)
    assert store.resolve("s").history[1]["content"] == "use [purged] please"


class Killed(BaseException):
    """The process is no more. Not an Exception, so that nothing handles it."""


@pytest.mark.parametrize("goes_on", [False, True], ids=["left alone", "saved to meanwhile"])
@pytest.mark.parametrize("commits", range(9))
def test_one_that_was_killed_anywhere_loses_nothing(commits: int, goes_on: bool) -> None:
    store = Store(MemoryEngine(), clock=ticking())
    session = two_turns(store)
    for label in ("other second", "another second"):
        session.rewind(1)
        session.history.append(f"another way with {KEY}")
        session.save(label)
    gone = session.fork("gone")
    gone.rewind(1)
    store.delete("gone")
    last = store.resolve("s")
    whole, left = store.engine.commit, commits

    def dying(objects: Any, update: Any = None) -> Any:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1
        return whole(objects, update)

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Killed):
        patch.setattr(store.engine, "commit", dying)
        purge(store, KEY, apply=True)
    added = []
    if goes_on:
        there = store.session("s")
        there.history.append("and on")
        added.append(there.save("meanwhile").label)
    store = Store(store.engine, clock=store.clock)
    purge(store, KEY, apply=True)
    assert is_gone(store)
    stood = [store.resolve(f"s@{{{n}}}") for n in range(_moves(store, "s"))]
    lines = (store.objects.snapshots.line(turn.raw_id) for turn in stood)
    labels = {record.label for line in lines for _, record in line}
    assert labels == {"first", "second", "other second", "another second", *added}
    assert stood[0].label == (added or [last.label])[0]
    assert not store.exists("gone")
    store.undo("gone")
    assert store.resolve("gone").label == "first"


def _moves(store: Store, name: str) -> int:
    return sum(move.ref == refs.SESSIONS + name for move in store.engine.reflog())


def test_objects_that_nothing_leads_to_are_dropped_if_they_hold_it(store: Store) -> None:
    if isinstance(store.engine, ObjectStoreEngine):
        pytest.skip("there it may be a save that is under way: see test_objectstore_discard")
    two_turns(store)
    with Stage(store.objects) as stage:
        orphan = stage.put_content(f"orphan {KEY}".encode())
        large = stage.put_content(os.urandom(100_000) + KEY.encode())
        other = stage.put_content(b"another orphan")
        stage.commit()
    purge(store, KEY, apply=True)
    assert {orphan, large}.isdisjoint(ids(store))
    assert other in ids(store)
    assert is_gone(store)


def test_an_imported_session_is_imported_on_and_comes_out_as_a_file_without_it(
    store: Store,
) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "user", "uuid": "a", "parentUuid": None, "sessionId": "x", "cwd": "/w",
         "message": {"role": "user", "content": f"use {KEY} " + "x" * 200}},
        {"type": "assistant", "uuid": "b", "parentUuid": "a", "sessionId": "x", "cwd": "/w",
         "toolUseResult": {"stdout": KEY},
         "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "ok"}]}},
        {"type": "summary", "summary": f"about {KEY}"},
    ]  # fmt: skip
    data = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()
    (first,) = import_transcript(store, formats.read(data, "x.jsonl"), source="/x.jsonl")
    name = first.name
    purge(store, KEY, apply=True)
    assert is_gone(store)
    tip = refs.live(store.engine, refs.SESSIONS + name)
    assert tip is not None
    imported = last_import(store.engine, tip)
    assert imported is not None
    written = b"".join(original(store.objects, imported.info[LAYOUT]))
    assert written == data.replace(KEY.encode(), b"[purged]")
    (again,) = import_transcript(store, formats.read(written, "x.jsonl"), source="/x.jsonl")
    assert (again.name, again.created) == (name, False)


def test_what_another_program_keeps_beside_a_turn_keeps_its_length(store: Store) -> None:
    with Stage(store.objects) as stage:
        long = stage.put_content(b"\x01" * 300 + KEY.encode() + b"\x02")
        entries = {b"a": Inline(b"\xd9\x11" + KEY.encode()), b"b": Link(long)}
        state = store.objects.maps.update(None, entries, stage.put_node)
        turn, _ = store.objects.snapshots.create(None, stage.put_snapshot, time=1, state=state)
        stage.commit()
    store.fork(store.snapshot(turn), "s")
    purge(store, KEY, apply=True)
    assert is_gone(store)
    state = store.resolve("s").record.state
    assert store.objects.maps.get(state, b"a") == Inline(b"\xd9\x11" + b"*" * 17)
    linked = store.objects.maps.get(state, b"b")
    assert isinstance(linked, Link)
    assert store.objects.content(linked.id) == b"\x01" * 300 + b"*" * 17 + b"\x02"


def test_signed_thinking_that_had_to_be_changed_is_counted(store: Store) -> None:
    block = {"type": "thinking", "thinking": f"so {KEY}", "signature": "c2ln"}
    session = store.session("s")
    session.history.append({"role": "assistant", "content": [block]})
    session.save()
    assert purge(store, KEY).signed_thinking == 1


@pytest.mark.parametrize(
    "text", ['quo"ted \\ back', "línea\nnueva", "😀 emoji", "tab\there", "\ud800 lone"]
)
def test_a_text_is_found_in_json_within_strings_too(store: Store, text: str) -> None:
    session = store.session("s")
    for plain in (True, False):
        once = json.dumps({"k": text}, ensure_ascii=plain)
        session.history += [text, once, json.dumps({"arguments": once}, ensure_ascii=plain)]
    session.save()
    purge(store, text, apply=True)
    assert purge(store, text).sessions == ()
    assert [json.loads(message)["k"] for message in list(store.resolve("s").history)[1::3]] == [
        "[purged]", "[purged]",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "abc", "é"])
def test_a_text_that_is_in_everything_is_refused(store: Store, text: str) -> None:
    with pytest.raises(InvalidInput, match="fewer than 4"):
        purge(store, text)


@pytest.mark.parametrize("text", ["purged", "[purged]", "****"])
def test_the_mark_never_holds_the_text(store: Store, text: str) -> None:
    session = store.session("s")
    session.history.append(f"it was {text} then")
    session.save()
    purge(store, text, apply=True)
    assert text not in store.resolve("s").history[0]


def test_a_session_object_held_meanwhile_learns_that_it_moved(store: Store, place: Place) -> None:
    two_turns(store)
    held = place.open().session("s")
    purge(store, KEY, apply=True)
    held.history.append("unsaved")
    with pytest.raises(RefMoved):
        held.save()
    with pytest.raises(Refused, match="purged"):  # a fork of it would lead to what is gone
        held.save(on_conflict="fork")
    assert held.history[-1] == "unsaved"
    assert is_gone(store)


def test_a_writer_meanwhile_is_purged_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = two_turns(store)
    engine = type(store.engine)
    commit, late = engine.commit, []

    def busy(self: Any, objects: Any, update: Any = None) -> Any:
        if update is not None and update.op == "purge" and not late:
            late.append(True)
            session.history.append(f"late {KEY}")
            monkeypatch.setattr(engine, "commit", commit)
            session.save()
        return commit(self, objects, update)

    monkeypatch.setattr(engine, "commit", busy)
    purge(store, KEY, apply=True)
    assert late
    assert is_gone(store)
    assert store.resolve("s").history[-1] == "late [purged]"


@pytest.mark.parametrize("look", [1, 2])
def test_a_turn_that_is_saved_while_what_is_to_go_is_looked_for_is_purged_whole(
    store: Store, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    """Its moves were not among those that were looked at, so nothing seemed to lead to it."""
    session = two_turns(store)
    engine = type(store.engine)
    ids, looks = engine.ids, []

    def busy(self: Any, prefix: bytes, digits: int) -> Any:
        looks.append(True)
        if len(looks) == look:
            session.reload()
            session.history.append(f"late {KEY}")
            session.scratchpad["late"] = KEY
            session.save(f"late {KEY}")
        return ids(self, prefix, digits)

    monkeypatch.setattr(engine, "ids", busy)
    purge(store, KEY, apply=True)
    monkeypatch.undo()
    assert is_gone(store)
    assert store.resolve("s").history[-1] == "late [purged]"
    assert store.resolve("s").scratchpad["late"] == "[purged]"
    assert store.resolve("s").label == "late [purged]"


def test_another_text_may_be_purged_meanwhile(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = two_turns(store)
    session.history.append("and another-secret-7")
    session.save("third")
    engine = type(store.engine)
    reflog, late = engine.reflog, []

    def busy(self: Any) -> Any:
        moves = list(reflog(self))
        if not late:
            late.append(True)
            purge(place.open(), "another-secret-7", apply=True)
        return iter(moves)

    monkeypatch.setattr(engine, "reflog", busy)
    purge(place.open(), KEY, apply=True)
    monkeypatch.undo()
    fresh = place.open()
    assert is_gone(fresh)
    assert fresh.resolve("s").history[1]["content"] == "use [purged] please"
    assert fresh.resolve("s").history[2] == "and [purged]"


def test_a_collection_between_two_of_its_moves_takes_nothing_that_it_needs(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new turns of all refs are saved with the first that is moved."""
    if not isinstance(store.engine, LogEngine):
        pytest.skip("only there others may write while a collection without any grace goes on")
    for name in "ab":
        two_turns(store, name)
    commit, late = LogEngine.commit, []

    def busy(self: Any, objects: Any, update: Any = None) -> Any:
        move = commit(self, objects, update)
        if update is not None and update.op == "purge" and not late:
            late.append(True)
            place.open().gc(apply=True, grace=timedelta(0))
        return move

    monkeypatch.setattr(LogEngine, "commit", busy)
    purge(store, KEY, apply=True)
    assert is_gone(place.open())
    assert place.open().resolve("b").history[1]["content"] == "use [purged] please"


def test_what_a_writer_relies_on_when_it_is_about_to_be_dropped_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_turns(store)
    engine = type(store.engine)
    discard, late = engine.discard, []  # type: ignore[attr-defined]

    def busy(self: Any, *what: Any) -> Any:
        if not late:
            late.append(True)
            two_turns(store, "late")  # whose objects are there already, so none is written
        return discard(self, *what)

    monkeypatch.setattr(engine, "discard", busy)
    purge(store, KEY, apply=True)
    assert is_gone(store)
    assert store.resolve("late").history[1]["content"] == "use [purged] please"


def test_a_store_that_is_saved_to_all_the_time_is_left_for_a_quieter_hour(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isinstance(store.engine, ObjectStoreEngine):
        pytest.skip("there only those must be quiet who need what is to go")
    two_turns(store)
    engine = type(store.engine)
    discard, busy = engine.discard, store.session("busy")  # type: ignore[attr-defined]

    def never_quiet(self: Any, *what: Any) -> Any:
        busy.history.append("again")
        busy.save()
        return discard(self, *what)

    monkeypatch.setattr(engine, "discard", never_quiet)
    with pytest.raises(Refused, match="all the time"):
        purge(store, KEY, apply=True)
    monkeypatch.undo()
    purge(store, KEY, apply=True)
    assert is_gone(store)


def test_a_store_that_cannot_be_read_is_left_as_it_is(place: Place) -> None:
    if not isinstance(place.open().engine, Discarding):
        pytest.skip("this engine keeps everything")
    session = two_turns(place.open())
    lists = session._store.objects.lists
    message = lists.item(session.head.record.history, 0)
    moves = list(place.open().engine.reflog())
    with pytest.raises((ObjectMissing, Corrupt)):
        purge(place.lacking(message), KEY, apply=True)
    assert list(place.open().engine.reflog()) == moves


def test_an_engine_that_keeps_everything_is_no_place_to_purge(place: Place) -> None:
    store = place.open()
    two_turns(store)
    if isinstance(store.engine, Discarding):
        return
    assert purge(store, KEY).turns == 1
    with pytest.raises(Refused, match="cannot drop"):
        purge(store, KEY, apply=True)


texts = st.lists(st.sampled_from(["x", KEY, f"a {KEY}", "y"]), min_size=1, max_size=3)
steps = st.lists(
    st.tuples(st.sampled_from(["save", "put", "rewind", "fork", "undo", "delete"]), texts),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_every_session_reads_as_before_but_for_the_text(script: list[tuple[str, Any]]) -> None:
    store = Store(MemoryEngine())
    for n, (what, said) in enumerate(script):
        session = store.session("s")
        if what == "save":
            session.history += said
            session.save(said[0])
        elif what == "put":
            session.scratchpad[said[0]] = said
            session.save()
        elif what == "rewind" and session.turn > 1:
            session.rewind(1)
        elif what == "fork" and session.head:
            session.fork(f"f{n}")
        elif what == "undo" and session.turn > 1:
            session.undo()
        elif what == "delete" and session.head:
            store.delete("s")
    before = _said(store)
    purge(store, KEY, apply=True)
    assert is_gone(store)
    assert _said(store) == json.loads(json.dumps(before).replace(KEY, "[purged]"))


def _said(store: Store) -> dict[str, Any]:
    return {
        info.name: [
            [turn.turn, turn.label, list(turn.history), dict(turn.scratchpad)]
            for turn in store.session(info.name).log()
        ]
        for info in store.sessions()
    }


def test_a_key_is_a_text_like_any_other(store: Store) -> None:
    session = store.session("s")
    session.history.append(f"use {ANTHROPIC}")
    session.save()
    purge(store, ANTHROPIC, apply=True)
    assert store.resolve("s").history[0] == "use [purged]"
