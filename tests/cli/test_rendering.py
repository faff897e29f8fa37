"""The pure pieces of rendering: graph, forest, columns, words, and pages of messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore_cli.render import columns, words
from snapstore_cli.render.forest import Branch, forest
from snapstore_cli.render.graph import ASCII, UNICODE, Glyphs, Node, draw
from snapstore_cli.render.messages import page
from snapstore_cli.render.style import Look, Style

PLAIN = Look(Style(False))
NOW = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)


def drawn(nodes: Sequence[Node], glyphs: Glyphs = ASCII, **how: Any) -> list[str]:
    rows = draw(nodes, glyphs, **how)
    return [f"{row.text} {row.node.id}" if row.node else row.text for row in rows]


def nodes(text: str) -> list[Node]:
    """``c>b`` is a node c with the parent b; the first is the newest."""
    pairs = [item.partition(">") for item in text.split()]
    return [Node(name, parent or None, -n) for n, (name, _, parent) in enumerate(pairs)]


def test_a_single_line_is_drawn_straight() -> None:
    assert drawn(nodes("c>b b>a a")) == ["* c", "* b", "* a"]


def test_a_fork_joins_where_its_lines_part() -> None:
    assert drawn(nodes("d>b c>b b>a a")) == ["* d", "| * c", "|/", "* b", "* a"]
    assert drawn(nodes("d>b c>b b>a a"), UNICODE) == ["● d", "│ ● c", "├─╯", "● b", "● a"]


def test_each_side_branch_stands_whole_above_its_fork() -> None:
    made = nodes("d>a c>a b>a a")
    assert drawn(made) == ["* d", "| * c", "|/", "| * b", "|/", "* a"]
    made = nodes("g>b f>e e>b d>a c>a b>a a")
    assert drawn(made) == [
        "* g", "| * f", "| * e", "|/", "* b", "| * d", "|/", "| * c", "|/", "* a",
    ]  # fmt: skip


def test_branches_of_a_branch_are_nested() -> None:
    made = nodes("f>a e>c d>c c>a b>a a")
    assert drawn(made, UNICODE) == [
        "● f", "│ ● e", "│ │ ● d", "│ ├─╯", "│ ● c", "├─╯", "│ ● b", "├─╯", "● a",
    ]  # fmt: skip


def test_lines_without_a_common_turn_stand_apart() -> None:
    assert drawn(nodes("d>c b>a c a")) == ["* d", "* c", "", "* b", "* a"]


def test_what_is_not_listed_is_told() -> None:
    assert drawn(nodes("d>c b>a a")) == ["* d", "~", "* b", "* a"]
    assert drawn(nodes("e>a d>c c>x b>a a")) == ["* e", "| * b", "|/", "* a", "", "* d", "* c", "~"]


def test_where_one_stands_has_a_mark_of_its_own() -> None:
    assert drawn(nodes("d>b c>b b"), here="c") == ["* d", "| @ c", "|/", "* b"]


def test_columns_that_do_not_fit_are_only_hinted_at() -> None:
    made = nodes("e>a d>b c>d f>c g>c b>a a")
    whole, some = drawn(made, UNICODE), drawn(made, UNICODE, most=2)
    assert whole == ["● e", "│ ● f", "│ │ ● g", "│ ├─╯", "│ ● c", "│ ● d", "│ ● b", "├─╯", "● a"]
    assert some == ["● e", "│ ● f", "│ ○ g", "│ ● c", "│ ● d", "│ ● b", "├─╯", "● a"]
    assert drawn(made, most=1)[:3] == ["* e", "o f", "o g"]


@pytest.mark.parametrize("order", [1, -1])
def test_hundreds_of_forks_take_few_columns(order: int) -> None:
    line = [Node(f"{n}", f"{n - 1}" if n else None, n) for n in range(3000)]
    forks = [Node(f"fork {n}", f"{n}", 9000 + order * n) for n in range(0, 3000, 5)]
    assert max(len(row.strokes) for row in draw([*line, *forks])) <= 3


@st.composite
def forests(draw_: st.DrawFn) -> list[Node]:
    size = draw_(st.integers(1, 25))
    made: list[Node] = []
    for n in range(size):
        parent = draw_(st.none() | st.integers(0, n - 1)) if n else None
        made.append(
            Node(f"n{n}", None if parent is None else f"n{parent}", draw_(st.integers(0, 9)))
        )
    return made


@settings(deadline=None, max_examples=150)
@given(made=forests(), most=st.none() | st.integers(1, 4))
def test_every_turn_is_drawn_once_below_its_children_and_joined_to_its_parent(
    made: list[Node], most: int | None
) -> None:
    for glyphs in (ASCII, UNICODE):
        rows = list(draw(made, glyphs, most=most))
        order = [row.node.id for row in rows if row.node]
        assert sorted(order) == sorted(node.id for node in made)
        for node in made:
            assert node.parent is None or order.index(node.parent) > order.index(node.id)
        joins = sum("".join(row.strokes[-2:]) == glyphs.join for row in rows)
        parents = [node.parent for node in made if node.parent]
        hidden = sum(row.strokes[-1:] == (glyphs.hidden,) for row in rows)
        assert 0 <= len(parents) - len(set(parents)) - joins <= hidden
        widest = max(len(row.strokes) for row in rows)
        assert widest <= (most or len(made).bit_length() + 1)


# --- forest ------------------------------------------------------------------------------------


def test_a_fork_stands_below_the_session_that_made_its_turn() -> None:
    lines = {
        "m5": "m1 m2 m3 m4 m5",
        "b4": "m1 m2 m3 b4",
        "c4": "m1 m2 m3 c4",
        "d5": "m1 m2 m3 b4 d5",
    }
    branches = [
        Branch("b", "b4", 4, "m3", 3),
        Branch("c", "c4", 4, "m3", 3),
        Branch("d", "d5", 5, "b4", 4),
        Branch("main", "m5", 5, None, 0),
    ]
    found = list(forest(branches, lambda head, n: lines[head].split()[n - 1], unicode=False))
    assert found == [("", "main"), ("|- ", "b"), ("|  `- ", "d"), ("`- ", "c")]


def test_a_fork_whose_origin_is_gone_stands_alone() -> None:
    branches = [Branch("b", "b2", 2, "m1", 1)]
    assert list(forest(branches, lambda head, n: ["m1", "b2"][n - 1], unicode=True)) == [("", "b")]


# --- words and columns -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("back", "told"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(seconds=59), "59 seconds ago"),
        (timedelta(seconds=60), "1 minute ago"),
        (timedelta(minutes=59), "59 minutes ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=1), "1 day ago"),
        (timedelta(days=13), "1 week ago"),
        (timedelta(days=400), "2023-04-02"),
        (timedelta(seconds=-30), "2024-05-06T12:00:30Z"),
    ],
)
def test_times_are_told_as_people_say_them(back: timedelta, told: str) -> None:
    assert words.ago(NOW - back, NOW) == told


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (10**9 * 4, "4.0 GB")]
)
def test_sizes_are_told_in_powers_of_a_thousand(number: int, told: str) -> None:
    assert words.size(number) == told


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("🎉", 2)])
def test_wide_and_combining_characters_are_counted_as_a_terminal_does(
    text: str, width: int
) -> None:
    assert words.cells(text) == width


@settings(deadline=None)
@given(text=st.text(st.sampled_from("ab 日é\u0301🎉"), max_size=40), width=st.integers(2, 20))
def test_what_is_cut_or_wrapped_fits_and_wrapping_loses_only_blanks(text: str, width: int) -> None:
    assert words.cells(words.cut(text, width)) <= width
    assert words.cells(words.cut_middle(text, width)) <= width
    rows = list(words.wrap(text, width))
    assert all(words.cells(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


def test_records_are_aligned_on_a_terminal_and_parted_by_tabs_elsewhere() -> None:
    rows: list[list[columns.Cell]] = [
        [("", "a"), ("", "short"), ("", "x" * 30)],
        [("", "日本"), ("", "longer one"), ("", "y")],
    ]
    assert list(columns.lines(rows, PLAIN)) == ["a\tshort\t" + "x" * 30, "日本\tlonger one\ty"]
    wide = Look(Style(False), width=30)
    assert list(columns.lines(rows, wide)) == [
        "a     short       " + "x" * 11 + "…",
        "日本  longer one  y",
    ]


def test_fields_that_run_on_follow_the_one_before() -> None:
    rows: list[list[columns.Cell]] = [
        [("", "a"), ("name", "(long name)"), ("", "x")],
        [("", "bcd"), ("name", ""), ("", "y")],
    ]
    wide = Look(Style(False), width=30)
    assert list(columns.lines(rows, wide, run_on=1)) == ["a    (long name) x", "bcd  y"]


def test_a_name_is_whole_where_the_terminal_has_room_for_it_and_the_others_make_way() -> None:
    def at(width: int) -> list[str]:
        rows: list[list[columns.Cell]] = [
            [("", "*"), ("name", "n" * 20), ("", "turn 1"), ("dim", "long ago"), ("", "label")],
            [("", ""), ("name", "short"), ("", "turn 12"), ("dim", "just now"), ("", "other")],
        ]
        return list(columns.lines(rows, Look(Style(False), width=width), whole=1))

    name = "n" * 20
    assert at(60) == [
        f"*  {name}  turn 1   long ago  label",
        f"   {'short':<20}  turn 12  just now  other",
    ]
    assert at(40)[0] == f"*  {name} turn 1 label"
    assert at(28)[0] == f"*  {name} turn"[:27] + "…"
    assert at(16)[0] == f"*  {name[:9]}…nnn"


def test_of_many_records_the_first_do_not_wait_for_the_last() -> None:
    taken = count()
    rows = ([("", f"{n}"), ("", "x")] for n in taken)
    assert next(columns.lines(rows, Look(Style(False), width=30))) == "0    x"
    assert next(taken) < 1000


def test_a_table_without_records_has_no_lines() -> None:
    for width in (None, 30):
        assert list(columns.lines([], Look(Style(False), width=width), whole=0)) == []


# --- messages ----------------------------------------------------------------------------------


def told(*messages: object) -> list[str]:
    return [line.strip() for line in page(messages, 0, PLAIN) if line.strip()]


@pytest.mark.parametrize(
    "messages",
    [
        (
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c", "name": "run", "input": {"x": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": [
                    {"type": "text", "text": "fine"}]}]},
        ),
        (
            {"role": "assistant", "tool_calls": [
                {"id": "c", "function": {"name": "run", "arguments": '{"x": 1}'}}]},
            {"role": "tool", "tool_call_id": "c", "content": "fine"},
        ),
        (
            {"type": "function_call", "call_id": "c", "name": "run", "arguments": '{"x": 1}'},
            {"type": "function_call_output", "call_id": "c", "output": "fine"},
        ),
    ],
    ids=["anthropic", "openai chat", "openai responses"],
)  # fmt: skip
def test_calls_and_results_of_every_shape_stand_together(messages: tuple[object, ...]) -> None:
    assert told(*messages)[1:] == ['-> run {"x": 1}  c', "<- #1", "fine"]


def test_a_result_whose_call_is_not_shown_stands_by_itself() -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": "fine"}
    assert told({"role": "user", "content": [result]}) == ["#0 user", "result of c", "fine"]


@settings(deadline=None)
@given(
    message=st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["role", "type", "content", "tool_calls", "text", "id", "input", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    )
)
def test_any_value_can_be_shown_as_a_message(message: object) -> None:
    assert list(page([message], 0, PLAIN))
