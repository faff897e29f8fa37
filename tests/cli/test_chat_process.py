"""snapstore chat as a process: killed at any moment, interrupted, and on a terminal."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell import Shell
from terminal import COMMAND, Terminal, kill_after

AGENT = """
import json, pathlib, sys, time
asked = json.load(sys.stdin)
print(json.dumps({"text": "so far"}), flush=True)
pathlib.Path("asked").write_text(str(len(asked["messages"])))
time.sleep(float(sys.argv[1]))
print(json.dumps({"text": " so good"}), flush=True)
"""


@pytest.fixture
def agent(shell: Shell) -> str:
    """The command of an agent that says half of its answer, and the rest after some seconds."""
    path = shell.folder / "agent.py"
    path.write_text(AGENT)
    return f"{sys.executable} {path}"


def start(shell: Shell, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "chat", *words],
        cwd=shell.folder,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for_end(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a chat; one that does not end is made to tell where it stands."""
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        raise AssertionError(process.communicate(timeout=60)[1].decode()) from None
    return process.returncode


def wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.005)


def contents(shell: Shell, revision: str = "c") -> list[str]:
    return [m["content"] for m in shell.ok("show", revision, "--json").json["messages"]]


def test_killed_between_question_and_answer_the_question_is_there(shell: Shell, agent: str) -> None:
    process = start(shell, "c", "--agent", f"{agent} 60")
    assert process.stdin is not None
    process.stdin.write(b"what now?\n")
    process.stdin.flush()
    wait_for(shell.folder / "asked")
    kill_after(process, 0)
    assert contents(shell) == ["what now?"]
    resumed = shell.ok("chat", "c", "--resume", "--agent", f"{agent} 0", stdin="/retry\n")
    assert "no answer yet" in resumed.err
    assert contents(shell) == ["what now?", "so far so good"]
    assert shell.ok("show", "c", "--json").json["turn"] == 1


def test_killed_at_random_moments_nothing_that_was_printed_is_lost(shell: Shell) -> None:
    rng = random.Random(4)
    printed: list[str] = []
    for n in range(6):
        process = start(shell, "c")
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(f"q{n}.{k}\n" for k in range(2000)).encode())
        process.stdin.flush()
        out = process.stdout.readline()
        time.sleep(rng.uniform(0, 0.2))
        process.kill()
        out += process.stdout.read()
        process.communicate(timeout=60)
        # A line is whole when its turn is saved.
        printed += out.decode().split("\n")[:-1]
    answers = contents(shell)
    assert len(printed) > 10
    saved = iter(answers)
    assert all(line in saved for line in printed)
    assert shell.ok("verify", "--json").json["ok"]


def test_ctrl_c_keeps_what_came_and_marks_it(shell: Shell, agent: str) -> None:
    process = start(shell, "c", "--agent", f"{agent} 60")
    assert process.stdin is not None
    process.stdin.write(b"q\nnot asked any more\n")
    process.stdin.flush()
    wait_for(shell.folder / "asked")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert wait_for_end(process) == 130
    shown = shell.ok("show", "c", "--json").json
    assert shown["messages"] == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "so far", "interrupted": True},
    ]
    assert shown["label"] == "q (interrupted)"


def test_an_agent_gets_its_answer_to_a_reader_as_it_comes(shell: Shell, agent: str) -> None:
    process = start(shell, "c", "--agent", f"{agent} 60")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"q\n")
    process.stdin.flush()
    assert process.stdout.read(6) == b"so far"
    kill_after(process, 0)


# --- on a terminal -------------------------------------------------------------------------------


@pytest.mark.parametrize("without", ["", "prompt_toolkit"])
def test_a_chat_on_a_terminal(shell: Shell, agent: str, without: str) -> None:
    terminal = Terminal(shell.folder, "chat", "c", "--agent", f"{agent} 0", without=without)
    terminal.wait_for("c 1>")
    terminal.type("hello\r")
    terminal.wait_for("so far so good")
    terminal.wait_for("c 2>")
    terminal.type("never mind")
    terminal.type_until("\x03", "Ctrl-D or /quit ends")
    terminal.wait_for("c 2>")
    terminal.type("/nothing\r")
    terminal.wait_for("there is no command /nothing")
    terminal.wait_for("c 2>")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert contents(shell) == ["hello", "so far so good"]


def test_ctrl_c_on_a_terminal_ends_the_answer_and_the_chat_goes_on(
    shell: Shell, agent: str
) -> None:
    terminal = Terminal(shell.folder, "chat", "c", "--agent", f"{agent} 60")
    terminal.wait_for("c 1>")
    terminal.type("hello\r")
    terminal.wait_for("so far")
    terminal.type("\x03")
    terminal.wait_for("interrupted; what came is saved")
    terminal.wait_for("c 2>")
    terminal.type("/quit\r")
    assert terminal.end() == 0
    assert contents(shell) == ["hello", "so far"]


def test_tab_completes_commands_and_names(shell: Shell) -> None:
    pytest.importorskip("prompt_toolkit")
    shell.save("fix-login", {"role": "user", "content": "x"})
    terminal = Terminal(shell.folder, "chat", "c")
    terminal.wait_for("c 1>")
    terminal.type("hello\r")
    terminal.wait_for("c 2>")
    terminal.type("/di\t")
    terminal.wait_for("ff")
    terminal.type(" fix\t")
    terminal.wait_for("-login")
    terminal.type("\r")
    terminal.wait_for("+++ fix-login")
    terminal.wait_for("c 2>")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_resume_on_a_terminal_offers_the_sessions_and_shows_the_last_messages(
    shell: Shell,
) -> None:
    for name in ("one", "two"):
        shell.save(name, {"role": "user", "content": f"hello from {name}"})
    terminal = Terminal(shell.folder, "chat", "--resume")
    terminal.wait_for("session [1]")
    terminal.type("2\r")
    terminal.wait_for("hello from one")
    terminal.wait_for("one 2>")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_an_answer_cannot_drive_the_terminal(shell: Shell) -> None:
    terminal = Terminal(shell.folder, "chat", "c", "--agent", "printf '\\033]0;owned\\007'")
    terminal.wait_for("c 1>")
    terminal.type("hello\r")
    terminal.wait_for("\\x1b]0;owned\\x07")
    terminal.wait_for("c 2>")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert json.dumps(contents(shell)[1]) == '"\\u001b]0;owned\\u0007"'
