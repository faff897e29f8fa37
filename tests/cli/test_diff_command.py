"""snapstore diff: what both hold, what each did, what differs."""

from __future__ import annotations

import re

import pytest
from shell import Shell, plain


def test_the_document_says_base_both_sides_and_the_scratchpad(two_lines: Shell) -> None:
    found = two_lines.ok("diff", "a", "b", "--json").json
    assert found["base"]["turn"] == 3 and found["equal"] is False and found["files"] is None
    assert [turn["turn"] for turn in found["left"]["turns"]] == [4, 5]
    assert [turn["label"] for turn in found["right"]["turns"]] == ["the other way"]
    assert [m["content"] for m in found["left"]["messages"]] == ["question 4", "question 5"]
    assert [m["content"] for m in found["right"]["messages"]] == ["another way"]
    assert found["scratchpad"] == {
        "added": {"only_b": True},
        "removed": {},
        "changed": {"step": [5, 3]},
    }
    assert found["left"]["head"] == two_lines.ok("show", "a", "--json").json["id"]


def test_the_page_names_what_is_shared_and_what_each_side_did(two_lines: Shell) -> None:
    out = two_lines.ok("diff", "a", "b").out
    assert "both hold 3 turns, up to turn 3 'turn number 3'" in out
    left, right = out.split("+++ b")
    assert "--- a" in left and "-   user: question 5" in left and "another way" not in left
    assert "+   user: another way" in right and "+ only_b: true" in right
    assert re.search(r"~ step\n  - 5\n  \+ 3\n", right)


def test_the_page_shows_tool_calls_with_their_arguments(two_lines: Shell) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    thought = {"type": "thinking", "thinking": "hmm", "signature": "s"}
    two_lines.save("b", {"role": "assistant", "content": [thought, call]})
    two_lines.save("b", {"role": "assistant", "content": [{"type": "text", "text": "Now"}, call]})
    right = two_lines.ok("diff", "a", "b").out.split("+++ b")[1]
    said = [line[2:].strip() for line in right.splitlines() if line.startswith("+   ")]
    run = '-> Bash {"command": "ls"}'
    assert said == ["user: another way", "assistant:", run, "assistant: Now", run]


def test_b_is_the_current_session_when_it_is_not_given(two_lines: Shell) -> None:
    assert two_lines.ok("diff", "a").out == two_lines.ok("diff", "a", "b").out


def test_exit_code_tells_whether_they_differ_in_what_was_asked(two_lines: Shell) -> None:
    assert two_lines("diff", "a", "b", "--exit-code").code == 1
    assert two_lines("diff", "a", "a", "--exit-code").code == 0
    two_lines.ok("fork", "a", "c")
    two_lines.save("c", sets={"step": 9})
    assert two_lines("diff", "a", "c", "--exit-code", "--only", "messages").code == 0
    assert two_lines("diff", "a", "c", "--exit-code", "--only", "messages,scratchpad").code == 1


def test_stat_gives_numbers(two_lines: Shell) -> None:
    assert two_lines.ok("diff", "a", "b", "--stat").lines == [
        "turns       3 shared, 2 only in a, 1 only in b",
        "messages    3 shared, 2 only in a, 1 only in b",
        "scratchpad  1 added, 0 removed, 1 changed",
    ]


def test_stat_is_a_table_on_a_terminal(two_lines: Shell) -> None:
    told = plain(two_lines.ok("diff", "a", "b", "--stat", columns=80).lines)
    assert [row.split() for row in told] == [
        ["shared", "a", "b"],
        ["turns", "3", "2", "1", "██", "█"],
        ["messages", "3", "2", "1", "██", "█"],
        [],
        ["added", "removed", "changed"],
        ["scratchpad", "1", "0", "1"],
    ]
    assert len({row.index("b") for row in told[:1]} | {row.index("1") for row in told[1:3]}) == 1
    for part, rows in (("messages", 3), ("scratchpad", 2), ("files", 0)):
        only = two_lines.ok("diff", "a", "b", "--stat", "--only", part, columns=80).lines
        assert len(only) == rows


