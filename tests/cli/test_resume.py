"""snapstore resume: what a harness needs to go on."""

from __future__ import annotations

import json

import pytest
from shell import Shell, plain

CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}


def test_the_document_holds_what_is_needed_to_go_on(two_lines: Shell) -> None:
    two_lines.save("a", {"role": "assistant", "content": [CALL]})
    told = two_lines.ok("resume", "a", "--json").json
    assert told.keys() == {
        "schema", "session", "id", "turn", "messages", "scratchpad", "pending_tool_calls",
    }  # fmt: skip
    assert (told["session"], told["turn"], len(told["messages"])) == ("a", 6, 6)
    assert told["pending_tool_calls"] == [{"id": "t1", "name": "Bash", "index": 5}]
    assert told["scratchpad"] == {"step": 5}


def test_without_a_revision_it_is_the_session_saved_last(two_lines: Shell) -> None:
    assert two_lines.ok("resume", "--json").json["session"] == "b"
    two_lines.save("a", "newer")
    two_lines.ok("switch", "b")
    two_lines.ok("rewind", "b@1")
    assert two_lines.ok("resume", "--json").json["session"] == "a"
    two_lines.ok("delete", "a")
    assert two_lines.ok("resume", "--json").json["session"] == "b"


def test_a_terminal_offers_the_sessions_to_pick_from(two_lines: Shell) -> None:
    result = two_lines.ok("resume", stdin="2\n", columns=80)
    assert "1  " in result.err and "turn 5 of a" in result.out
    assert two_lines("resume", stdin="", columns=80).code == 130
    assert "turn 4 of b" in two_lines.ok("resume", "--no-input", columns=80).out


def test_the_page_ends_with_how_to_go_on(two_lines: Shell) -> None:
    two_lines.save("a", {"role": "assistant", "content": [CALL]})
    out = two_lines.ok("resume", "a").out
    assert "the last 4 of 6 messages" in out and "question 2" not in out
    assert "Bash (t1) in message #5 has no result yet" in out
    assert out.splitlines()[-1] == "go on: snapstore save -s a --messages FILE"


@pytest.mark.parametrize("shape", ["anthropic", "openai"])
def test_a_format_prints_the_array_of_messages_as_stored(two_lines: Shell, shape: str) -> None:
    result = two_lines.ok("resume", "a@2", "--format", shape)
    assert json.loads(result.out) == [
        {"role": "user", "content": "question 1"},
        {"role": "user", "content": "question 2"},
    ]
    assert result.err == ""


def test_messages_of_another_shape_are_told_in_the_one_that_is_asked_for(shell: Shell) -> None:
    shell.save("a", {"role": "user", "content": "list"}, {"role": "assistant", "content": [CALL]})
    call = json.loads(shell.ok("resume", "a", "--format", "openai").out)[1]["tool_calls"][0]
    assert (call["id"], call["function"]["name"]) == (CALL["id"], CALL["name"])


def test_what_a_format_cannot_carry_is_left_out_with_a_warning(shell: Shell) -> None:
    shell.save("a", {"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"})
    result = shell.ok("resume", "a", "--format", "anthropic")
    assert json.loads(result.out) == [{"role": "user", "content": "hi"}]
    assert "not carried: 1 system and developer messages" in result.err
    assert len(json.loads(shell.ok("resume", "a", "--format", "openai").out)) == 2


@pytest.mark.parametrize(("program", "first"), [("claude-code", "user"), ("codex", "session_meta")])
def test_a_program_is_given_a_transcript_of_its_own(shell: Shell, program: str, first: str) -> None:
    shell.save("a", {"role": "user", "content": "hi"})
    rows = [json.loads(line) for line in shell.ok("resume", "a", "--format", program).lines]
    assert rows[0]["type"] == first


def test_a_store_without_sessions_has_nothing_to_resume(shell: Shell) -> None:
    assert shell("resume").code == 3


def test_the_picker_takes_a_number_or_a_name_and_tells_of_more(shell: Shell) -> None:
    for number in range(17):
        shell.save(f"s{number}", label=f"label {number}")
    picked = shell.ok("resume", stdin="2\n", columns=80)
    assert "2 more: type a name" in picked.err and "turn 1 of s15" in "".join(plain(picked.lines))
    named = shell.ok("resume", stdin="nope\ns0\n", columns=80)
    assert "'nope'" in named.err and "turn 1 of s0" in "".join(plain(named.lines))


def test_a_task_goes_on_by_running_it(shell: Shell) -> None:
    shell.save("task/t")
    assert "snapstore task run FILE" in shell.ok("resume", "task/t").out


def test_the_beginning_of_one_name_is_enough_for_a_hint(shell: Shell) -> None:
    shell.save("remove-agent-version-from-the-documents")
    assert "remove-agent-version-from-the-documents" in shell("resume", "remove-agent-v").err
