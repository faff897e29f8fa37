"""Transcripts in a store: the same ids everywhere, the same session when it grows, nothing lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import snapstore
from snapstore import InvalidInput, RefMoved, Snapshot, Store
from snapstore.formats import Damage, Line, Session, Transcript, Turn
from snapstore.store import open_store
from snapstore.transfer.imports import Imported, import_transcript
from snapstore.transfer.origins import Origins, origin

SECOND = 1_000_000


@pytest.fixture
def store() -> Store:
    return open_store("memory://", clock=lambda: 7)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def reply(text: str, **facts: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}], **facts}


def turn(text: str, time: int | None = None, *more: Any, **facts: Any) -> Turn:
    messages = (user(text), reply(f"answer to {text}"), *more)
    return Turn(text, None if time is None else time * SECOND, messages, **facts)


FIRST, SECOND_TURN, THIRD = turn("one", 1), turn("two", 2), turn("three", 3)


def line(*turns: Turn, name: str = "talk", session_id: str = "S1") -> Line:
    return Line(name, turns, {"session_id": session_id, "cwd": "/later"}, {"cwd": "/w"})


def transcript(live: Line, *branches: Line, warnings: Sequence[Damage] = ()) -> Transcript:
    return Transcript("claude-code", (Session(live, branches),), 10, tuple(warnings))


def imported(store: Store, what: Transcript, **how: Any) -> Imported:
    (only,) = import_transcript(store, what, **how)
    return only


def names(store: Store) -> list[str]:
    return [info.name for info in store.sessions()]


def texts(snapshot: Snapshot | None) -> list[str]:
    assert snapshot is not None
    return [m["content"] for m in snapshot.history if m["role"] == "user"]


def head(store: Store, name: str) -> Snapshot:
    found = store.session(name).head
    assert found is not None
    return found


# --- what a turn becomes ---------------------------------------------------------------------


def test_each_turn_is_a_snapshot_with_its_own_messages_label_time_and_facts(store: Store) -> None:
    told = replace(FIRST, meta={"model": "m"})
    result = imported(store, transcript(line(told, SECOND_TURN)), source="/t.jsonl")
    assert result == Imported("talk", "/t.jsonl", 10, 2, 4, 1, (), True)
    second, first = store.session("talk").log()
    assert [s.label for s in (first, second)] == ["one", "two"]
    assert [s.time.timestamp() for s in (first, second)] == [1, 2]
    assert list(first.history) == list(FIRST.messages)
    assert list(second.history) == [*FIRST.messages, *SECOND_TURN.messages]
    assert first.meta == {"harness": "claude-code", "cwd": "/w", "model": "m"}
    assert second.meta == {}


def test_a_turn_without_a_time_has_that_of_the_turn_before(store: Store) -> None:
    imported(store, transcript(line(turn("a"), turn("b", 5), turn("c"))))
    times = [s.time.timestamp() for s in store.session("talk").log()]
    assert times == [5, 5, 0]


def test_a_compaction_replaces_the_history_and_the_turn_before_keeps_it(store: Store) -> None:
    compacted = Turn("compacted", 3 * SECOND, (FIRST.messages[0], user("summary")), replaces=True)
    result = imported(store, transcript(line(FIRST, SECOND_TURN, compacted)))
    assert result.messages == 2
    assert texts(head(store, "talk")) == ["one", "summary"]
    assert texts(store.resolve("talk@2")) == ["one", "two"]


def test_a_compaction_to_nothing_leaves_an_empty_history(store: Store) -> None:
    imported(store, transcript(line(FIRST, Turn("compacted", None, (), replaces=True))))
    assert list(head(store, "talk").history) == []


def test_a_transcript_without_messages_is_a_session_of_one_turn(store: Store) -> None:
    result = imported(store, transcript(line(Turn("", None, ()))))
    assert (result.turns, result.messages, result.created) == (1, 0, True)
    assert names(store) == ["talk"]


def test_ids_are_the_same_in_every_store_whatever_the_time_and_place() -> None:
    told = transcript(line(FIRST, SECOND_TURN, THIRD))
    one, other = (open_store("memory://", clock=lambda now=now: now) for now in (1, 2))
    imported(one, told, source="/here/a.jsonl", name="a")
    imported(other, told, source="/there/b.jsonl", name="b")
    assert head(one, "a").id == head(other, "b").id


def test_a_line_is_one_move_that_tells_where_it_came_from(store: Store) -> None:
    imported(store, transcript(line(FIRST, SECOND_TURN)), source="/t.jsonl")
    (move,) = store.engine.reflog()
    assert (move.op, move.time) == ("import", 7)
    assert move.info["source"] == {
        "harness": "claude-code",
        "path": "/t.jsonl",
        "number": 1,
        "session_id": "S1",
        "cwd": "/later",
    }


# --- branches --------------------------------------------------------------------------------


def test_branches_are_forks_of_the_live_line_and_share_its_turns(store: Store) -> None:
    old = line(FIRST, turn("old way", 2), name="branch-1")
    aside = line(turn("errand", 2), name="sidechain-1")
    result = imported(store, transcript(line(FIRST, SECOND_TURN), old, aside))
    assert result.branches == 3
    assert names(store) == ["talk", "talk/branch-1", "talk/sidechain-1"]
    assert store.resolve("talk/branch-1@1") == store.resolve("talk@1")
    forked = {info.name: info.forked_from for info in store.sessions()}
    assert forked == {
        "talk": None,
        "talk/branch-1": store.resolve("talk@1").id,
        "talk/sidechain-1": None,
    }


def test_a_branch_told_with_equal_turns_shares_them_too(store: Store) -> None:
    """Not the same objects: some formats tell each line anew."""
    again = Turn(FIRST.label, FIRST.time, FIRST.messages)
    imported(store, transcript(line(FIRST, SECOND_TURN), line(again, THIRD, name="branch-1")))
    shared = store.session("talk/branch-1").log()[1]
    assert shared == store.resolve("talk@1")
    assert store.sessions()[1].forked_from == shared.id


def test_a_name_of_full_length_leaves_room_for_its_branches(store: Store) -> None:
    told = transcript(line(FIRST, SECOND_TURN), line(FIRST, THIRD, name="branch-1"))
    imported(store, told, name="x" * 200)
    assert names(store) == ["x" * 191 + "/branch-1", "x" * 200]


# --- again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, "mine"])
def test_importing_again_writes_nothing(store: Store, name: str | None) -> None:
    told = transcript(line(FIRST, SECOND_TURN), line(FIRST, THIRD, name="branch-1"))
    first = imported(store, told, name=name)
    moves = len(list(store.engine.reflog()))
    again = imported(store, told, name=name)
    assert again == replace(first, created=False)
    assert len(list(store.engine.reflog())) == moves


def test_new_turns_are_added_to_the_session_that_it_was(store: Store) -> None:
    imported(store, transcript(line(FIRST, SECOND_TURN)))
    before = head(store, "talk").id
    result = imported(store, transcript(line(FIRST, SECOND_TURN, THIRD, name="now-it-has-a-title")))
    assert (result.name, result.turns, result.created) == ("talk", 3, True)
    assert names(store) == ["talk"]
    assert store.resolve("talk@2").id == before
    assert store.session("talk").undo() == store.resolve(before)


@pytest.mark.parametrize("read", [1, 2, 3])
def test_a_turn_read_in_the_middle_is_read_to_its_end_later(store: Store, read: int) -> None:
    whole = turn("two", 9, user("a result"), reply("done"))
    part = replace(whole, messages=whole.messages[:read], time=2 * SECOND)
    imported(store, transcript(line(FIRST, part)))
    result = imported(store, transcript(line(FIRST, whole, THIRD)))
    assert (result.name, result.turns, result.warnings) == ("talk", 3, ())
    assert names(store) == ["talk"]


def test_a_reply_read_in_the_middle_is_read_to_its_end_later(store: Store) -> None:
    blocks = [{"type": "text", "text": "let me see"}, {"type": "tool_use", "id": "t"}]
    early, late = ({**reply("", id="m1"), "content": blocks[:n]} for n in (1, 2))
    imported(store, transcript(line(Turn("one", 1, (user("one"), early)))))
    imported(store, transcript(line(Turn("one", 2, (user("one"), late)))))
    assert names(store) == ["talk"]
    assert list(head(store, "talk").history) == [user("one"), late]


def test_another_reply_is_not_taken_for_the_rest_of_one(store: Store) -> None:
    early, other = (reply(text, id="m1") for text in ("let me see", "no"))
    imported(store, transcript(line(Turn("one", 1, (user("one"), early)))))
    imported(store, transcript(line(Turn("one", 1, (user("one"), other)))), name="talk")
    assert names(store) == ["talk", "talk+1"]


def test_an_older_copy_adds_nothing_to_what_is_there(store: Store) -> None:
    imported(store, transcript(line(FIRST, SECOND_TURN, THIRD)))
    result = imported(store, transcript(line(FIRST, SECOND_TURN)), name="talk")
    assert (result.name, result.turns, result.messages, result.created) == ("talk", 3, 6, False)
    assert names(store) == ["talk"]


def test_a_session_that_went_on_here_stays_when_the_file_has_not(store: Store) -> None:
    told = transcript(line(FIRST, SECOND_TURN))
    imported(store, told)
    session = store.session("talk")
    session.history.append(user("from here"))
    saved = session.save()
    result = imported(store, told)
    assert (result.turns, result.created, result.warnings) == (3, False, ())
    assert head(store, "talk") == saved


def test_both_are_kept_when_both_went_on(store: Store) -> None:
    imported(store, transcript(line(FIRST, SECOND_TURN)))
    session = store.session("talk")
    session.history.append(user("from here"))
    saved = session.save()
    told = transcript(line(FIRST, SECOND_TURN, THIRD))
    result = imported(store, told)
    assert result.name == "talk+1"
    assert "session talk holds something else" in result.warnings[0]
    assert head(store, "talk") == saved
    assert texts(head(store, "talk+1")) == ["one", "two", "three"]
    assert imported(store, told) == replace(result, created=False, warnings=())


def test_a_change_of_the_scratchpad_is_not_run_over(store: Store) -> None:
    imported(store, transcript(line(FIRST)))
    session = store.session("talk")
    session.scratchpad["note"] = 1
    session.save()
    assert imported(store, transcript(line(FIRST, SECOND_TURN))).name == "talk+1"
    assert store.session("talk").scratchpad["note"] == 1


def test_a_rewritten_file_becomes_a_session_beside_the_old_one(store: Store) -> None:
    imported(store, transcript(line(FIRST, SECOND_TURN)), source="/t.jsonl")
    rewritten = turn("something else", 1)
    result = imported(store, transcript(line(rewritten)), source="/t.jsonl")
    assert (result.name, len(result.warnings)) == ("talk+1", 1)
    assert texts(head(store, "talk")) == ["one", "two"]


def test_a_rewind_in_the_harness_moves_head_and_keeps_the_old_way_as_a_branch(
    store: Store,
) -> None:
    imported(store, transcript(line(FIRST, SECOND_TURN)))
    old = head(store, "talk")
    rewound = transcript(line(FIRST, THIRD), line(FIRST, SECOND_TURN, name="branch-1"))
    result = imported(store, rewound)
    assert (result.name, result.warnings) == ("talk", ())
    assert texts(head(store, "talk")) == ["one", "three"]
    assert head(store, "talk/branch-1") == old


def test_branches_that_are_numbered_anew_lose_nothing(store: Store) -> None:
    one, two = (line(FIRST, turn(text, 2), name="branch-1") for text in ("a", "b"))
    imported(store, transcript(line(FIRST, THIRD), one))
    result = imported(store, transcript(line(FIRST, THIRD), two, replace(one, name="branch-2")))
    assert result.warnings == ()
    assert texts(head(store, "talk/branch-1")) == ["one", "b"]
    assert texts(head(store, "talk/branch-2")) == ["one", "a"]


def test_a_session_is_found_again_after_it_was_renamed(store: Store) -> None:
    imported(store, transcript(line(FIRST)))
    store.rename("talk", "login")
    result = imported(store, transcript(line(FIRST, SECOND_TURN)))
    assert (result.name, names(store)) == ("login", ["login"])


def test_a_deleted_session_is_made_anew(store: Store) -> None:
    told = transcript(line(FIRST))
    imported(store, told)
    store.delete("talk")
    assert imported(store, told).created
    assert names(store) == ["talk"]


def test_what_has_no_session_id_is_found_by_its_place(store: Store) -> None:
    def told(*turns: Turn, hint: str) -> Transcript:
        return Transcript("messages", (Session(Line(hint, turns)),), 1, ())

    imported(store, told(FIRST, hint="one"), source="/a.json")
    grown = imported(store, told(FIRST, SECOND_TURN, hint="two"), source="/a.json")
    assert (grown.name, grown.turns) == ("one", 2)
    elsewhere = imported(store, told(THIRD, hint="one"), source="/b.json")
    assert (elsewhere.name, elsewhere.warnings) == ("one+1", ())


# --- names -----------------------------------------------------------------------------------


def test_unrelated_sessions_that_suggest_the_same_name_are_kept_apart(store: Store) -> None:
    imported(store, transcript(line(FIRST, session_id="S1")))
    result = imported(store, transcript(line(THIRD, session_id="S2")))
    assert (result.name, result.warnings) == ("talk+1", ())


def test_a_subagent_of_the_same_session_id_is_a_session_of_its_own(store: Store) -> None:
    imported(store, transcript(line(FIRST)), source="/S1.jsonl")
    errand = transcript(line(turn("errand", 2), name="errand"))
    result = imported(store, errand, source="/S1/agent-1.jsonl")
    assert (result.name, result.warnings) == ("errand", ())
    assert not imported(store, errand, source="/S1/agent-1.jsonl").created


def test_sessions_of_one_file_are_numbered(store: Store) -> None:
    sessions = tuple(Session(Line(f"file-{n}", (turn(str(n)),))) for n in (1, 2))
    damage = Damage(3, 20, "not JSON", "the line is kept but not read")
    told = Transcript("messages", sessions, 2, (damage,))
    found = import_transcript(store, told, name="chat", source="/f.json")
    assert [i.name for i in found] == ["chat-1", "chat-2"]
    assert [len(i.warnings) for i in found] == [1, 0]
    assert [i.name for i in import_transcript(store, told, source="/f.json")] == [
        "chat-1",
        "chat-2",
    ]


def test_a_name_that_is_none_is_refused_before_anything_is_written(store: Store) -> None:
    with pytest.raises(InvalidInput):
        imported(store, transcript(line(FIRST)), name="../up")
    assert names(store) == []


# --- together with others --------------------------------------------------------------------


def test_one_look_at_the_store_serves_many_imports(store: Store) -> None:
    origins = Origins(store.engine)
    imported(store, transcript(line(FIRST)), origins=origins)
    grown = imported(store, transcript(line(FIRST, SECOND_TURN)), origins=origins)
    assert (grown.name, grown.turns) == ("talk", 2)


def test_another_writer_in_between_is_told_and_nothing_is_lost(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(store, transcript(line(FIRST)))
    told = transcript(line(FIRST, SECOND_TURN))
    commit = store.engine.commit

    def late(objects: Any, update: Any = None) -> Any:
        monkeypatch.undo()
        session = store.session("talk")
        session.history.append(user("meanwhile"))
        session.save()
        return commit(objects, update)

    monkeypatch.setattr(store.engine, "commit", late)
    with pytest.raises(RefMoved):
        imported(store, told)
    assert texts(head(store, "talk")) == ["one", "meanwhile"]
    assert imported(store, told).name == "talk+1"


def test_a_fork_is_not_taken_for_the_session_that_was_imported(store: Store) -> None:
    imported(store, transcript(line(FIRST)))
    fork = store.session("talk").fork("aside")
    tip = store.engine.tip("sessions/aside")
    assert tip is not None and origin(store.engine, tip) == {}
    imported(store, transcript(line(FIRST, SECOND_TURN)))
    assert fork.turn == store.session("aside").turn == 1


def test_progress_counts_turns(store: Store) -> None:
    seen: list[tuple[int, int]] = []
    told = transcript(line(FIRST, SECOND_TURN), line(FIRST, THIRD, name="branch-1"))
    imported(store, told, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)
    assert seen == sorted(seen)


def test_a_grown_import_stores_only_what_is_new(tmp_path: Any) -> None:
    turns = [turn(f"{n} " + "words " * 20, n) for n in range(300)]
    with snapstore.open(tmp_path / "s", durable=False) as store:
        imported(store, transcript(line(*turns[:-1])))
        before = store.engine.stats()
        imported(store, transcript(line(*turns)))
        after = store.engine.stats()
    assert after.objects - before.objects == 4  # two messages, a node, a snapshot
    assert after.bytes - before.bytes < 1_000
