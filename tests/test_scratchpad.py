"""The scratchpad is a dict to whoever uses it, and as text it fits where it was told to fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from stores import Place, run_machine

from snapstore import ReadOnlyValue, Store, UnsupportedValue
from snapstore.scratchpad import Scratchpad

KEYS = st.sampled_from(["", "a", "b", "c/d", "é", "\ud800", "\0", *map(str, range(80))])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
) | st.integers(150, 260).map("x".__mul__)


class LikeADict(RuleBasedStateMachine):
    """A scratchpad and a plain dict, to which the same is done."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.session = place.open().session("s")
        self.model: dict[str, Any] = {}

    def teardown(self) -> None:
        self.place.opened.close()

    def both(self, act: Callable[[Any], Any]) -> None:
        """Act on both: they give the same, or refuse alike."""
        outcomes: list[Any] = []
        for mapping in (self.session.scratchpad, self.model):
            try:
                outcomes.append(act(mapping))
            except KeyError as error:
                outcomes.append(type(error))
        ours, theirs = outcomes
        assert ours == theirs

    @rule(key=KEYS, value=VALUES)
    def assign(self, key: str, value: Any) -> None:
        self.both(lambda m: m.__setitem__(key, value))

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        self.both(lambda m: m.__delitem__(key))

    @rule(key=KEYS)
    def pop(self, key: str) -> None:
        self.both(lambda m: m.pop(key))

    @rule(entries=st.dictionaries(KEYS, VALUES, max_size=6))
    def update(self, entries: dict[str, Any]) -> None:
        self.both(lambda m: m.update(entries))

    @rule(key=KEYS, value=VALUES)
    def set_default(self, key: str, value: Any) -> None:
        self.both(lambda m: m.setdefault(key, value))

    @rule()
    def fill(self) -> None:
        self.both(lambda m: m.update({str(n): n for n in range(80)}))

    @rule()
    def clear(self) -> None:
        self.both(lambda m: m.clear())

    @rule(entries=st.dictionaries(KEYS, VALUES, max_size=6))
    def assign_the_whole(self, entries: dict[str, Any]) -> None:
        self.session.scratchpad = entries
        self.model = dict(entries)

    @rule(key=KEYS)
    def look(self, key: str) -> None:
        self.both(lambda m: (key in m, m.get(key, "none"), m.get(3), 3 in m))
        self.both(lambda m: m[key])

    @rule()
    def save(self) -> None:
        self.session.save()
        assert not self.session.scratchpad.changed
        assert self.session.head is not None
        assert self.session.head.scratchpad == self.model

    @rule()
    def open_again(self) -> None:
        self.session.save()
        self.session = self.place.open().session("s")

    @invariant()
    def holds_the_same(self) -> None:
        pad = self.session.scratchpad
        assert len(pad) == len(self.model)
        assert dict(pad) == self.model
        in_order = sorted(self.model, key=lambda key: key.encode("utf-8", "surrogatepass"))
        assert list(pad) == in_order
        assert pad == self.model
        assert pad != {**self.model, "another": 1}

    @invariant()
    def is_changed_only_when_it_differs_from_head(self) -> None:
        head = self.session.head
        saved = dict(head.scratchpad) if head else {}
        assert self.session.scratchpad.changed == (saved != self.model)


def test_a_scratchpad_does_what_a_dict_does(new_place: Callable[[], Place]) -> None:
    run_machine(LikeADict, new_place, examples=50, steps=20)


@pytest.fixture
def pad(store: Store) -> Scratchpad:
    """The scratchpad of a session that has no turn yet."""
    return store.session("s").scratchpad


def test_a_value_that_was_read_refuses_to_be_changed(pad: Scratchpad) -> None:
    pad["plan"] = {"steps": ["one"]}
    with pytest.raises(ReadOnlyValue):
        pad["plan"]["steps"].append("two")


def test_assigning_copies(pad: Scratchpad) -> None:
    steps = ["one"]
    pad["steps"] = steps
    steps.append("two")
    assert pad["steps"] == ["one"]


@pytest.mark.parametrize("size", [150, 199, 200, 201, 300, 100_000])
def test_values_of_every_size_come_back(store: Store, place: Place, size: int) -> None:
    session = store.session("s")
    session.scratchpad["text"] = "x" * size
    session.scratchpad["bytes"] = {"deep": [bytes(size)]}
    session.save()
    again = place.open().session("s").scratchpad
    assert again["text"] == "x" * size
    assert again["bytes"] == {"deep": [bytes(size)]}


