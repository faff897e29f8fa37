"""Turns that come in two steps: begun by a save, completed in its place."""

from __future__ import annotations

import pytest
from stores import Place

from snapstore import NotFound, NothingToDo, RefMoved, Store

QUESTION = {"role": "user", "content": "why?"}
ANSWER = {"role": "assistant", "content": "because"}


def test_a_completed_turn_has_the_number_and_the_parent_of_its_beginning(store: Store) -> None:
    session = store.session("s")
    before = session.save("before")
    session.history.append(QUESTION)
    begun = session.save("why?")
    session.history.append(ANSWER)
    whole = session.complete()
    assert (whole.turn, whole.parent, whole.label) == (2, before.id, "why?")
    assert store.session("s").history == [QUESTION, ANSWER]
    assert [turn.id for turn in session.log()] == [whole.id, before.id]
    assert store.resolve("s@{1}") == begun


def test_undo_and_redo_go_over_both_steps_at_once(store: Store) -> None:
    session = store.session("s")
    for n in (1, 2):
        session.history.append(n)
        session.save()
        session.history.append(-n)
        session.complete()
    session.undo()
    assert session.history == [1, -1]
    session.redo()
    assert session.history == [1, -1, 2, -2]
    session.undo(2)
    assert session.head is None
    with pytest.raises(NothingToDo):
        session.undo()


def test_a_turn_that_was_only_begun_is_undone_alone(store: Store) -> None:
    session = store.session("s")
    session.save("before")
    session.history.append(QUESTION)
    session.save()
    session.undo()
    assert session.turn == 1


def test_a_turn_can_be_completed_more_than_once_and_given_another_label(store: Store) -> None:
    session = store.session("s")
    session.save("begun")
    for label in ("half", None, "whole"):
        session.scratchpad["label"] = label
        session.complete(label)
    assert session.turn == 1 and session.head is not None and session.head.label == "whole"
    session.undo()
    assert session.head is None


def test_there_is_nothing_to_complete_before_the_first_save(store: Store) -> None:
    with pytest.raises(NotFound):
        store.session("s").complete()


def test_who_completes_a_turn_that_was_moved_meanwhile_loses_nothing(place: Place) -> None:
    mine, other = place.open().session("s"), place.open()
    mine.history.append(QUESTION)
    begun = mine.save()
    theirs = other.session("s")
    theirs.history.append("other")
    theirs.save()
    mine.history.append(ANSWER)
    with pytest.raises(RefMoved):
        mine.complete()
    beside = mine.complete(on_conflict="fork")
    assert mine.name == "s+1" and beside.turn == begun.turn
    assert place.open().session("s+1").history == [QUESTION, ANSWER]
    assert place.open().session("s").history == [QUESTION, "other"]


def test_what_was_edited_in_a_scratchpad_is_told(store: Store) -> None:
    pad = store.session("s").scratchpad
    pad.update(kept=1, gone=2)
    store_it = store.session("t")
    store_it.scratchpad = pad
    store_it.save()
    assert store_it.scratchpad.edits() == ({}, [])
    store_it.scratchpad["new"] = {"raw": b"\0"}
    del store_it.scratchpad["gone"]
    assert store_it.scratchpad.edits() == ({"new": {"raw": b"\0"}}, ["gone"])
