"""snapstore find: a text anywhere, told once, where it came in."""

from __future__ import annotations

import json
from typing import Any

from shell import Shell, plain


def found(shell: Shell, *args: str) -> list[Any]:
    listed: list[Any] = json.loads(shell("find", *args, "--json").out)["matches"]
    return listed


def test_each_message_is_found_once_with_the_turn_that_brought_it_in(two_lines: Shell) -> None:
    two_lines.ok("fork", "a@5", "0-sorts-first")
    matches = found(two_lines, "question 2")
    assert [(m["session"], m["turn"], m["where"]) for m in matches] == [("a", 2, "messages[1]")]
    assert matches[0]["text"] == "question 2"
    assert matches[0]["id"] == two_lines.ok("show", "a@2", "--json").json["id"]


def test_prompts_calls_results_labels_and_the_scratchpad_are_searched(shell: Shell) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "grep needle-call"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "needle-result"}
    shell.save(
        "a",
        {"role": "user", "content": "needle-prompt"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        label="needle-label",
        sets={"k": {"deep": ["needle-pad"]}},
    )
    where = {
        match["text"].split("needle-")[1][:4]: match["where"] for match in found(shell, "needle-")
    }
    assert where == {
        "labe": "label",
        "prom": "messages[0]",
        "call": "messages[1]",
        "resu": "messages[2]",
        "pad": "scratchpad:k",
    }


def test_a_scratchpad_value_is_found_where_it_changed(shell: Shell) -> None:
    shell.save("a", sets={"k": "needle"})
    shell.save("a", "x", sets={"other": 1})
    shell.save("a", "y", sets={"k": "needle again"})
    assert [m["turn"] for m in found(shell, "needle")] == [1, 3]


def test_case_counts_unless_told_otherwise(two_lines: Shell) -> None:
    assert found(two_lines, "ANOTHER") == []
    assert len(found(two_lines, "-i", "ANOTHER")) == 1


def test_text_is_no_pattern(shell: Shell) -> None:
    shell.save("a", "f(x) = a.b*", "fxx")
    assert [m["where"] for m in found(shell, "f(x)")] == ["messages[0]"]


def test_a_session_can_be_searched_alone(two_lines: Shell) -> None:
    assert {m["session"] for m in found(two_lines, "o")} == {"a", "b"}
    assert {m["session"] for m in found(two_lines, "question", "-s", "b")} == {"b"}
    assert two_lines("find", "x", "-s", "nobody").code == 3


def test_an_empty_text_is_no_text_to_find(two_lines: Shell) -> None:
    refused = two_lines("find", "")
    assert (refused.code, refused.out) == (2, "") and "empty" in refused.err


def test_no_more_lines_are_told_than_are_asked_for(two_lines: Shell) -> None:
    every = two_lines.ok("find", "question").lines
    assert len(every) == 5
    assert two_lines.ok("find", "question", "-n", "2").lines == every[:2]
    assert len(found(two_lines, "question", "--limit", "3")) == 3


def test_nothing_found_is_the_answer_no(two_lines: Shell) -> None:
    result = two_lines("find", "never said")
    assert (result.code, result.out) == (1, "")
    assert two_lines("find", "never said", "--json").json["matches"] == []


def test_lines_are_whole_off_a_terminal_and_fit_one_with_the_match_in_it(shell: Shell) -> None:
    shell.save("a", {"role": "user", "content": "before " * 40 + "needle" + " after" * 40})
    assert shell.ok("find", "needle").rows[0][3] == "before " * 40 + "needle" + " after" * 40
    line = plain(shell.ok("find", "needle", columns=70).lines)[0]
    assert len(line) <= 70 and "needle" in line and "…" in line
    assert "\x1b[1;31mneedle\x1b[0m" in shell.ok("find", "needle", columns=70).out


def test_a_name_of_two_lines_is_told_on_one(shell: Shell) -> None:
    (shell.folder / "work").mkdir()
    (shell.folder / "work" / "two\nlines").write_text("needle")
    shell.save("a", sets={"two\nlines": "needle"})
    shell.ok("save", "-s", "a", "--worktree", "work")
    lines = shell.ok("find", "needle").lines
    assert [line.split("\t")[1] for line in lines] == [
        "scratchpad:two\\nlines",
        "files:two\\nlines",
    ]