@pytest.mark.parametrize("value", [float("inf"), {1}, object(), {1: 2}, ("tuple",)])
def test_what_cannot_be_kept_is_refused_and_nothing_changes(pad: Scratchpad, value: object) -> None:
    pad["k"] = "old"
    with pytest.raises(UnsupportedValue, match=r"scratchpad\['k'\]"):
        pad["k"] = value
    with pytest.raises(UnsupportedValue):
        pad.assign({"new": 1, "k": value})
    assert pad == {"k": "old"}


def test_keys_are_text(pad: Scratchpad) -> None:
    with pytest.raises(UnsupportedValue, match="keys are strings"):
        pad[3] = "three"  # type: ignore[index]


# --- the summary -----------------------------------------------------------------------------

CUT = "…"


@given(
    entries=st.dictionaries(st.text(max_size=30), VALUES | st.text(max_size=300), max_size=12),
    room=st.integers(-5, 400),
)
@settings(max_examples=150, deadline=None)
def test_a_summary_never_exceeds_its_limit(entries: dict[str, Any], room: int) -> None:
    pad = _pad_of(entries)
    assert len(pad.summary(room)) <= max(0, room)


@given(entries=st.dictionaries(st.text("ab", min_size=1, max_size=5), st.integers(), max_size=12))
@settings(max_examples=50, deadline=None)
def test_a_summary_with_room_holds_every_key_and_value(entries: dict[str, Any]) -> None:
    lines = _pad_of(entries).summary().splitlines()
    assert lines == [f"{key}: {entries[key]}" for key in sorted(entries)]


@given(keys=st.integers(1, 40), room=st.integers(30, 300))
@settings(max_examples=50, deadline=None)
def test_a_summary_counts_the_keys_that_it_leaves_out(keys: int, room: int) -> None:
    lines = _pad_of({f"key{n:02}": "v" * 20 for n in range(keys)}).summary(room).splitlines()
    shown = [line for line in lines if line.startswith("key")]
    left = keys - len(shown)
    rest = [f"{CUT} and {left} more key{'s' if left > 1 else ''}"] if left else []
    assert lines == shown + rest


def _pad_of(entries: dict[str, Any]) -> Scratchpad:
    from snapstore import open as open_store

    pad = open_store("memory://").session("s").scratchpad
    pad.update(entries)
    return pad


def test_an_empty_scratchpad_has_no_summary(pad: Scratchpad) -> None:
    assert pad.summary() == ""


def test_a_long_value_is_cut_and_says_so(pad: Scratchpad) -> None:
    pad["log"] = "x" * 5000
    text = pad.summary(100)
    assert text == "log: " + "x" * 94 + CUT


def test_a_long_value_leaves_room_for_the_others(pad: Scratchpad) -> None:
    pad.update({"a": "x" * 5000, "b": "short", "c": [1, 2]})
    lines = pad.summary(200).splitlines()
    assert [line[:3] for line in lines] == ["a: ", "b: ", "c: "]
    assert lines[1:] == ["b: short", "c: [1, 2]"]


def test_a_summary_is_cut_at_whole_characters(pad: Scratchpad) -> None:
    pad["smile"] = "😀" * 100
    text = pad.summary(50)
    text.encode()
    assert text.endswith("😀" + CUT)


def test_bytes_and_deep_values_are_summed_up(pad: Scratchpad) -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    pad.update({"blob": b"12345", "deep": deep, "in": {"side": b"123"}})
    assert pad.summary().splitlines() == [
        "blob: (5 bytes)",
        "deep: (nested too deeply to show)",
        'in: {"side": "(3 bytes)"}',
    ]


def test_lines_of_a_value_are_indented_below_its_key(pad: Scratchpad) -> None:
    pad["note"] = "first\nsecond"
    assert pad.summary() == "note: first\n  second"


def test_the_scratchpad_of_a_snapshot_is_summed_up_too(store: Store) -> None:
    session = store.session("s")
    session.scratchpad["step"] = 3
    assert session.save().scratchpad.summary() == "step: 3"
    assert json.dumps(dict(session.scratchpad)) == '{"step": 3}'


def test_setdefault_gives_what_is_stored_and_not_the_callers_own(store: Store) -> None:
    """Else a change of the caller's list would be lost without a word."""
    pad = store.session("s").scratchpad
    files: list[str] = []
    given = pad.setdefault("files", files)
    assert given == [] and given is not files
    with pytest.raises(ReadOnlyValue):
        given.append("a.py")
    assert pad.setdefault("files", ["b.py"]) == []
    assert pad.setdefault("nothing") is None and "nothing" in pad
