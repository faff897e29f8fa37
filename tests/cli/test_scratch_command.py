"""snapstore scratch: keys and values beside the history."""

from __future__ import annotations

import sys

from shell import Shell


def test_set_makes_a_turn_and_get_reads_it(shell: Shell) -> None:
    made = shell.ok(
        "scratch", "set", "n=3", 'plan=["read", "write"]', "-m", "made a plan", "--json"
    )
    assert made.json["turn"] == 1
    assert shell.ok("scratch", "get", "plan").out == '["read", "write"]\n'
    assert shell.ok("log").rows[0][3] == "made a plan"
    shell.ok("scratch", "set", "n", "4", "--unset", "plan")
    assert shell.ok("show", "--json").json["scratchpad"] == {"n": 4}
    assert shell.ok("scratch", "get", "n", "@~1").out == "3\n"


def test_text_comes_as_it_is_and_bytes_come_raw(shell: Shell) -> None:
    shell.ok("scratch", "set", 'text="two\\nlines \\u00e9"')
    assert shell.ok("scratch", "get", "text").out == "two\nlines é\n"
    assert shell.ok("scratch", "get", "text", "--json").json["value"] == "two\nlines é"
    with shell.open() as store:
        session = store.session("main")
        session.scratchpad["blob"] = b"abc\n"
        session.save()
    assert shell.ok("scratch", "get", "blob").out == "abc\n"
    assert shell.ok("scratch", "get", "blob", "--json").json["value"] == {"$bytes": "YWJjCg=="}


def test_a_value_shown_on_a_terminal_has_nothing_hidden(shell: Shell) -> None:
    shell.ok("scratch", "set", 'text="\\u001b[31mred"')
    assert shell.ok("scratch", "get", "text", columns=80).out == "\\x1b[31mred\n"
    assert shell.ok("scratch", "get", "text").out == "\x1b[31mred\n"


def test_list_is_a_line_a_key(shell: Shell) -> None:
    shell.ok("scratch", "set", "b=1", 'a="x\\ty"', 'c={"k": null}')
    assert shell.ok("scratch", "list").rows == [["a", '"x\\ty"'], ["b", "1"], ["c", '{"k": null}']]
    assert shell.ok("scratch", "list", "--json").json["scratchpad"] == {
        "a": "x\ty",
        "b": 1,
        "c": {"k": None},
    }


def test_summary_is_text_for_a_prompt_of_limited_length(shell: Shell) -> None:
    shell.ok("scratch", "set", "goal=" + '"fix the login"', "notes=" + '"' + "x" * 500 + '"')
    assert shell.ok("scratch", "summary").lines[0] == "goal: fix the login"
    assert len(shell.ok("scratch", "summary", "--max-chars", "100").out) <= 101


def test_a_missing_key_is_not_found(shell: Shell) -> None:
    shell.ok("scratch", "set", "a=1")
    result = shell("scratch", "get", "b", "--json")
    assert (result.code, result.error["code"]) == (3, "not_found")
    assert "'b'" in result.error["message"]


def test_ints_of_any_size_pass(shell: Shell) -> None:
    digits = "7" * 5000
    shell.ok("scratch", "set", f"n={digits}")
    assert shell.ok("scratch", "get", "n").out == digits + "\n"
    assert sys.get_int_max_str_digits() == 0
