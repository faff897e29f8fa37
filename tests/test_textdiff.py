"""Text for people: values as lines, diffs, one-line summaries, and the text of a message."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.textdiff import MOST_LINES, first_line, render_value, text_of, unified, visible

ODD = "a\x1b[31m\r\u202e\u2028\x85\ud83d\x00😀\u200d👩"

texts = st.text(st.sampled_from('ab \t\n\r\x1b\u202e\ud83d😀\\"-:'), max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def is_safe(text: str) -> bool:
    """No terminal acts on it, and it can be written as UTF-8."""
    text.encode("utf-8")
    return not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e]", text)


def deep(levels: int) -> Any:
    value: Any = "core"
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


# --- escapes -----------------------------------------------------------------------------------


def test_what_a_terminal_would_act_upon_is_written_out() -> None:
    assert visible(ODD) == (
        "a\\x1b[31m\\r\\u202e\\u2028\\x85\\ud83d\\x00😀\u200d👩"
    )  # fmt: skip
    assert visible("tab\tand\nnewline, é, 漢, 😀") == "tab\tand\nnewline, é, 漢, 😀"


# --- values ------------------------------------------------------------------------------------


def test_a_message_renders_as_indented_lines() -> None:
    message = {
        "role": "user",
        "content": [
            {"type": "text", "text": "first\nsecond"},
            {"type": "tool_result", "ok": True, "n": 1.0, "none": None, "list": [], "map": {}},
            [1, [2, 3]],
        ],
        "odd key": "q\"",
    }  # fmt: skip
    assert render_value(message).split("\n") == [
        'role: "user"',
        "content:",
        '  - type: "text"',
        "    text: |-",
        "      first",
        "      second",
        '  - type: "tool_result"',
        "    ok: true",
        "    n: 1.0",
        "    none: null",
        "    list: []",
        "    map: {}",
        "  - - 1",
        "    - - 2",
        "      - 3",
        '"odd key": "q\\""',
    ]


def test_values_that_differ_only_in_kind_or_final_newline_look_different() -> None:
    alike = [1, 1.0, "1", True, "true", None, "null", "", [], {}, "a\nb", "a\nb\n", b"", b"1"]
    assert len({render_value(value) for value in alike}) == len(alike)


def test_bytes_show_their_length_and_first_digits_and_differ_when_they_differ() -> None:
    assert render_value(b"hello") == "<5 bytes 68656c6c6f>"
    one, other = bytes(1000) + b"1", bytes(1000) + b"2"
    assert render_value(one).startswith("<1001 bytes 00000000000000000000000000000000... id ")
    assert render_value(one) != render_value(other)


def test_ints_of_any_size_and_nesting_of_any_depth_render() -> None:
    assert render_value(10**5_000) == hex(10**5_000)
    rendered = render_value(deep(5_000))
    assert rendered.endswith('"core"')
    assert len(rendered) < 1_000_000


@settings(deadline=None)
@given(json_values)
def test_rendered_values_are_safe_to_print(value: Any) -> None:
    assert is_safe(render_value(value))
    assert is_safe(first_line(value))


# --- diffs -------------------------------------------------------------------------------------


def as_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def applied(old: str, diff: list[str]) -> str:
    """What patch(1) makes of the old text and the diff."""
    ours, new, at, last = as_lines(old), list[str](), 0, ""
    for line in diff[2:]:
        if hunk := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            start = int(hunk[1]) - (hunk[2] != "0")
            new += ours[at:start]
            at = start
            assert len(new) == int(hunk[3]) - (hunk[4] != "0")
        elif line.startswith("\\"):
            if last != "-":
                new[-1] = new[-1].removesuffix("\n")
        else:
            last = line[0]
            if last != "+":
                assert ours[at].removesuffix("\n") == line[1:]
                at += 1
            if last != "-":
                new.append(line[1:] + "\n")
    return "".join(new + ours[at:])


line_texts = st.lists(st.sampled_from(["a", "b", "c", "", "-x", "+y"]), max_size=14).map("\n".join)


@settings(deadline=None, max_examples=400)
@given(line_texts, line_texts, st.integers(0, 4))
def test_a_diff_applied_to_the_old_text_gives_the_new_one(old: str, new: str, context: int) -> None:
    diff = unified(old, new, "old", "new", context)
    assert (diff == []) == (old == new)
    if diff:
        assert diff[:2] == ["--- old", "+++ new"]
        assert applied(old, diff) == new


def test_a_diff_shows_only_the_neighbourhood_of_a_change() -> None:
    old = "".join(f"{n}\n" for n in range(1_000))
    assert unified(old, old.replace("\n500\n", "\nfive\n"), "old", "new", context=1) == [
        "--- old", "+++ new", "@@ -500,3 +500,3 @@", " 499", "-500", "+five", " 501",
    ]  # fmt: skip


def test_line_ends_and_a_missing_final_newline_are_seen() -> None:
    assert unified("a\r\nb\n", "a\nb")[2:] == [
        "@@ -1,2 +1,2 @@", "-a\\r", "-b", "+a", "+b", "\\ No newline at end of file",
    ]  # fmt: skip


def test_diff_lines_are_safe_to_print() -> None:
    diff = unified("same\n" + ODD, "same\nother", name_new=ODD)
    assert all(is_safe(line) and "\n" not in line for line in diff)


def test_a_diff_too_large_to_compute_says_how_many_lines_differ() -> None:
    same = "head\n"
    old = same + "".join(f"a{n}\n" for n in range(MOST_LINES)) + "tail\n"
    new = same + "".join(f"b{n}\n" for n in range(MOST_LINES + 1)) + "tail\n"
    assert unified(old, new)[2:] == [
        f"@@ -2,{MOST_LINES} +2,{MOST_LINES + 1} @@",
        f"{MOST_LINES} lines differ from {MOST_LINES + 1} lines, too many to compare",
    ]


def test_a_small_change_in_a_huge_text_is_still_shown() -> None:
    old = "".join(f"{n}\n" for n in range(50_000))
    began = time.perf_counter()
    assert "+new" in unified(old, old + "new\n")
    assert time.perf_counter() - began < 5


# --- one line ----------------------------------------------------------------------------------

USE = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a b"}]}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}


@pytest.mark.parametrize("message, line", [
    ({"role": "user", "content": "fix\n  the login"}, "user: fix the login"),
    ({"role": "assistant", "content": [THINKING, {"type": "text", "text": "so"}, USE]},
     "assistant: so"),
    ({"role": "assistant", "content": [THINKING, USE]}, "assistant: tool_use Bash"),
    ({"role": "assistant", "content": [THINKING]}, "assistant: thinking"),
    ({"role": "user", "content": [RESULT]}, "user: tool_result a b"),
    ({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
     "assistant: tool_calls f"),
    ({"role": "tool", "tool_call_id": "c", "content": "ok"}, "tool: ok"),
    ({"type": "function_call", "call_id": "c", "name": "f"}, "function_call: f"),
    ({"type": "function_call_output", "call_id": "c", "output": "ok"}, "function_call_output: ok"),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, "reasoning: hm"),
    ({"role": "user", "content": ""}, "user"),
    ("just text", "just text"),
    ({"a": 1, "b": [2]}, "a: 1 b: - 2"),
    (None, "null"),
])  # fmt: skip
def test_first_line_tells_what_a_message_is_about(message: Any, line: str) -> None:
    assert first_line(message) == line


@settings(deadline=None)
@given(texts, st.integers(1, 20))
def test_first_line_is_cut_to_its_width_with_an_ellipsis(said: str, width: int) -> None:
    whole = first_line({"role": "user", "content": said}, 1_000)
    line = first_line({"role": "user", "content": said}, width)
    assert line == whole if len(whole) <= width else line == whole[: width - 1] + "…"


def test_first_line_of_a_huge_message_takes_what_fits() -> None:
    assert first_line("ab " * 10_000_000, 5) == "ab a…"
    assert first_line(" " * 5_000 + "late" + " " * 5_000, 20) == "late"
    assert first_line("x" * 10_000_000, 5) == "xxxx…"
    assert len(first_line(deep(5_000), 30)) == 30


# --- all text ----------------------------------------------------------------------------------


def test_text_of_holds_what_was_said_called_and_returned_but_no_machine_fields() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "m", "data": "aGk="}}
    message = {
        "role": "assistant",
        "id": "msg_1",
        "content": [THINKING, {"type": "text", "text": "so"}, USE, RESULT, image],
    }
    assert text_of(message).split("\n") == ["hm", "so", "Bash", "ls", "a b"]


def test_text_of_finds_every_string_of_a_tool_input() -> None:
    use = {
        "type": "tool_use",
        "id": "t",
        "name": "T",
        "input": {"id": "x1", "data": {"type": "bug"}},
    }
    assert text_of({"role": "assistant", "content": [use]}).split("\n") == ["T", "x1", "bug"]


def test_text_of_reads_arguments_that_are_json_text() -> None:
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "f",
        "arguments": '{"q": "Z\\u00fcrich"}',
    }
    assert "Zürich" in text_of(call)
    assert '{"q": ' in text_of(call)
    assert "\\{" in text_of({**call, "arguments": "\\{ cut off"})


def test_text_of_leaves_out_pictures_and_encrypted_reasoning() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}
    assert text_of({"type": "message", "role": "user", "content": [picture]}) == ""
    assert text_of({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}) == ""
    assert text_of({"role": "user", "content": "data: a;base64, word"}) == "data: a;base64, word"


def test_text_of_takes_a_value_that_is_no_message_as_a_whole() -> None:
    assert text_of({"id": "a", "list": ["b", {"data": "c"}], "n": 1}) == "a\nb\nc"
    assert text_of("plain") == "plain"
    assert text_of(deep(5_000)) == "core"


@settings(deadline=None)
@given(json_values)
def test_text_of_takes_any_value(value: Any) -> None:
    assert isinstance(text_of({"role": "user", "content": value, "arguments": value}), str)
