"""Saves are pushed by a process of its own, for which nothing waits."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from servers import s3
from shell import Shell

import snapstore
from snapstore.transfer.auto import CUT_OFF, is_under_way
from snapstore_cli import pushing

PATIENCE = 20.0
"""Seconds within which what happens in the background must have happened."""
QUICK = 1.0
"""Seconds that a save may take on a busy machine: far less than a remote that hangs."""
SAVE = [sys.executable, "-m", "snapstore_cli", "save", "-s", "a", "--messages", "-"]


@pytest.fixture
def other(shell: Shell) -> Path:
    """Where another store is to be."""
    return shell.folder.parent / "other"


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """What a test started ends with it."""
    yield
    for child in pushing._started:
        if child.poll() is None:
            child.kill()
        child.wait()
    pushing._started.clear()


def until(true: Callable[[], bool]) -> None:
    """Wait for something that happens in the background."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def at_rest() -> None:
    """Wait for the processes that push."""
    for child in pushing._started:
        child.wait(PATIENCE)


def heads(shell: Shell, store: str | Path) -> dict[str, str]:
    listed = shell("sessions", "--json", "--store", str(store))
    return {s["name"]: s["head"] for s in listed.json["sessions"]} if not listed.code else {}


def in_step(shell: Shell, store: str | Path) -> bool:
    """Whether another store has all sessions as they are here."""
    return heads(shell, store) == heads(shell, shell.store)


@pytest.fixture
def hanging(other: Path) -> Iterator[Callable[[], None]]:
    """The other place, held by somebody who never lets go; what is called to let go after all."""
    other.mkdir()
    lock = os.open(other / "LOCK", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    with contextlib.ExitStack() as held:
        held.callback(os.close, lock)
        yield held.close


def failures(shell: Shell) -> list[dict[str, str]]:
    found: list[dict[str, str]] = shell.ok("status", "--json").json["failed_pushes"]
    return found


def test_a_save_is_pushed_and_says_nothing_of_it(shell: Shell, other: Path) -> None:
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    told = shell.ok("save", "-s", "a", "--messages", "-", stdin='["hi"]')
    assert (len(told.lines), told.err) == (1, "")
    until(lambda: in_step(shell, other))
    at_rest()
    assert failures(shell) == []


def test_many_saves_need_few_processes_and_all_go_over(shell: Shell, other: Path) -> None:
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    for n in range(20):
        shell.save("a", f"message {n}")
    assert len(pushing._started) < 10
    until(lambda: in_step(shell, other))


def test_it_is_switched_on_and_off(shell: Shell, other: Path) -> None:
    shell.ok("remote", "add", "origin", str(other))
    shell.save("a", "first")
    assert pushing._started == []
    shell.ok("remote", "set", "origin", "--auto-push")
    assert shell.ok("remote").rows == [["origin", str(other), "auto-push"]]
    shell.save("a", "second")
    until(lambda: in_step(shell, other))
    at_rest()
    started = list(pushing._started)
    shell.ok("remote", "set", "origin", "--no-auto-push")
    shell.save("a", "third")
    assert pushing._started == started
    assert shell("remote", "set", "nowhere", "--auto-push").code == 3


def test_a_save_that_adds_nothing_starts_nothing(shell: Shell, other: Path) -> None:
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    shell.ok("save", "-s", "a", "--set", "k=1")
    at_rest()
    started = list(pushing._started)
    shell.ok("save", "-s", "a", "--set", "k=1")
    assert pushing._started == started


def test_chats_and_tasks_are_pushed(shell: Shell, other: Path) -> None:
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    shell.ok("chat", "talk", "--api", "none", stdin="hello\n")
    until(lambda: in_step(shell, other))
    (shell.folder / "t.toml").write_text('name = "t"\n[[phase]]\nname = "p"\nrun = "true"\n')
    shell.ok("task", "run", "t.toml", "--json")
    until(lambda: in_step(shell, other))
    assert heads(shell, other).keys() == {"talk", "task/t"}


def test_a_hook_pushes_what_it_saved(shell: Shell, other: Path) -> None:
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    transcript = shell.folder / "3b0d4e0e-7a7b-4d0f-9a39-0d5b3f9f7f10.jsonl"
    row = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": transcript.stem,
        "cwd": str(shell.folder),
        "timestamp": "2026-01-01T00:00:00.000Z",
        "version": "2.0.0",
        "message": {"role": "user", "content": "hi"},
    }
    transcript.write_text(json.dumps(row) + "\n")
    event = {
        "hook_event_name": "Stop",
        "session_id": transcript.stem,
        "transcript_path": str(transcript),
        "cwd": str(shell.folder),
    }
    shell.ok("hook", "--store", str(shell.store), stdin=json.dumps(event))
    assert heads(shell, shell.store)
    until(lambda: in_step(shell, other))


