"""Shell completion: the scripts, and what they are answered."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shell import Shell
from terminal import Terminal

COMMAND = Path(sys.executable).with_name("snapstore")


def completed(shell: Shell, patch: pytest.MonkeyPatch, line: str) -> list[str]:
    """What bash would be offered for the last word of a line."""
    words = line.split(" ")
    patch.setenv("COMP_WORDS", line)
    patch.setenv("COMP_CWORD", str(len(words) - 1))
    patch.setenv("_SNAPSTORE_COMPLETE", "bash_complete")
    answer = shell()
    patch.delenv("_SNAPSTORE_COMPLETE")
    assert answer.code == 0, answer
    return [line.partition(",")[2] for line in answer.lines if line]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("snapstore st", ["status", "stats"]),
        ("snapstore log --to", ["--touched"]),
        ("snapstore show tr", ["try-redis"]),
        ("snapstore diff main tr", ["try-redis"]),
        ("snapstore switch m", ["main"]),
        ("snapstore fork m", ["main"]),
        ("snapstore -s m", ["main"]),
        ("snapstore log -s t", ["try-redis"]),
        ("snapstore show main@", ["main@2", "main@1"]),
        ("snapstore show @@", ["@@2", "@@1"]),
        ("snapstore show gone@", []),
        ("snapstore show v1", ["v1.0"]),
        ("snapstore scratch get fi", ["file"]),
        ("snapstore completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_commands_options_sessions_turns_and_keys_are_completed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, line: str, expected: list[str]
) -> None:
    shell.save("try-redis", {"role": "user", "content": "a"})
    shell.save("main", {"role": "user", "content": "a"}, sets={"file": "x", "other": 1})
    shell.save("main", {"role": "user", "content": "b"})
    shell.ok("tag", "v1.0", "main@1")
    assert sorted(completed(shell, monkeypatch, line)) == sorted(expected)


def test_ids_are_completed_from_four_digits_on(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = shell.save("main", {"role": "user", "content": "a"})
    assert completed(shell, monkeypatch, f"snapstore show {saved[:3]}") == []
    for digits in (4, 5):
        assert completed(shell, monkeypatch, f"snapstore show {saved[:digits]}") == [saved]


def test_without_a_store_nothing_is_completed_and_nothing_made(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = shell.folder / "none"
    assert completed(shell, monkeypatch, f"snapstore --store {place} show m") == []
    assert not place.exists()


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_is_for_the_shell_that_was_asked_for(shell: Shell, name: str) -> None:
    script = shell.ok("completion", name).out
    assert f"_SNAPSTORE_COMPLETE={name}_complete" in script
    assert shell.ok("completion", name, "--json").json == {
        "schema": 1, "shell": name, "script": script,
    }  # fmt: skip


def test_an_unknown_shell_is_a_usage_error(shell: Shell) -> None:
    assert shell("completion", "cmd", "--json").error["code"] == "usage"


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_the_shell_can_read(shell: Shell, name: str) -> None:
    interpreter = shutil.which(name)
    if interpreter is None:
        pytest.skip(f"there is no {name} here")
    script = shell.ok("completion", name).out
    subprocess.run([interpreter, "-n"], input=script, text=True, check=True)


@pytest.fixture
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """`snapstore` is found by a shell."""
    monkeypatch.setenv("PATH", f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
@pytest.mark.usefixtures("on_the_path")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("snapstore show fix", ["fix-login\t2 turns"]),
        ("snapstore show fix-login@", ["fix-login@1\tone, two", "fix-login@2"]),
        ("snapstore sta", ["stats\t", "status\t"]),
    ],
)
def test_fish_offers_names_and_turns(shell: Shell, line: str, offered: list[str]) -> None:
    shell.save("fix-login", {"role": "user", "content": "a"}, label="one, two")
    shell.save("fix-login", {"role": "user", "content": "b"})
    script = f"snapstore completion fish | source; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True
    )
    told = done.stdout.splitlines()
    assert len(told) == len(offered)
    assert all(row.startswith(start) for row, start in zip(told, offered, strict=True)), told


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh here")
@pytest.mark.usefixtures("on_the_path")
def test_zsh_completes_names_and_turns_at_the_keyboard(shell: Shell) -> None:
    for n in range(2):
        shell.save("fix-login", {"role": "user", "content": "a"}, label=f"label: {n}")
    zsh = Terminal(shell.folder, program=[str(shutil.which("zsh")), "-f", "-i"])
    load = 'autoload -U compinit; compinit -u -D; eval "$(snapstore completion zsh)"'
    zsh.type(f"{load}; echo lo''aded\r")
    zsh.wait_for("loaded")
    zsh.type("snapstore show fix\t")
    zsh.wait_for("-login")
    zsh.type("\x7f@\t\t")
    zsh.wait_for("label: 0")
    zsh.type("\x15exit\r")
    assert zsh.end() == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_a_turn_as_one_word(shell: Shell) -> None:
    shell.save("fix-login", {"role": "user", "content": "a"})
    script = (
        'eval "$(snapstore completion bash)"\n'
        "[[ $COMP_WORDBREAKS != *@* ]] || exit 1\n"
        "COMP_WORDS=(snapstore show fix-login@); COMP_CWORD=2\n"
        "_snapstore_completion snapstore show\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": path, "COMP_WORDBREAKS": " @:"},
        cwd=shell.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "fix-login@1"
