"""A shell in an empty directory, with nothing of the user's own around it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from shell import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Commands in a directory where `init` was run."""
    home = tmp_path / "home"
    folder = tmp_path / "project"
    home.mkdir()
    folder.mkdir()
    for name in ("SNAPSTORE_STORE", "NO_COLOR", "PAGER", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("SNAPSTORE_PAGER", "")
    monkeypatch.chdir(folder)
    for sync in ("fsync", "fdatasync"):  # durability has tests of its own, which wait for the disk
        monkeypatch.setattr(os, sync, lambda fd: None)
    made = Shell(folder, monkeypatch)
    made.ok("init")
    return made


@pytest.fixture
def two_lines(shell: Shell) -> Shell:
    """Session a with five turns, and b forked from its third with one of its own."""
    for turn in range(1, 6):
        message = {"role": "user", "content": f"question {turn}"}
        shell.save("a", message, label=f"turn number {turn}", sets={"step": turn})
    shell.ok("fork", "a@3", "b")
    other = {"role": "user", "content": "another way"}
    shell.save("b", other, label="the other way", sets={"only_b": True})
    return shell
