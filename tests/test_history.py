"""The history is a list to whoever uses it, whatever of it is saved and however it is edited."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from stores import Place, run_machine

from snapstore import ReadOnlyValue, Store, UnsupportedValue
from snapstore.history import History
from snapstore.model.extents import NODE_ITEMS

MESSAGES: st.SearchStrategy[Any] = st.one_of(
    st.integers(0, 4),
    st.text("ab", max_size=2),
    st.builds(lambda text: {"role": "user", "content": [{"text": text}]}, st.text(max_size=3)),
)
PLACES = st.integers(-9, 9)
SLICES = st.slices(12)
SOME = st.lists(MESSAGES, max_size=5)


class LikeAList(RuleBasedStateMachine):
    """A history and a plain list, to which the same is done."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.session = place.open().session("h")
        self.model: list[Any] = []

    def teardown(self) -> None:
        self.place.opened.close()

    def both(self, act: Callable[[Any], Any]) -> None:
        """Act on both: they give the same, or refuse alike."""
        outcomes: list[Any] = []
        for sequence in (self.session.history, self.model):
            try:
                outcomes.append(act(sequence))
            except (IndexError, ValueError) as error:
                outcomes.append(type(error))
        ours, theirs = outcomes
        assert ours == theirs

    @rule(message=MESSAGES)
    def append(self, message: Any) -> None:
        self.both(lambda h: h.append(message))

    @rule(messages=SOME)
    def extend(self, messages: list[Any]) -> None:
        self.both(lambda h: h.extend(messages))

    @rule(at=PLACES, message=MESSAGES)
    def insert(self, at: int, message: Any) -> None:
        self.both(lambda h: h.insert(at, message))

    @rule(at=PLACES, message=MESSAGES)
    def assign(self, at: int, message: Any) -> None:
        self.both(lambda h: h.__setitem__(at, message))

    @rule(at=SLICES, messages=SOME)
    def assign_slice(self, at: slice, messages: list[Any]) -> None:
        self.both(lambda h: h.__setitem__(at, messages))

    @rule(at=SLICES)
    def assign_as_many(self, at: slice) -> None:
        fitting = list(range(len(self.model[at])))
        self.both(lambda h: h.__setitem__(at, fitting))

    @rule(at=PLACES)
    def delete(self, at: int) -> None:
        self.both(lambda h: h.__delitem__(at))

    @rule(at=SLICES)
    def delete_slice(self, at: slice) -> None:
        self.both(lambda h: h.__delitem__(at))

    @rule(at=PLACES)
    def pop(self, at: int) -> None:
        self.both(lambda h: h.pop(at))

    @rule(message=MESSAGES)
    def remove(self, message: Any) -> None:
        self.both(lambda h: h.remove(message))

    @rule()
    def reverse(self) -> None:
        self.both(lambda h: h.reverse())

    @rule()
    def clear(self) -> None:
        self.both(lambda h: h.clear())

    @rule()
    def extend_with_itself(self) -> None:
        if len(self.model) <= 16:
            self.both(lambda h: h.extend(h))

    @rule()
    def put_itself_in_its_middle(self) -> None:
        if len(self.model) <= 16:
            self.both(lambda h: h.__setitem__(slice(1, 1), h))

    @rule(messages=SOME)
    def add_in_place(self, messages: list[Any]) -> None:
        self.session.history += messages  # type: ignore[operator]
        self.model += messages

    @rule()
    def assign_the_whole_anew(self) -> None:
        self.session.history = list(self.model)

    @rule(message=MESSAGES)
    def search(self, message: Any) -> None:
        self.both(lambda h: (message in h, h.count(message)))
        self.both(lambda h: h.index(message))

    @rule(at=PLACES)
    def read_one(self, at: int) -> None:
        self.both(lambda h: h[at])

    @rule(at=SLICES)
    def read_slice(self, at: slice) -> None:
        self.both(lambda h: h[at])

    @rule()
    def save(self) -> None:
        self.session.save()
        assert not self.session.history.changed
        assert self.session.head is not None
        assert self.session.head.history == self.model

    @rule()
    def open_again(self) -> None:
        self.session.save()
        self.session = self.place.open().session("h")

    @invariant()
    def holds_the_same(self) -> None:
        history = self.session.history
        assert len(history) == len(self.model)
        assert list(history) == self.model
        assert list(reversed(history)) == self.model[::-1]
        assert history == self.model
        assert history != [*self.model, "more"]
        if self.model:
            assert history != [*self.model[:-1], "other"]

    @invariant()
    def is_changed_only_when_it_differs_from_head(self) -> None:
        head = self.session.head
        saved = list(head.history) if head else []
        assert self.session.history.changed == (saved != self.model)


