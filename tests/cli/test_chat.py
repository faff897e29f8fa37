"""snapstore chat from a pipe: what is saved, what can be typed, and agents that misbehave."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from shell import Shell

PROGRAM = """
import json, os, subprocess, sys, time
asked = json.load(sys.stdin)
def say(*values):
    for value in values:
        print(json.dumps(value), flush=True)
"""
Agent = Callable[[str], str]


@pytest.fixture
def agent(shell: Shell) -> Agent:
    """Makes the command of an agent from Python code."""

    def make(code: str) -> str:
        path = shell.folder / "agent.py"
        path.write_text(PROGRAM + code)
        return f"{sys.executable} {path}"

    return make


def messages(shell: Shell, revision: str = "c") -> list[Any]:
    found: list[Any] = shell.ok("show", revision, "--json").json["messages"]
    return found


def roles(shell: Shell, revision: str = "c") -> list[str]:
    return [message["role"] for message in messages(shell, revision)]


def test_each_question_and_its_answer_are_one_turn(shell: Shell) -> None:
    done = shell.ok("chat", "c", stdin="hello\n\nsecond question\n")
    assert done.out == "hello\nsecond question\n"
    shown = shell.ok("show", "c", "--json").json
    assert shown["turn"] == 2 and roles(shell) == ["user", "assistant"] * 2
    assert [row[3] for row in shell.ok("log", "c").rows] == ["second question", "hello"]
    assert shell.ok("status", "--json").json["session"] == "c"


def test_the_question_is_saved_before_the_agent_is_asked(shell: Shell, agent: Agent) -> None:
    command = agent(
        "subprocess.run([sys.executable, '-m', 'snapstore_cli', 'show', 'c', '--json'],"
        " stdout=open('seen', 'w'), stdin=subprocess.DEVNULL); print('ok')"
    )
    shell.ok("chat", "c", "--agent", command, stdin="first\n")
    seen = json.loads((shell.folder / "seen").read_text())
    assert seen["turn"] == 1
    assert seen["messages"] == [{"role": "user", "content": "first"}]


def test_the_agent_sees_all_messages_and_the_scratchpad(shell: Shell, agent: Agent) -> None:
    shell.save("c", {"role": "user", "content": "old"}, sets={"file": "a.py"})
    command = agent("print(json.dumps(asked))")
    shell.ok("chat", "c", "--agent", command, stdin="new\n")
    told = json.loads(messages(shell)[-1]["content"])
    assert [m["content"] for m in told["messages"]] == ["old", "new"]
    assert told["scratchpad"] == {"file": "a.py"}


def test_a_resumed_history_ends_with_the_message_that_was_saved(shell: Shell) -> None:
    shell.ok("chat", "c", stdin="hello\n")
    last = messages(shell)[-1]
    done = shell.ok("chat", "c", "--resume", stdin="more\n")
    assert messages(shell)[1] == last
    assert done.err.startswith("c: turn 1 (") and "2 messages" in done.err


def test_calls_and_results_of_an_agent_are_messages_and_stay_paired(
    shell: Shell, agent: Agent
) -> None:
    call = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {}}],
    }
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a.py"}],
    }
    command = agent(f"say({call!r}, {result!r}, {{'text': 'one '}}, {{'text': 'file'}})")
    done = shell.ok("chat", "c", "--agent", command, stdin="what is there?\n")
    assert messages(shell)[1:] == [call, result, {"role": "assistant", "content": "one file"}]
    assert done.out == "-> ls {}\n<- a.py\none file\n"
    assert shell.ok("status", "--json").json["pending_tool_calls"] == []


# --- which session -------------------------------------------------------------------------------


def test_without_a_name_the_session_saved_last_is_resumed_but_no_task(shell: Shell) -> None:
    for name in ("older", "newest"):
        shell.save(name, "x")
    (shell.folder / "t.toml").write_text('name = "t"\n[[phase]]\nname = "p"\nrun = "true"\n')
    shell.ok("task", "run", "t.toml")
    for option in ("--resume", "--continue"):
        shell.ok("switch", "older")
        shell.ok("chat", option, stdin=f"{option}\n")
        assert messages(shell, "newest")[-1]["content"] == option
    refused = shell("chat", "task/t", stdin="hello\n")
    assert refused.code == 2 and "record of a task" in refused.err


def test_without_any_of_it_the_current_session_goes_on(shell: Shell) -> None:
    shell.ok("chat", stdin="first\n")
    assert len(messages(shell, "main")) == 2
    shell.save("other", "x")
    shell.ok("chat", stdin="second\n")
    assert len(messages(shell, "other")) == 3


def test_what_is_not_there_cannot_be_resumed(shell: Shell) -> None:
    assert shell("chat", "nothing", "--resume", stdin="x\n").code == 3
    assert shell("chat", "--continue", stdin="x\n").code == 3
    assert shell("chat", "bad name", stdin="x\n").code == 2


def test_an_empty_input_saves_nothing(shell: Shell) -> None:
    shell.ok("chat", "c", stdin="\n  \n")
    assert shell.ok("sessions", "--json").json["sessions"] == []


def test_with_json_stdout_is_one_document(shell: Shell, agent: Agent) -> None:
    done = shell.ok(
        "chat", "c", "--json", "--agent", agent("print('hi')"), stdin="q\n/log\n/help\n"
    )
    assert done.json["turn"] == 1 and done.json["session"] == "c"
    assert [m["role"] for m in done.json["messages"]] == ["user", "assistant"]


# --- slash commands ------------------------------------------------------------------------------


def test_rewind_and_undo_go_by_whole_turns(shell: Shell, agent: Agent) -> None:
    shell.ok("chat", "c", stdin="one\ntwo\nthree\n/rewind 1\nanother way\n/undo\n/undo\n")
    assert [m["content"] for m in messages(shell)][::2] == ["one", "two", "three"]
    shell.ok("chat", "c", stdin="/undo 2\n/redo\nfour\n")
    assert [m["content"] for m in messages(shell)][::2] == ["one", "two", "four"]
    shell.ok("chat", "c", stdin="/undo 2\n")
    assert [m["content"] for m in messages(shell)] == ["one", "one"]


def test_the_first_turn_can_be_undone_too(shell: Shell) -> None:
    shell.ok("chat", "c", stdin="one\n/undo\n/redo\n/undo\nother\n")
    assert [m["content"] for m in messages(shell)] == ["other", "other"]


def test_fork_and_diff_know_other_sessions(shell: Shell) -> None:
    done = shell.ok("chat", "c", stdin="one\n/fork side\ntwo\n/diff side\n")
    assert len(messages(shell, "side")) == 2 and len(messages(shell)) == 4
    assert "both begin with the same 2 messages" in done.out and "- " in done.out


def test_scratch_sets_shows_and_removes_keys(shell: Shell) -> None:
    done = shell.ok("chat", "c", stdin='/scratch n=3\n/scratch file=login.py\n/scratch l=["a"]\n'
                    "/scratch\n/scratch n=\n")  # fmt: skip
    assert done.out == 'file: "login.py"\nl: ["a"]\nn: 3\n'
    shown = shell.ok("show", "c", "--json").json
    assert shown["scratchpad"] == {"file": "login.py", "l": ["a"]} and shown["turn"] == 4


def test_on_a_terminal_what_an_agent_did_is_marked(shell: Shell, agent: Agent) -> None:
    command = agent(
        'import json; print(json.dumps({"role": "assistant", "content": ['
        '{"type": "text", "text": "so\x1b[2J"},'
        '{"type": "tool_use", "id": "t", "name": "ls", "input": {}}]}))'
    )
    told = shell("chat", "c", "--agent", command, "--no-input", stdin="x\n", columns=60)
    assert "so\\x1b[2J\n\x1b[35m→\x1b[0m ls {}\n" in told.out


def test_log_lists_the_turns_and_quit_ends(shell: Shell) -> None:
    done = shell.ok("chat", "c", stdin="one\ntwo\n/log 1\n/quit\nnever asked\n")
    assert len(done.lines) == 3 and done.lines[2].split("\t")[1] == "turn 2"
    assert len(messages(shell)) == 4


def test_a_question_may_begin_with_a_slash(shell: Shell) -> None:
    shell.ok("chat", "c", stdin="//etc/passwd is what?\n")
    assert messages(shell)[0]["content"] == "/etc/passwd is what?"


@pytest.mark.parametrize(
    ("line", "code"),
    [("/nothing", 2), ("/rewind", 2), ("/rewind 9", 3), ("/rewind x", 3), ("/undo x", 2),
     ("/redo", 1), ("/fork", 2), ("/fork c", 6), ("/diff", 2), ("/diff x", 3), ("/scratch x", 2),
     ("/retry", 2), ("/repair", 2)],
)  # fmt: skip
def test_what_cannot_be_done_is_an_error_and_the_chat_goes_on(
    shell: Shell, line: str, code: int
) -> None:
    done = shell("chat", "c", stdin=f"one\n{line}\ntwo\n")
    assert done.code == code and "error: " in done.err
    assert len(messages(shell)) == 4


def test_calls_without_results_are_told_and_repaired_only_when_asked(shell: Shell) -> None:
    call = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "ls", "input": {}}],
    }
    shell.save("c", {"role": "user", "content": "q"}, call)
    done = shell.ok("chat", "c", stdin="/repair answer\n")
    assert "1 tool call there without a result" in done.err
    assert messages(shell)[2]["content"][0]["tool_use_id"] == "t1"


# --- agents that misbehave -----------------------------------------------------------------------


def test_a_failed_agent_leaves_the_question_and_retry_asks_it_again(
    shell: Shell, agent: Agent
) -> None:
    done = shell("chat", "c", "--agent", "false", stdin="lost?\n")
    assert done.code == 1 and "the agent failed: exit status 1" in done.err
    assert messages(shell) == [{"role": "user", "content": "lost?"}]
    assert shell.ok("log", "c").rows[0][3] == "lost? (failed)"
    again = shell.ok("chat", "c", "--agent", agent("print('found')"), stdin="/retry\n")
    assert "has no answer yet" in again.err
    shown = shell.ok("show", "c", "--json").json
    assert shown["turn"] == 1 and shown["label"] == "lost?"
    assert shown["messages"][1] == {"role": "assistant", "content": "found"}


@pytest.mark.parametrize(
    ("code", "why", "kept"),
    [
        ("sys.exit(3)", "exit status 3", []),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL", []),
        ("pass", "answered nothing", []),
        ("say({'error': 'no credit'})", "no credit", []),
        ("say({'text': 'half an ans'}); sys.exit(1)", "exit status 1", ["half an ans"]),
        ("print('half'); sys.stdout.flush(); os.abort()", "SIGABRT", ["half"]),
        ("say({'role': 'assistant', 'content': 'x'}); print('oops')", "line 2", ["x"]),
    ],
)
def test_what_came_of_a_failed_answer_is_kept_and_marked(
    shell: Shell, agent: Agent, code: str, why: str, kept: list[str]
) -> None:
    done = shell("chat", "c", "--agent", agent(code), stdin="q\nnext\n")
    assert done.code == 1 and why in done.err
    found = messages(shell)
    assert [m["content"] for m in found] == ["q", *kept, "next", *kept]
    assert all(m.get("interrupted") for m in found if m["content"].startswith("half"))


def test_an_agent_that_never_ends_is_ended_when_its_time_is_up(shell: Shell, agent: Agent) -> None:
    for code in ("time.sleep(60)", "say({'text': 'x'}); os.close(1); time.sleep(60)"):
        done = shell("chat", "c", "--timeout", "0.5", "--agent", agent(code), stdin="q\n")
        assert done.code == 1 and "did not finish within 0.5 s" in done.err


def test_an_agent_that_says_too_much_is_ended(
    shell: Shell, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snapstore_cli.chat.program.MOST_OUTPUT", 1 << 20)
    command = agent("while True: sys.stdout.write('x' * 65536)")
    done = shell("chat", "c", "--agent", command, stdin="q\n")
    assert done.code == 1 and "more than 1.0 MB" in done.err
    assert len(messages(shell)) == 2


def test_a_long_answer_and_a_long_history_pass(shell: Shell, agent: Agent) -> None:
    shell.save("c", {"role": "user", "content": "x" * 3_000_000})
    command = agent("sys.stdout.write('y' * 2_000_000)")
    shell.ok("chat", "c", "--agent", command, stdin="q\n")
    assert len(messages(shell)[-1]["content"]) == 2_000_000
    shell.ok("chat", "c", "--agent", "echo did not read", stdin="q\n")
    assert messages(shell)[-1]["content"] == "did not read"


def test_who_saves_to_the_same_session_meanwhile_loses_nothing(shell: Shell, agent: Agent) -> None:
    other = (
        "subprocess.run([sys.executable, '-m', 'snapstore_cli', 'save', '-qs', 'c',"
        " '--messages', '-'], input=b'[\"other\"]')"
    )
    done = shell.ok("chat", "c", "--agent", agent(f"{other}; print('mine')"), stdin="q\n")
    assert "goes on as c+1" in done.err
    assert messages(shell)[-1] == "other"
    assert [m["content"] for m in messages(shell, "c+1")] == ["q", "mine"]


def test_bytes_that_are_no_text_are_kept(shell: Shell) -> None:
    shell.ok("chat", "c", stdin=b"caf\xe9\n")
    with shell.open() as store:
        assert store.session("c").history[0]["content"] == "caf\udce9"


def test_from_a_pipe_it_says_that_the_echo_answers_and_how_else_to_go_on(shell: Shell) -> None:
    assert "--agent CMD" in shell.ok("chat", "c", stdin="hi\n").err
    failed = shell("chat", "c", "--agent", "false", stdin="lost?\n").err
    assert "snapstore resume c" in failed and "echo" not in failed
