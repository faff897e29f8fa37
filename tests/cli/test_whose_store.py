"""Which store and which folder a command means, where that could be mistaken."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from shell import Shell


def message(folder: Path, name: str = "chat.json") -> None:
    """A transcript in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps([{"role": "user", "content": "hello"}]))


@pytest.fixture
def below(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory below one with a store in it."""
    folder = shell.folder / "below"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("command", ["sessions", "status", "save -s a --set x=1", "verify"])
def test_a_link_that_leads_nowhere_is_not_passed_over_for_the_store_above(
    shell: Shell, below: Path, command: str
) -> None:
    (below / ".snapstore").symlink_to(below.parent / "gone")
    told = shell(*command.split())
    assert told.code == 10
    assert str(below / ".snapstore") in told.err and str(below.parent / "gone") in told.err
    assert shell.ok("--store", str(shell.store), "sessions").lines == []


def test_nor_is_a_file(shell: Shell, below: Path) -> None:
    (below / ".snapstore").write_text("")
    told = shell("save", "-s", "a", "--set", "x=1")
    assert told.code == 10 and "is a file" in told.err


def test_a_link_to_a_store_is_followed(shell: Shell, below: Path) -> None:
    (below / ".snapstore").symlink_to(shell.store)
    shell.ok("save", "-s", "a", "--set", "x=1")
    assert len(shell.ok("sessions").lines) == 1


@pytest.mark.parametrize("place", ["/", "~", "~/.."])
def test_a_whole_disk_or_home_is_not_imported_by_mistake(shell: Shell, place: str) -> None:
    told = shell("import", str(Path(place).expanduser()))
    assert told.code == 6 and "--force" in told.err


def test_a_home_is_imported_when_it_is_meant_and_what_lies_in_it_always(shell: Shell) -> None:
    home = Path.home()
    message(home / "sessions")
    assert len(shell.ok("import", str(home / "sessions"), "--json").json["sessions"]) == 1
    assert len(shell.ok("import", str(home), "--force", "--json").json["sessions"]) == 1


def test_a_fifo_in_a_folder_is_no_transcript(shell: Shell) -> None:
    message(shell.folder / "in")
    os.mkfifo(shell.folder / "in" / "waits.jsonl")
    assert len(shell.ok("import", str(shell.folder / "in"), "--json").json["sessions"]) == 1


def test_a_directory_that_belongs_to_a_store_names_that_store(shell: Shell) -> None:
    shell.ok("init", "website")
    shell.ok("--store", "website", "save", "-s", "a", "--set", "x=1")
    assert [path.name for path in (shell.folder / "website").iterdir()] == [".snapstore"]
    shell.ok("clone", "website", "copy")
    assert len(shell.ok("--store", "copy", "sessions").lines) == 1


def test_but_a_store_with_another_one_in_it_names_itself(shell: Shell) -> None:
    shell.ok("--store", "outer", "save", "-s", "a", "--set", "x=1")
    shell.ok("init", "outer")
    assert len(shell.ok("--store", "outer", "sessions").lines) == 1


@pytest.mark.parametrize("place", ["http://127.0.0.1/x", "ftp://host/x"])
def test_an_address_of_no_kind_of_store_is_wrong_input(shell: Shell, place: str) -> None:
    told = shell("--store", place, "sessions")
    assert told.code == 2
    assert "no address of a store" in told.err and "s3://" in told.err


def test_a_remote_without_a_place_is_wrong_input(shell: Shell) -> None:
    shell.ok("save", "-s", "a", "--set", "x=1")
    assert shell("remote", "add", "origin", "").code == 2