def test_a_history_does_what_a_list_does(new_place: Callable[[], Place]) -> None:
    run_machine(LikeAList, new_place, examples=60, steps=25)


def test_append_copies(store: Store) -> None:
    history = store.session("s").history
    message = {"role": "user", "content": ["mine"]}
    history.append(message)
    message["content"] = ["changed"]
    assert history[0] == {"role": "user", "content": ["mine"]}


@pytest.mark.parametrize("saved", [False, True])
def test_a_message_that_was_read_refuses_to_be_changed(store: Store, saved: bool) -> None:
    session = store.session("s")
    session.history.append({"content": [{"text": "old"}]})
    if saved:
        session.save()
    for message in (session.history[0], session.history[:][0], next(iter(session.history))):
        with pytest.raises(ReadOnlyValue, match="deepcopy"):
            message["content"][0]["text"] = "new"
    changed = copy.deepcopy(session.history[0])
    changed["content"][0]["text"] = "new"
    session.history[0] = changed
    assert session.history[0]["content"][0]["text"] == "new"


def test_the_history_of_a_snapshot_cannot_be_edited(store: Store) -> None:
    session = store.session("s")
    session.history.append("hi")
    kept = session.save().history
    assert not isinstance(kept, History)
    assert not hasattr(kept, "append")
    assert kept == ["hi"]


def test_a_history_prints_as_json(store: Store) -> None:
    session = store.session("s")
    session.history.extend([{"b": 1, "a": [None, 2.5]}, "text"])
    session.save()
    session.history.append({"c": {}})
    assert json.dumps(list(session.history)) == '[{"b": 1, "a": [null, 2.5]}, "text", {"c": {}}]'


def test_histories_compare_by_value_as_lists_do(store: Store) -> None:
    one, other = store.session("one").history, store.session("other").history
    one.append({"a": 1, "b": 2})
    other.append({"b": 2.0, "a": 1})
    assert one == other
    assert one == list(other)
    other.append("more")
    assert one != other
    assert one != "not a sequence of messages"
    assert one != ({"a": 1, "b": 2},)


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (lambda h: h.append({"when": {1}}), "messages[3].when"),
        (lambda h: h.extend(["fine", {"when": float("nan")}]), "messages[4].when"),
        (lambda h: h.insert(1, b"raw"), "messages[1]"),
        (lambda h: h.__setitem__(2, {3: "key"}), "messages[2]"),
        (lambda h: h.__setitem__(slice(1, 2), ["fine", ("tuple",)]), "messages[2]"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place_and_nothing_changes(
    store: Store, edit: Callable[[History], None], path: str
) -> None:
    history = store.session("s").history
    history.extend(["a", "b", "c"])
    with pytest.raises(UnsupportedValue) as refusal:
        edit(history)
    assert refusal.value.path.startswith(path)
    assert history == ["a", "b", "c"]


def test_messages_move_between_sessions_and_stores(store: Store, place: Place) -> None:
    source = store.session("source")
    source.history.extend(["saved", "too"])
    source.save()
    source.history.append("unsaved")
    for name, other in (("same-store", store), ("another-handle", place.open())):
        target = other.session(name)
        target.history.extend(source.history)
        target.save()
        assert place.open().session(name).history == ["saved", "too", "unsaved"]


def test_a_long_history_is_edited_in_its_middle(store: Store, place: Place) -> None:
    model: list[Any] = list(range(3 * NODE_ITEMS + 7))
    session = store.session("s")
    session.history.extend(model)
    session.save()
    edits: list[Callable[[Any], object]] = [
        lambda h: h.__delitem__(slice(None, None, 3)),
        lambda h: h.__setitem__(slice(5, -5, 2), ["x"] * len(model[5:-5:2])),
        lambda h: h.insert(NODE_ITEMS + 1, "middle"),
        lambda h: h.reverse(),
    ]
    for edit in edits:
        edit(session.history)
        edit(model)
        assert session.history == model
    session.save()
    assert place.open().session("s").history == model


def test_whoever_assigns_the_whole_history_each_turn_shares_what_is_equal(place: Place) -> None:
    store, engine = place.counted()
    session = store.session("s")
    messages = [f"message {n}" for n in range(500)]
    session.history = messages
    session.save()
    engine.forget()
    session.history = [*messages, "one more"]
    session.save()
    assert len(engine.committed) == 3  # the message, a list node, the snapshot
    engine.forget()
    session.history = [*messages, "one more"]
    session.save()
    assert engine.committed == []
