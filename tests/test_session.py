"""What a save keeps, what makes a turn, and how a session goes back, forth and apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stores import SECOND, START, Place

from snapstore import (
    InvalidInput,
    NotFound,
    NothingToDo,
    ObjectMissing,
    ReadOnlyValue,
    Refused,
    Session,
    Store,
    UnsupportedValue,
)
from snapstore import open as open_store


def saved(store: Store, name: str, *messages: Any) -> Session:
    """A session with a turn for each message."""
    session = store.session(name)
    for message in messages:
        session.history.append(message)
        session.save(f"turn {message}")
    return session


def moves(store: Store) -> int:
    """How many moves all refs have made."""
    return sum(1 for _ in store.engine.reflog())


# --- what makes a turn -----------------------------------------------------------------------


def test_a_session_that_was_never_saved_is_empty_and_leaves_no_trace(place: Place) -> None:
    store = place.open()
    session = store.session("new")
    assert (session.turn, session.head, list(session.history)) == (0, None, [])
    assert dict(session.scratchpad) == {}
    assert list(session.log()) == []
    session.history.append("never saved")
    assert place.open().sessions() == []


def test_the_first_save_makes_a_turn_even_when_empty(store: Store) -> None:
    session = store.session("s")
    assert session.unsaved
    first = session.save()
    assert (first.turn, first.label, first.parent) == (1, "", None)
    assert (list(first.history), dict(first.scratchpad), dict(first.meta)) == ([], {}, {})
    assert first.files is None
    assert session.save() == first


def test_a_save_is_a_snapshot_of_everything(place: Place) -> None:
    session = place.open().session("s")
    session.history.append({"role": "user", "content": "hi"})
    session.scratchpad["file"] = "login.py"
    session.meta["cost"] = {"tokens": 12}
    first = session.save("first question")
    session.history.append("more")
    second = session.save("second")
    read = place.open().resolve("s")
    assert read == second
    assert (read.turn, read.label, read.parent) == (2, "second", first.id)
    assert read.time.timestamp() * SECOND == START + SECOND
    assert read.history == [{"role": "user", "content": "hi"}, "more"]
    assert read.scratchpad == {"file": "login.py"}
    assert read.meta == {"cost": {"tokens": 12}}
    assert read.added() == 1
    assert first.history == [{"role": "user", "content": "hi"}]


def test_saving_again_writes_nothing_and_returns_head(place: Place) -> None:
    store, engine = place.counted()
    session = store.session("s")
    session.history.append("hi")
    session.scratchpad["k"] = "v" * 500
    session.meta["m"] = 1
    head = session.save("label")
    before = list(engine.reflog())
    engine.forget()
    for label in (None, "label"):
        assert session.save(label) == head
    session.history[0] = "hi"
    session.scratchpad["k"] = "v" * 500
    session.meta = {"m": 1}
    assert not session.unsaved
    assert session.save() == head
    assert engine.committed == []
    assert list(engine.reflog()) == before
    assert store.session("s").save("label") == head


@pytest.mark.parametrize("label", ["", "other"])
def test_another_label_makes_a_new_turn(store: Store, label: str) -> None:
    session = saved(store, "s", "one")
    again = session.save(label)
    assert (again.turn, again.label, again.added()) == (2, label, 0)
    assert again.history == ["one"]


def test_each_part_of_a_session_makes_a_turn_when_it_changes(store: Store) -> None:
    session = saved(store, "s", "one")
    session.scratchpad["k"] = 1
    assert session.unsaved
    assert session.save().turn == 2
    session.meta["k"] = 1
    assert session.unsaved
    assert session.save().turn == 3
    session.history[0] = "changed"
    assert session.unsaved
    assert session.save().turn == 4
    assert not session.unsaved


def test_what_was_changed_and_changed_back_is_no_change(store: Store) -> None:
    session = saved(store, "s", "one", "two")
    session.scratchpad["k"] = 1
    session.save()
    del session.history[0]
    session.scratchpad["k"] = 2
    session.history.insert(0, "one")
    session.scratchpad["k"] = 1
    assert not session.unsaved


def test_labels_are_any_text(store: Store, place: Place) -> None:
    label = "ünï \ud83d\n\0 " + "long" * 100
    session = saved(store, "s", "one")
    session.save(label)
    assert place.open().resolve("s").label == label
    with pytest.raises(InvalidInput, match="label"):
        session.save(3)  # type: ignore[arg-type]
    assert place.open().resolve("s").label == label


def test_meta_goes_on_from_turn_to_turn(store: Store) -> None:
    session = saved(store, "s", "one")
    mine = session.meta
    mine["model"] = "m1"
    session.save()
    mine["model"] = "m2"
    assert session.save().meta == {"model": "m2"}
    session.history.append("two")
    assert session.save().meta == {"model": "m2"}
    session.rewind(2)
    assert session.meta == {"model": "m1"}
    assert store.session("s").meta == {"model": "m1"}


def test_saved_meta_refuses_to_be_changed_inside(store: Store) -> None:
    session = store.session("s")
    session.meta["deep"] = {"list": [1]}
    session.save()
    with pytest.raises(ReadOnlyValue):
        store.session("s").meta["deep"]["list"].append(2)


@pytest.mark.parametrize("meta", [{"when": {1}}, {3: "key"}, ["no", "dict"], None])
def test_unsupported_meta_is_refused_and_everything_is_as_it_was(store: Store, meta: Any) -> None:
    session = saved(store, "s", "one")
    session.history.append("two")
    session.scratchpad["k"] = 1
    session.meta = meta
    with pytest.raises(UnsupportedValue, match="meta"):
        session.save()
    assert store.session("s").turn == 1
    session.meta = {}
    assert session.save().history == ["one", "two"]
    assert store.session("s").scratchpad == {"k": 1}


def test_an_unsupported_value_in_a_new_whole_leaves_the_old_whole(store: Store) -> None:
    session = saved(store, "s", "one")
    session.scratchpad["k"] = 1
    with pytest.raises(UnsupportedValue):
        session.history = ["fine", object()]
    with pytest.raises(UnsupportedValue):
        session.scratchpad = {"fine": 1, "k": object()}
    assert session.history == ["one"]
    assert session.scratchpad == {"k": 1}


@pytest.mark.parametrize("size", [64 << 10, (64 << 10) + 1, 1 << 20, 12 << 20])
def test_a_single_large_message_comes_back(store: Store, place: Place, size: int) -> None:
    text = ("a line of output\n" * (size // 17 + 1))[:size]
    session = store.session("s")
    session.history.append({"type": "tool_result", "content": text})
    session.scratchpad["raw"] = text.encode()
    session.save()
    again = place.open().session("s")
    assert again.history[0]["content"] == text
    assert again.history[:][0]["content"] == text
    assert again.scratchpad["raw"] == text.encode()


def test_an_edit_inside_a_large_message_is_stored_in_part(place: Place) -> None:
    store, engine = place.counted()
    session = store.session("s")
    lines = [f"{n} some output of a tool" for n in range(40_000)]
    session.history.append("\n".join(lines))
    session.save()
    known = {o.id for o in engine.committed}
    lines[20_000] = "edited"
    session.history[0] = "\n".join(lines)
    session.save()
    new = sum(len(o.payload) for o in engine.committed if o.id not in known)
    assert new < 256 << 10 < len(session.history[0])


# --- back and forth --------------------------------------------------------------------------


def test_rewind_takes_turns_snapshots_and_revisions(store: Store) -> None:
    session = saved(store, "s", *range(5))
    second = session.at(2)
    for target in (2, second, second.id, second.id[:12], "s@2", "@~3", "s~3", "@@2"):
        session.reload()
        assert session.rewind(target) == second
        assert (session.turn, list(session.history)) == (2, [0, 1])
        assert store.session("s").turn == 2
        session.undo()


def test_a_rewound_session_goes_on_from_there_and_the_old_line_stays(store: Store) -> None:
    session = saved(store, "s", *range(5))
    old = session.head
    assert old is not None
    session.rewind(2)
    session.history.append("other")
    new = session.save()
    assert new.turn == 3
    assert new.history == [0, 1, "other"]
    assert store.resolve(old.id).history == list(range(5))
    assert session.rewind(old).history == list(range(5))


@pytest.mark.parametrize("turn", [0, 6, -1])
def test_rewinding_to_a_turn_that_is_not_there_is_refused(store: Store, turn: int) -> None:
    session = saved(store, "s", *range(5))
    with pytest.raises(NotFound, match=f"no turn {turn}; its line has turns 1 to 5"):
        session.rewind(turn)
    with pytest.raises(NotFound, match="no turns yet"):
        store.session("empty").rewind(1)
    assert store.session("s").turn == 5


def test_undo_and_redo_go_any_number_of_steps(store: Store, place: Place) -> None:
    session = saved(store, "s", *range(50))
    for turn in range(49, 0, -1):
        head = session.undo()
        assert head is not None
        assert (head.turn, len(session.history)) == (turn, turn)
    assert session.undo() is None
    assert (session.turn, list(session.history), session.head) == (0, [], None)
    assert place.open().sessions() == []
    with pytest.raises(NothingToDo):
        session.undo()
    session.redo(30)
    assert session.turn == 30
    again = place.open().session("s")
    again.redo(20)
    assert again.history == list(range(50))
    with pytest.raises(NothingToDo):
        again.redo()
    assert again.turn == 50


def test_undo_takes_back_a_rewind_and_redo_takes_it_again(store: Store) -> None:
    session = saved(store, "s", *range(4))
    session.rewind(1)
    session.undo()
    assert session.turn == 4
    session.redo()
    assert session.turn == 1
    session.undo(2)
    assert session.turn == 3


def test_steps_beyond_the_last_are_refused_and_the_object_stands_where_head_is(
    store: Store,
) -> None:
    session = saved(store, "s", *range(3))
    session.undo()
    with pytest.raises(NothingToDo):
        session.redo(2)
    assert session.turn == store.session("s").turn == 3
    session.history.append("more")
    assert session.save().turn == 4


@pytest.mark.parametrize("steps", [0, -1])
def test_undo_goes_at_least_one_step(store: Store, steps: int) -> None:
    session = saved(store, "s", "one", "two")
    with pytest.raises(InvalidInput):
        session.undo(steps)
    assert session.turn == 2


def change_history(session: Session) -> None:
    session.history.append("unsaved")


def change_scratchpad(session: Session) -> None:
    session.scratchpad["unsaved"] = True


def change_meta(session: Session) -> None:
    session.meta["unsaved"] = True


@pytest.mark.parametrize("change", [change_history, change_scratchpad, change_meta])
@pytest.mark.parametrize("step", ["rewind", "undo", "redo"])
def test_going_elsewhere_is_refused_while_something_is_unsaved(
    store: Store, change: Any, step: str
) -> None:
    session = saved(store, "s", "one", "two", "three")
    session.undo()
    steps: dict[str, Callable[..., object]] = {
        "rewind": lambda **force: session.rewind(1, **force),
        "undo": session.undo,
        "redo": session.redo,
    }
    go = steps[step]
    change(session)
    with pytest.raises(Refused, match="not saved") as refusal:
        go()
    assert "force" in refusal.value.hint
    assert (store.session("s").turn, session.unsaved) == (2, True)
    go(force=True)
    assert session.turn == store.session("s").turn != 2
    assert not session.unsaved


def test_reload_drops_what_is_unsaved_and_stands_on_head(store: Store) -> None:
    session = saved(store, "s", "one")
    saved(store, "s", "two")
    for change in (change_history, change_scratchpad, change_meta):
        change(session)
    session.reload()
    assert (session.turn, list(session.history)) == (2, ["one", "two"])
    assert (dict(session.scratchpad), session.meta) == ({}, {})


# --- forks -----------------------------------------------------------------------------------


def test_a_fork_starts_from_any_turn_and_goes_its_own_way(store: Store) -> None:
    session = saved(store, "s", *range(4))
    fork = session.fork("f", at=2)
    assert (fork.name, fork.turn, list(fork.history)) == ("f", 2, [0, 1])
    fork.history.append("other")
    fork.save()
    assert store.session("s").history == list(range(4))
    assert session.fork("g").turn == 4
    assert session.fork("h", at="f").history == [0, 1, "other"]
    origins = {info.name: info.forked_from for info in store.sessions()}
    assert origins == {
        "s": None, "f": session.at(2).id, "g": session.at(4).id, "h": fork.at(3).id,
    }  # fmt: skip


def test_a_fork_needs_a_free_valid_name_and_a_turn(store: Store) -> None:
    session = saved(store, "s", "one")
    with pytest.raises(Refused, match="already"):
        session.fork("s")
    with pytest.raises(InvalidInput):
        session.fork("../s")
    with pytest.raises(NotFound, match="no turn to fork"):
        store.session("empty").fork("f")
    assert [info.name for info in store.sessions()] == ["s"]


def test_a_fork_of_a_turn_leaves_what_is_unsaved_where_it_is(store: Store) -> None:
    session = saved(store, "s", "one")
    session.history.append("unsaved")
    assert session.fork("f", at=1).history == ["one"]
    assert session.history == ["one", "unsaved"]


def test_a_fork_of_no_named_turn_is_refused_while_there_are_unsaved_changes(store: Store) -> None:
    session = saved(store, "s", "one")
    session.history.append("unsaved")
    with pytest.raises(Refused, match="not saved") as refused:
        session.fork("f")
    assert "at=1" in refused.value.hint
    assert not store.exists("f")
    session.save()
    assert session.fork("f").history == ["one", "unsaved"]


def test_a_turn_of_another_store_is_refused(store: Store) -> None:
    session = saved(store, "s", "here")
    stranger = saved(open_store("memory://"), "s", "elsewhere").head
    assert stranger is not None
    before = moves(store)
    acts: list[Callable[[], object]] = [
        lambda: session.rewind(stranger),
        lambda: session.fork("f", at=stranger),
        lambda: store.fork(stranger, "f"),
        lambda: store.tag("t", stranger),
    ]
    for act in acts:
        with pytest.raises(ObjectMissing):
            act()
    assert moves(store) == before


def test_the_log_is_a_sequence_newest_first(store: Store) -> None:
    session = saved(store, "s", *range(6))
    log = session.log()
    assert [turn.turn for turn in log] == [6, 5, 4, 3, 2, 1]
    assert (len(log), log[0].turn, log[-1].turn) == (6, 6, 1)
    assert [turn.turn for turn in log[1:4]] == [5, 4, 3]
    assert log[2] == session.at(4)
    with pytest.raises(IndexError):
        log[6]
