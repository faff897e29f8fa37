"""snapstore save: what is taken in, exactly, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import Shell

from snapstore import InvalidInput
from snapstore_cli.json_values import parse_messages, parse_setting

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(messages=st.lists(json_values, max_size=5), indent=st.sampled_from([None, 1]))
def test_an_array_gives_its_members(messages: list[Any], indent: int | None) -> None:
    assert parse_messages(json.dumps(messages, indent=indent).encode(), "in") == messages


@settings(deadline=None, max_examples=60)
@given(messages=st.lists(json_values, min_size=2, max_size=5), end=st.sampled_from(["\n", "\r\n"]))
def test_json_lines_give_a_message_a_line(messages: list[Any], end: str) -> None:
    text = end.join(json.dumps(message) for message in messages) + end
    assert parse_messages(text.encode(), "in") == messages


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", []),
        (" \n\n", []),
        ("[]", []),
        ('{"role": "user"}', [{"role": "user"}]),
        ('{"role":\n "user"}\n', [{"role": "user"}]),
        ('\ufeff["x"]', ["x"]),
        ('"just text"', ["just text"]),
        ("[1]\n[2]\n", [[1], [2]]),
        ('{"a": "\u2028"}\n{"b": 1}', [{"a": "\u2028"}, {"b": 1}]),
    ],
)
def test_what_form_messages_have_is_seen_from_the_text(text: str, messages: list[Any]) -> None:
    assert parse_messages(text.encode(), "in") == messages


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"not json", "line 1, column 1"),
        (b'{"a": 1}\n{"b": 2}\n{"c": \n', "line 3, column"),
        (b"[1,\n2,,3]", "line 2, column 3"),
        (b'{"a": "\xff"}', "line 1 is not UTF-8"),
        (b'["a"]\n"\xe4"', "line 2 is not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_named_by_line_and_column(data: bytes, place: str) -> None:
    with pytest.raises(InvalidInput, match=place):
        parse_messages(data, "in")


def test_a_setting_that_is_not_json_says_how_to_quote_it() -> None:
    assert parse_setting('a="c"') == ("a", "c")
    assert parse_setting("key={}") == ("key", {})
    with pytest.raises(InvalidInput) as refused:
        parse_setting("file=login.py")
    assert 'file="login.py"' in refused.value.hint


# --- through the command -----------------------------------------------------------------------


def test_save_appends_messages_and_tells_id_and_turn(shell: Shell) -> None:
    one = shell.ok("save", "-m", "first", "--messages", "-", stdin='["a"]\n')
    assert one.out.split()[1:3] == ["turn", "1"]
    two = shell.ok("save", "--messages", "-", "--json", stdin='"b"\n"c"\n').json
    assert two.keys() == {"schema", "id", "turn", "session", "created"}
    assert (two["turn"], two["created"]) == (2, True)
    assert shell.ok("show", "--json").json["messages"] == ["a", "b", "c"]


def test_messages_are_kept_exactly(shell: Shell) -> None:
    deep: Any = "bottom"
    for _ in range(3000):
        deep = [deep]
    text = (
        '{"big": '
        + "9" * 5000
        + ', "half": "\\ud800", "nul": "\\u0000", "float": -0.0, "z": 1, "a": 2}'
    )
    nested = "[" * 3000 + '"bottom"' + "]" * 3000
    shell.ok("save", "--messages", "-", stdin=f"[{text}, {nested}]")
    out = shell.ok("show", "--json").out
    assert nested in out
    with shell.open() as store:
        first, second = store.session("main").history
        assert list(first) == ["big", "half", "nul", "float", "z", "a"]
        assert (first["big"], first["half"], first["nul"]) == (int("9" * 5000), "\ud800", "\0")
        assert str(first["float"]) == "-0.0" and len(second) == 1


def test_a_number_that_is_not_json_is_refused_with_its_place_in_the_input(shell: Shell) -> None:
    shell.save("main", "before")
    result = shell("save", "--messages", "-", stdin='{"ok": 1}\n{"a": [1, {"b": NaN}]}\n')
    assert result.code == 2 and "messages[1].a[1].b" in result.err
    assert shell("save", "--messages", "-", stdin="[1e999]").code == 2
    assert shell.ok("status", "--json").json["turn"] == 1


def test_bad_input_does_not_make_a_store(shell: Shell, tmp_path: Path) -> None:
    place = tmp_path / "new"
    for args in (("--messages", "-"), ("--set", "x=y"), ("--expect", "zz")):
        assert shell("save", "--store", str(place), *args, stdin="[").code == 2
    assert not place.exists()


def test_keys_are_set_and_unset(shell: Shell) -> None:
    shell.ok("save", "--set", 'file="login.py"', "--set", "n=1", "--set", 'x={"deep": [1]}')
    shell.ok("save", "--set", "n=2", "--unset", "file", "--unset", "never-there")
    assert shell.ok("show", "--json").json["scratchpad"] == {"n": 2, "x": {"deep": [1]}}


def test_a_save_that_repeats_head_writes_nothing(shell: Shell) -> None:
    first = shell.ok("save", "-m", "one", "--set", "a=1", "--json").json
    moves = len(shell.ok("op", "log").lines)
    again = shell.ok("save", "-m", "one", "--set", "a=1", "--json").json
    assert again == {**first, "created": False}
    assert len(shell.ok("op", "log").lines) == moves
    assert shell.ok("save", "-m", "two", "--json").json["turn"] == 2


def test_the_first_save_makes_a_turn_even_when_empty(shell: Shell) -> None:
    assert shell.ok("save", "--json").json == {
        **shell.ok("save", "--json").json, "created": True
    }  # fmt: skip


def test_expect_saves_only_on_that_head(shell: Shell) -> None:
    first = shell.save("a", "x")
    assert shell.ok("save", "-s", "a", "--expect", first[:8], "--set", "k=1").code == 0
    late = shell("save", "-s", "a", "--expect", first, "--set", "k=2", "--json")
    assert (late.code, late.error["code"], late.out) == (4, "ref_moved", "")
    assert shell.ok("scratch", "get", "k", "-s", "a").out == "1\n"


def test_a_writer_who_is_overtaken_is_told_and_changes_nothing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from snapstore import Session

    shell.save("a", "x")
    saved = Session.save

    def overtaken(self: Session, *args: Any, **how: Any) -> Any:
        with shell.open() as store:
            other = store.session("a")
            other.history.append("faster")
            saved(other)
        return saved(self, *args, **how)

    monkeypatch.setattr(Session, "save", overtaken)
    result = shell("save", "-s", "a", "--messages", "-", "--json", stdin='["slower"]')
    assert (result.code, result.error["code"]) == (4, "ref_moved")
    assert shell.ok("show", "a", "--json").json["messages"] == ["x", "faster"]


def test_quiet_says_nothing(shell: Shell) -> None:
    result = shell.ok("save", "-q", "--set", "a=1")
    assert (result.out, result.err) == ("", "")


def test_nothing_on_stdin_or_in_a_file_is_no_list_of_messages(shell: Shell) -> None:
    for nothing in ("", "\n"):
        result = shell("save", "--messages", "-", "--json", stdin=nothing)
        assert (result.code, result.out) == (2, "") and "[]" in result.error["hint"]
    for nothing in ("", "\n", "\ufeff \n"):
        (shell.folder / "empty.json").write_text(nothing)
        result = shell("save", "--messages", "empty.json", "--json")
        assert (result.code, result.out) == (2, "") and "empty.json" in result.error["message"]
    assert shell.ok("save", "--messages", "-", "--json", stdin="[]").json["turn"] == 1
