"""snapstore log and show: turns as lines, as a drawing, as pages and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shell import Shell, plain


def test_log_lists_turns_newest_first(two_lines: Shell) -> None:
    found = two_lines.ok("log", "a", "--json").json
    assert found["session"] == "a"
    assert [entry["turn"] for entry in found["snapshots"]] == [5, 4, 3, 2, 1]
    entry = found["snapshots"][0]
    assert entry.keys() == {
        "id", "turn", "parent", "label", "time", "messages", "files", "refs",
    }  # fmt: skip
    assert (entry["label"], entry["messages"], entry["files"]) == ("turn number 5", 1, None)
    assert entry["refs"] == ["a"] and entry["parent"] == found["snapshots"][1]["id"]
    assert entry["time"].endswith("Z")


def test_log_off_a_terminal_is_a_line_a_turn_with_fields_parted_by_tabs(two_lines: Shell) -> None:
    rows = two_lines.ok("log", "a").rows
    assert [row[1] for row in rows] == ["turn 5", "turn 4", "turn 3", "turn 2", "turn 1"]
    assert rows[0][3:] == ["turn number 5", "+1", "a"]
    assert all(two_lines.ok("show", row[0], "--json").json["label"] == row[3] for row in rows)


def test_log_is_cut_short_only_when_asked(two_lines: Shell) -> None:
    assert len(two_lines.ok("log", "a", "-n", "2").lines) == 2
    assert len(two_lines.ok("log", "a@4").lines) == 4
    assert two_lines.ok("log", "a", "-n", "0").out == ""


@pytest.mark.parametrize("command", [["log", "a"], ["op", "log"]])
def test_a_limit_may_be_any_number(two_lines: Shell, command: list[str]) -> None:
    assert two_lines.ok(*command, "-n", "9" * 30).out == two_lines.ok(*command).out
    assert two_lines(*command, "-n", "-1").code == 2


def test_log_finds_text_in_labels_and_in_messages_where_they_came_in(two_lines: Shell) -> None:
    def turns(text: str) -> list[int]:
        listed = two_lines.ok("log", "b", "--grep", text, "--json").json["snapshots"]
        return [entry["turn"] for entry in listed]

    assert turns("number 2") == [2]
    assert turns("question 2") == [2]
    assert turns("another way") == [4]
    assert turns("question 5") == []


def test_log_oneline_is_id_and_label(two_lines: Shell) -> None:
    first = two_lines.ok("log", "a", "--oneline").rows[0]
    assert first[1:] == ["(a) turn number 5"]


def test_log_all_holds_every_line_once_and_children_before_parents(two_lines: Shell) -> None:
    found = two_lines.ok("log", "--all", "--json").json
    ids = [entry["id"] for entry in found["snapshots"]]
    assert found["session"] is None and len(ids) == len(set(ids)) == 6
    for entry in found["snapshots"]:
        if entry["parent"]:
            assert ids.index(entry["id"]) < ids.index(entry["parent"])


def test_the_graph_shows_both_lines_and_where_they_part(two_lines: Shell) -> None:
    out = two_lines.ok("log", "--graph", "--all").out
    assert out.isascii() and "|/" in out
    assert [line.split()[0] for line in out.splitlines()][:2] == ["*", "|"]
    assert "(b) the other way" in out and "(a) turn number 5" in out


def test_the_graph_marks_where_the_current_session_stands(two_lines: Shell) -> None:
    two_lines.ok("switch", "b")
    first, *others = plain(two_lines.ok("log", "--graph", "--all", columns=80).lines)
    assert first.startswith("@ ") and "(b)" in first
    assert not any("@" in line for line in others)
    assert "@" not in two_lines.ok("log", "--graph", "--all").out


def test_a_graph_of_a_few_turns_says_that_there_are_more(two_lines: Shell) -> None:
    drawn = [line[0] for line in two_lines.ok("log", "a", "--graph", "-n", "2").lines]
    assert drawn == ["*", "*", "~"]


def test_the_graph_fits_the_terminal(two_lines: Shell) -> None:
    two_lines.save("b", "x", label="a label that goes on " * 10)
    lines = two_lines.ok("log", "--graph", "--all", columns=60).lines
    assert all(len(line) <= 60 for line in plain(lines))
    assert any("●" in line for line in lines)


def test_a_label_of_several_lines_stays_on_one(shell: Shell) -> None:
    shell.save("a", "x", label="one\ntwo\tthree\x1b[31m")
    assert shell.ok("log").rows[0][3] == "one\\ntwo\\tthree\\x1b[31m"


# --- show --------------------------------------------------------------------------------------

TOOLS: list[Any] = [
    {"role": "user", "content": "look at it"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hmm", "signature": "s"},
            {"type": "text", "text": "I will."},
            {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.py"}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "print(1)\n"}],
    },
    {"role": "assistant", "content": "It prints."},
]


def test_show_json_holds_the_whole_turn(two_lines: Shell) -> None:
    found = two_lines.ok("show", "a@2", "--json").json
    assert found.keys() == {
        "schema", "id", "turn", "parent", "label", "time", "messages", "scratchpad", "files",
        "pending_tool_calls", "meta",
    }  # fmt: skip
    assert [message["content"] for message in found["messages"]] == ["question 1", "question 2"]
    assert found["scratchpad"] == {"step": 2} and found["files"] is None


def test_show_tells_the_messages_of_the_turn_and_all_on_request(two_lines: Shell) -> None:
    own = two_lines.ok("show", "a@3").out
    assert "question 3" in own and "question 2" not in own and "2 earlier messages" in own
    assert "question 2" in two_lines.ok("show", "a@3", "--messages").out
    assert two_lines.ok("show", "a@3", "--scratchpad").lines == ["scratchpad", "  step: 3"]


def test_a_result_stands_below_its_call(shell: Shell) -> None:
    shell.save("a", *TOOLS)
    lines = [line.strip() for line in shell.ok("show").lines]
    at = lines.index('-> Read {"path": "a.py"}  t1')
    assert lines[at + 1 : at + 3] == ["<- #2", "print(1)"]
    assert not any(line.startswith("#2") for line in lines)


def test_a_call_without_a_result_is_told(shell: Shell) -> None:
    shell.save("a", *TOOLS[:2])
    assert "<- no result yet" in shell.ok("show").out
    waiting = shell.ok("show", "--json").json["pending_tool_calls"]
    assert waiting == [{"id": "t1", "name": "Read", "index": 1}]
    assert shell.ok("status", "--json").json["pending_tool_calls"] == waiting
    assert "Read (t1)" in shell.ok("status").out


def test_long_results_are_cut_on_a_terminal_only(shell: Shell) -> None:
    shell.save("a", {"role": "user", "content": "\n".join(f"line {n}" for n in range(500))})
    assert "line 499" in shell.ok("show").out
    cut = shell.ok("show", columns=80).out
    assert "line 10" in cut and "line 499" not in cut and "--messages" in cut
    assert "line 499" in shell.ok("show", "--messages", columns=80).out


@pytest.mark.parametrize("columns", [None, 80])
def test_message_text_never_commands_the_terminal(shell: Shell, columns: int | None) -> None:
    evil = "\x1b]0;title\x07 \x9b31m \u202e \ud800 \r"
    shell.save("a", {"role": "user" + evil, "content": evil}, label=evil, sets={"key" + evil: evil})
    for command in ("show", "log", "resume a", "status", "sessions", "log --graph"):
        out = shell.ok(*command.split(), "--color", "never", columns=columns).out
        assert not set(out) & set("\x1b\x07\x9b\u202e\r"), command
        assert out.encode()


def test_bytes_print_as_base64(shell: Shell) -> None:
    with shell.open() as store:
        session = store.session("main")
        session.scratchpad["blob"] = {"deep": [b"\x00\xff"]}
        session.save()
    assert shell.ok("show", "--json").json["scratchpad"] == {"blob": {"deep": [{"$bytes": "AP8="}]}}
    assert "2 bytes" in shell.ok("show").out


def test_colour_is_for_terminals_unless_chosen(two_lines: Shell, monkeypatch: Any) -> None:
    assert "\x1b" not in two_lines.ok("log").out
    assert "\x1b[33m" in two_lines.ok("log", columns=80).out
    assert "\x1b[33m" in two_lines.ok("log", "--color", "always").out
    assert "\x1b" not in two_lines.ok("log", "--color=never", columns=80).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in two_lines.ok("log", columns=80).out


def test_json_is_one_document_and_nothing_else_for_every_command(two_lines: Shell) -> None:
    commands = (
        "status", "sessions", "log", "show", "diff a b", "op log", "scratch list",
        "scratch summary",
        "find question", "resume", "stats", "verify", "gc", "tag", "tag v1", "switch a",
        "fork a@1 c", "rename c d", "delete d", "rewind a@2", "undo", "redo", "save --set q=1",
        "scratch set w=1", "scratch get w", "init", "tag -d v1",
    )  # fmt: skip
    for command in commands:
        out = two_lines.ok(*command.split(), "--json").out
        assert json.loads(out)["schema"] == 1, command
        assert out.count("\n") == 1, command
