"""Messages become turns: borders, compactions, rolling back; labels and times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.formats.turns import (
    COMPACTED,
    LABEL_LENGTH,
    TurnBuilder,
    is_prompt,
    label_of,
    prompt_text,
    time_of,
)


def told(*steps: tuple[str, Any]) -> TurnBuilder:
    builder = TurnBuilder()
    for step, what in steps:
        if step == "prompt":
            builder.prompt(what)
            builder.add(what)
        else:
            getattr(builder, step)(what)
    return builder


def shape(builder: TurnBuilder) -> list[tuple[str, tuple[Any, ...], bool]]:
    return [(turn.label, turn.messages, turn.replaces) for turn in builder.turns()]


def test_what_comes_before_the_first_prompt_belongs_to_the_first_turn() -> None:
    builder = told(("add", "greeting"), ("prompt", "p1"), ("add", "a1"), ("prompt", "p2"))
    assert shape(builder) == [("p1", ("greeting", "p1", "a1"), False), ("p2", ("p2",), False)]


def test_what_is_injected_before_a_prompt_belongs_to_its_turn() -> None:
    steps = [("prompt", "p1"), ("add", "a1"), ("inject", "note")]
    assert shape(told(*steps)) == [("p1", ("p1", "a1", "note"), False)]
    assert shape(told(*steps, ("prompt", "p2"))) == [
        ("p1", ("p1", "a1"), False),
        ("p2", ("note", "p2"), False),
    ]


def test_what_is_injected_while_a_turn_works_belongs_to_that_turn() -> None:
    builder = told(("prompt", "p1"), ("inject", "note"), ("add", "a1"), ("prompt", "p2"))
    assert shape(builder)[0] == ("p1", ("p1", "note", "a1"), False)


def test_the_prompt_after_a_compaction_is_of_the_turn_that_replaces() -> None:
    builder = told(("prompt", "p1"), ("add", "a1"), ("compact", ["sum"]), ("prompt", "p2"))
    assert shape(builder) == [("p1", ("p1", "a1"), False), ("p2", ("sum", "p2"), True)]


def test_work_that_goes_on_after_a_compaction_is_a_turn_of_its_own() -> None:
    builder = told(
        ("prompt", "p1"), ("add", "a1"), ("compact", ["sum"]), ("add", "a2"), ("prompt", "p2")
    )
    assert shape(builder) == [
        ("p1", ("p1", "a1"), False),
        (COMPACTED, ("sum", "a2"), True),
        ("p2", ("p2",), False),
    ]


def test_the_history_starts_at_the_last_compaction() -> None:
    builder = told(("prompt", "p1"), ("compact", ["sum"]), ("prompt", "p2"), ("inject", "note"))
    assert builder.history() == ["sum", "p2", "note"]
    assert told(("prompt", "p1"), ("prompt", "p2")).history() == ["p1", "p2"]


def test_rolling_back_drops_prompts_and_keeps_what_stood_before_them() -> None:
    builder = told(("inject", "rules"), ("prompt", "p1"), ("add", "a1"), ("prompt", "p2"))
    before = builder.roll_back(2)
    assert [turn.label for turn in before] == ["p1", "p2"]
    builder.prompt("again")
    builder.add("again")
    assert shape(builder) == [("again", ("rules", "again"), False)]


def test_rolling_back_over_a_compaction_drops_the_turn_it_split() -> None:
    builder = told(("prompt", "p1"), ("prompt", "p2"), ("compact", ["sum"]), ("add", "a2"))
    builder.roll_back(1)
    assert shape(builder) == [("p1", ("p1",), False)]


def test_nothing_at_all_is_one_empty_turn() -> None:
    assert shape(TurnBuilder()) == [("", (), False)]


def test_a_turn_has_the_time_of_its_last_dated_message() -> None:
    builder = TurnBuilder()
    builder.prompt("p")
    builder.add("p", 1)
    builder.add("a", 5)
    builder.add("undated")
    assert [turn.time for turn in builder.turns()] == [5]


def test_usage_is_summed_by_turn() -> None:
    builder = TurnBuilder()
    builder.count("usage", {"in": 1, "note": "x", "flag": True})
    builder.count("usage", {"in": 2, "out": 3})
    builder.add("a")
    assert builder.turns()[0].meta == {"usage": {"in": 3, "out": 3}}


RESULT = {"type": "tool_result", "tool_use_id": "t"}
TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "source": {}}


@pytest.mark.parametrize(
    ("content", "prompt"),
    [
        ("text", True),
        ("", True),
        ([TEXT], True),
        ([RESULT, TEXT], True),
        ([IMAGE], True),
        (["bare"], True),
        ([RESULT, RESULT], False),
        ([], False),
        (None, False),
    ],
)
def test_a_prompt_is_more_than_results_of_tools(content: Any, prompt: bool) -> None:
    assert is_prompt(content) is prompt


@pytest.mark.parametrize(
    ("content", "text"),
    [("plain", "plain"), ([TEXT, IMAGE, TEXT], "hello\nhello"), ([IMAGE], "[image]"), (None, "")],
)
def test_the_text_of_a_prompt_is_its_text_blocks(content: Any, text: str) -> None:
    assert prompt_text(content) == text


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("one line", "one line"),
        ("\n \n  second is first\nthird", "second is first"),
        ("tab\tand \x1b[31mred\x1b[0m\x07", "tab and red"),
        ("half \ud83d", "half \ufffd"),
        ("over\u202eride", "over ride"),
        ("<command-message>init</command-message>\n<command-name>/init</command-name>", "/init"),
        ("<command-name>/rm</command-name>\n<command-args>a b</command-args>", "/rm a b"),
        ("<command-odd>", "<command-odd>"),
        ("<bash-input>ls -l</bash-input>", "! ls -l"),
        ("<ide_opened_file>a.py</ide_opened_file>\nfix it", "fix it"),
        ("<system-reminder>a\nb</system-reminder><ide_x></ide_x> fix", "fix"),
        ("<ide_opened_file>a.py</ide_opened_file>", "<ide_opened_file>a.py</ide_opened_file>"),
        ("# Context from my IDE setup:\n- a\n\n## My request for Codex:\nfix it", "fix it"),
        ("# Context from my IDE setup:\n- a", "# Context from my IDE setup:"),
        ("", ""),
    ],
)
def test_a_label_is_the_first_line_that_says_something(text: str, label: str) -> None:
    assert label_of(text) == label


def test_a_long_label_is_cut_between_code_points() -> None:
    assert label_of("🎉" * 100) == "🎉" * (LABEL_LENGTH - 1) + "…"


@given(st.text())
@settings(deadline=None)
def test_labels_are_short_and_printable(text: str) -> None:
    label = label_of(text)
    assert len(label) <= LABEL_LENGTH
    assert not any(c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in label)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1970-01-01T00:00:01.000Z", 1_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.000001", 1),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000_000),
        ("yesterday", None),
        (1_700_000_000, None),
        (None, None),
    ],
)
def test_times_are_microseconds_since_the_epoch(text: Any, time: int | None) -> None:
    assert time_of(text) == time