def test_who_speaks_and_what_is_called_stand_out(two_lines: Shell) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    two_lines.save("b", {"role": "assistant", "content": [{"type": "text", "text": "Now"}, call]})
    for how in ((), ("--side-by-side",)):
        told = two_lines.ok("diff", "a", "b", *how, columns=80).out
        assert "\x1b[1;34m  assistant:\x1b[0m Now" in told
        assert "\x1b[35m    → Bash\x1b[0m" in told


def test_only_limits_the_page(two_lines: Shell) -> None:
    out = two_lines.ok("diff", "a", "b", "--only", "scratchpad").out
    assert "only_b" in out and "another way" not in out
    assert "only_b" not in two_lines.ok("diff", "a", "b", "--only", "messages").out


def test_an_unknown_part_is_a_usage_error(two_lines: Shell) -> None:
    result = two_lines("diff", "a", "b", "--only", "messages,notes")
    assert result.code == 2 and "notes" in result.err


def test_changed_text_is_a_unified_diff(shell: Shell) -> None:
    shell.save("a", "x", sets={"plan": "one\ntwo\nthree\n"})
    shell.save("a", "y", sets={"plan": "one\n2\nthree\n"})
    lines = shell.ok("diff", "a@1", "a@2").lines
    assert "  -two" in lines and "  +2" in lines and any("@@" in line for line in lines)


def test_messages_that_a_later_turn_changed_are_compared_by_their_text(shell: Shell) -> None:
    shell.save(
        "a", {"role": "user", "content": "the first wording"}, {"role": "user", "content": "z"}
    )
    with shell.open() as store:
        session = store.session("a")
        session.history[0] = {"role": "user", "content": "the second wording"}
        session.save()
    lines = shell.ok("diff", "a@1", "a@2").lines
    assert "-the first wording" in lines and "+the second wording" in lines


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_two_columns_fit_the_terminal(two_lines: Shell, columns: int) -> None:
    two_lines.save("b", {"role": "user", "content": "words and more words " * 12})
    how = ("diff", "a", "b", "--side-by-side", "--color", "never")
    lines = two_lines.ok(*how, columns=columns).lines
    rows = [line for line in lines if "│" in line]
    assert rows and all(len(line) <= columns for line in rows)
    assert len({row.index("│") for row in rows}) == 1
    assert " ".join(row.split("│")[1].strip() for row in rows).count("words and more words") == 12


def test_sessions_that_share_no_turn_are_told_so(shell: Shell) -> None:
    shell.save("a", "same", "left")
    shell.save("b", "same", "right")
    found = shell.ok("diff", "a", "b", "--json").json
    assert found["base"] is None
    assert (found["left"]["messages"], found["right"]["messages"]) == (["left"], ["right"])
    out = shell.ok("diff", "a", "b").out
    assert "no turn in common; both begin with the same 1 message" in out
    assert "-   left" in out and "+   right" in out and "  same" not in out


def test_an_unchanged_element_of_a_list_is_no_difference(shell: Shell) -> None:
    shell.save("a", sets={"plan": ["read", "write"]})
    shell.save("a", sets={"plan": ["read", "write", "test"]})
    told = [line.strip() for line in shell.ok("diff", "a@1", "a@2").lines]
    assert '+- "test"' in told and '- "write"' in told
    assert '-- "write"' not in told and not any("No newline" in line for line in told)


def test_a_turn_compared_with_itself_hints_to_name_two(two_lines: Shell) -> None:
    assert "diff b B" in two_lines.ok("diff", "b").err
    assert two_lines.ok("diff", "b", "b").err == ""


def test_without_messages_none_are_said_to_be_the_same(shell: Shell) -> None:
    shell.save("a")
    shell.ok("fork", "a", "b")
    shell.save("b", {"role": "user", "content": "hi"})
    assert "0 messages" not in shell.ok("diff", "a", "b").out


def test_wrapped_lines_stay_as_far_in_as_the_first(two_lines: Shell) -> None:
    two_lines.save("a", {"role": "user", "content": "word " * 60})
    told = two_lines.ok("diff", "a", "b", "--side-by-side").lines
    wrapped = [line for line in told if line.lstrip().startswith("word word")]
    assert len(wrapped) > 3 and all(line.startswith("  word") for line in wrapped)
