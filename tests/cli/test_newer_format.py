"""A store of a format that this version does not know: every command refuses it and leaves it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from blake3 import blake3
from shell import Shell

from snapstore_cli.main import COMMANDS

TASK = 'name = "t"\n[[phase]]\nname = "p"\nrun = "true"\n'

ARGUMENTS = {
    "save": ["-m", "label", "--set", "k=1"],
    "switch": ["a"],
    "fork": ["a@1", "other"],
    "rename": ["a", "other"],
    "delete": ["a"],
    "tag": ["name", "a"],
    "scratch": ["list"],
    "diff": ["a@1", "a@2"],
    "find": ["question"],
    "rewind": ["a@1"],
    "restore": ["a@1"],
    "op": ["log"],
    "chat": ["a", "--agent", "true"],
    "task": ["run", "task.toml"],
    "import": ["said.jsonl"],
    "export": ["a", "--format", "messages"],
    "push": ["other-store"],
    "pull": ["other-store"],
    "remote": ["add", "name", "other-store"],
    "purge": ["--match", "question", "--apply"],
    "repair": ["--apply"],
    "gc": ["--apply", "--grace", "0"],
    "forget": ["--keep-last", "1"],
    "recover": [],
    "resume": ["a"],
}
"""What a command needs to do something; nothing for those that are not here."""

ELSEWHERE = {"tour", "completion", "hooks"}
"""Commands that touch no store, or one of their own."""
IN_THE_BACKGROUND = "hook"
"""What a harness runs must not stop it: it fails without a word on stdout, and exits with 0."""


def names() -> Iterator[str]:
    for group in COMMANDS.values():
        for command in group:
            if command.name not in (*ELSEWHERE, IN_THE_BACKGROUND):
                yield command.name


@pytest.fixture
def full(shell: Shell) -> Shell:
    """A store with something in it, and beside it what commands work with."""
    for n in range(3):
        shell.save("a", {"role": "user", "content": f"question {n}"})
    shell.ok("switch", "a")
    said = json.dumps({"role": "user", "content": "hi"}) + "\n"
    (shell.folder / "said.jsonl").write_text(said)
    (shell.folder / "task.toml").write_text(TASK)
    shell.ok("init", "other-store")
    return shell


def of_a_later_version(store: Path) -> None:
    (store / "FORMAT").write_bytes(b"snapstore 2 blake3\n")


def with_a_batch_of_a_later_version(store: Path) -> None:
    """The last batch, which nothing but its version and its digest tells from the others."""
    path = store / "log" / "00000001.seg"
    data = bytearray(path.read_bytes())
    start = len(data) - int.from_bytes(data[-8:-4], "little")
    data[start + 4] = 2
    data[start + 32 : start + 36] = crc32(data[start : start + 32]).to_bytes(4, "little")
    data[-24:-8] = blake3(data[start:-24]).digest(length=16)
    path.write_bytes(data)


def durable_files(store: Path) -> dict[str, bytes]:
    """All but what is below cache/, which readers may write."""
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.relative_to(store).parts[0] != "cache"
    }


@pytest.mark.parametrize("later", [of_a_later_version, with_a_batch_of_a_later_version])
@pytest.mark.parametrize("name", list(names()))
def test_is_refused_and_left_as_it_is(
    full: Shell, name: str, later: Callable[[Path], None]
) -> None:
    later(full.store)
    before = durable_files(full.store)
    args = ["clone", ".snapstore", "copy"] if name == "clone" else [name, *ARGUMENTS.get(name, [])]
    result = full(*args)
    assert durable_files(full.store) == before
    assert (result.code, result.out) == (5, ""), result


def test_what_a_harness_runs_leaves_it_too(full: Shell) -> None:
    of_a_later_version(full.store)
    before = durable_files(full.store)
    event = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(full.folder)}
    assert full("hook", stdin=json.dumps(event)).out == ""
    assert durable_files(full.store) == before