@pytest.mark.usefixtures("hanging")
def test_a_remote_that_hangs_delays_no_save(shell: Shell, other: Path) -> None:
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    for text in ("first", "second"):
        begun = time.monotonic()
        shell.save("a", text)
        assert time.monotonic() - begun < QUICK
        until(lambda: is_under_way(shell.open()))
    assert len(pushing._started) == 1


def test_a_push_that_was_killed_is_told_and_gone_on_with(
    shell: Shell, other: Path, hanging: Callable[[], None]
) -> None:
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    shell.save("a", "first")
    until(lambda: (shell.store / "cache" / "pushed").exists())
    pushing._started[0].send_signal(signal.SIGKILL)
    at_rest()
    assert failures(shell) == [{"remote": "origin", "error": CUT_OFF}]
    hanging()
    shell.save("a", "second")
    until(lambda: in_step(shell, other))
    at_rest()
    assert failures(shell) == []


@pytest.mark.usefixtures("hanging")
def test_the_process_ends_by_itself_wherever_it_hangs(shell: Shell, other: Path) -> None:
    shell.save("a", "first")
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    command = [sys.executable, "-m", "snapstore_cli.pushing", str(shell.store), "1"]
    assert subprocess.run(command, timeout=PATIENCE, check=False).returncode == -signal.SIGALRM
    assert failures(shell) == [{"remote": "origin", "error": CUT_OFF}]


def test_the_output_of_a_save_ends_with_it(
    shell: Shell, other: Path, hanging: Callable[[], None]
) -> None:
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    done = subprocess.run(
        SAVE, input=b'["hi"]', capture_output=True, cwd=shell.folder, timeout=PATIENCE, check=True
    )
    assert done.stdout.count(b"\n") == 1
    until(lambda: is_under_way(shell.open()))
    hanging()
    until(lambda: not is_under_way(shell.open()))


def test_a_server_that_is_not_there_is_no_error(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3.moto() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("XDG_CACHE_HOME", str(shell.folder.parent / "cache"))
        url = server.url()
        shell.ok("remote", "add", "cloud", url, "--auto-push")
        with socket.create_server(("127.0.0.1", 0)) as silent:  # takes calls, and never answers
            address = f"http://127.0.0.1:{silent.getsockname()[1]}"
            monkeypatch.setenv("AWS_ENDPOINT_URL", address)
            begun = time.monotonic()
            shell.save("a", "while it hangs")
            assert time.monotonic() - begun < QUICK
            until(lambda: (shell.store / "cache" / "pushed").exists())
            pushing._started[0].kill()
            at_rest()
        assert failures(shell)[0]["remote"] == "cloud"
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        shell.save("a", "online")
        at_rest()
        assert in_step(shell, url)
        assert failures(shell) == []


def test_what_failed_stands_in_status_doctor_and_a_log(shell: Shell, other: Path) -> None:
    other.write_text("no directory")
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    shell.save("a", "first")
    at_rest()
    assert "last push to origin failed: " in shell.ok("status").out
    doctor = shell("doctor")
    assert doctor.code == 1
    assert "last push to origin failed: " in doctor.out
    assert "last push to origin failed: " in (shell.store / "cache" / "push.log").read_text()
    other.unlink()
    with snapstore.open(other) as made:
        made.session("theirs").save()
    shell.save("a", "second")
    at_rest()
    assert shell("doctor").code == 0
    assert heads(shell, other).keys() == {"a", "theirs"}


def test_being_offline_is_nothing_to_mend(shell: Shell, other: Path) -> None:
    shell.ok("remote", "add", "origin", str(other), "--auto-push")
    shell.save("a", "first")
    at_rest()
    other.rename(other.with_name("taken away"))
    shell.save("a", "second")
    at_rest()
    assert "last push to origin failed: " in shell.ok("doctor").out
