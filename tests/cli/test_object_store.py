"""The same commands on a store in a bucket."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator

import pytest
from servers import s3
from shell import Shell

from snapstore_cli.hooking import main as hooking


@pytest.fixture(scope="module")
def server() -> Iterator[s3.Server]:
    """An S3 server with a bucket."""
    with s3.moto() as running:
        yield running


@pytest.fixture
def away(shell: Shell, server: s3.Server, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Commands on a store in that bucket, of which nothing is kept on this machine."""
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(shell.folder / "cache"))
    monkeypatch.setenv("SNAPSTORE_STORE", server.url())
    return shell


def test_saves_forks_rewinds_and_undoes(away: Shell) -> None:
    for n in range(1, 7):
        away.save("a", {"role": "user", "content": f"question {n}"})
    away.ok("fork", "a@3", "b")
    away.save("b", {"role": "user", "content": "another way"})
    away.ok("rewind", "a@2")
    assert away.ok("show", "a", "--json").json["turn"] == 2
    away.ok("undo", "-s", "a")
    assert away.ok("show", "a", "--json").json["turn"] == 6
    assert away.ok("diff", "a", "b", "--json").json["base"]["turn"] == 3
    assert [s["name"] for s in away.ok("sessions", "--json").json["sessions"]] == ["a", "b"]
    assert away.ok("verify", "--json").json["ok"]
    away.ok("delete", "b", "--yes")
    assert away.ok("gc", "--json").json["applied"] is False


def test_takes_a_text_out_of_every_turn(away: Shell, server: s3.Server) -> None:
    for n in range(9):
        away.save("a", {"role": "user", "content": f"question {n}"})
    away.save("a", {"role": "user", "content": "use the-leaked-key-42"})
    away.ok("fork", "a", "b")
    assert away.ok("purge", "--match", "the-leaked-key-42", "--json").json["applied"] is False
    done = away.ok("purge", "--match", "the-leaked-key-42", "--apply", "--json").json
    assert (sorted(done["sessions"]), done["messages"]) == (["session a", "session b"], 1)
    for name in ("a", "b"):
        shown = away.ok("show", name, "--json").json
        assert (shown["turn"], shown["messages"][-1]["content"]) == (10, "use [purged]")
    assert away.ok("purge", "--match", "the-leaked-key-42", "--json").json["sessions"] == []
    told = [move["op"] for move in away.ok("op", "log", "-s", "a", "--json").json["moves"]]
    assert told == ["purge"]
    assert away.ok("verify", "--json").json["ok"]


def test_a_bucket_without_a_store_is_none(away: Shell) -> None:
    result = away("sessions", "--json")
    assert (result.code, result.error["code"]) == (10, "store_not_found")


def test_no_server_is_told_with_the_exit_code_of_a_disk_that_refuses(
    away: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from snapstore.engines.objectstore import client

    monkeypatch.setitem(client.RETRIES, "max_retries", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{s3.free_port()}")
    result = away("sessions", "--json")
    assert (result.code, result.error["code"]) == (12, "unreachable")
    assert result.error["hint"]


def test_a_profile_stands_in_for_the_variables(
    away: Shell, server: s3.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    keys = f"aws_access_key_id={server.access_key}\naws_secret_access_key={server.secret_key}\n"
    (away.folder / "credentials").write_text(f"[work]\n{keys}")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(away.folder / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "work")
    away.save("a", {"role": "user", "content": "with a profile"})
    assert away.ok("show", "a", "--json").json["turn"] == 1
    monkeypatch.setenv("AWS_PROFILE", "missing")
    assert away("sessions", "--json").error["code"] == "access_denied"


def test_each_machine_has_a_current_session_of_its_own(
    away: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for host in ("one", "two"):
        monkeypatch.setenv("XDG_STATE_HOME", str(away.folder / host))
        away.save(host, {"role": "user", "content": f"on {host}"})
    for host in ("one", "two"):
        monkeypatch.setenv("XDG_STATE_HOME", str(away.folder / host))
        assert away.ok("show", "@", "--json").json["messages"][0]["content"] == f"on {host}"
        away.ok("rename", host, f"{host}-renamed")
        assert away.ok("status", "--json").json["session"] == f"{host}-renamed"
    monkeypatch.setenv("XDG_STATE_HOME", str(away.folder / "three"))
    assert not any(s["current"] for s in away.ok("sessions", "--json").json["sessions"])


def test_keeps_the_files_of_a_directory_too(away: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(away.folder.parent / "state"))
    file = away.folder / "work" / "a.txt"
    file.parent.mkdir()
    for text in ("one", "two"):
        file.write_text(text)
        away.ok("save", "-s", "a", "-m", text, "--worktree", str(file.parent))
    away.ok("rewind", "a@1", "--what", "messages,scratchpad,files")
    assert file.read_text() == "one"
    file.write_text("edited by hand")
    away.ok("undo", "-s", "a")
    assert file.read_text() == "two"
    away.ok("redo", "-s", "a")
    assert file.read_text() == "edited by hand"
    away.ok("restore", "a@1", "--to", str(away.folder / "copy"))
    assert (away.folder / "copy" / "a.txt").read_text() == "one"


def test_a_harness_s_turns_are_saved_by_its_hooks(
    away: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(away.folder.parent / "state"))
    work = away.folder / "work"
    work.mkdir()
    (work / "a.txt").write_text("one")
    transcript = away.folder / "S1.jsonl"
    rows = [
        {"type": "user", "uuid": "u0", "parentUuid": None, "sessionId": "S1",
         "message": {"role": "user", "content": "question"}},
        {"type": "assistant", "uuid": "u1", "parentUuid": "u0", "sessionId": "S1",
         "message": {"role": "assistant", "content": [{"type": "text", "text": "answer"}]}},
    ]  # fmt: skip
    transcript.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for event in ("SessionStart", "PostToolUse", "Stop"):
        told = {"session_id": "S1", "transcript_path": str(transcript), "cwd": str(work),
                "hook_event_name": event}  # fmt: skip
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(told).encode())))
        assert hooking.run(hooking.Arguments()) == 0
    assert capsys.readouterr().out == ""
    (session,) = away.ok("sessions", "--json").json["sessions"]
    shown = away.ok("show", session["name"], "--json").json
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"]
    assert list(shown["files"]) == ["a.txt"]


def test_tells_who_runs_a_task_and_until_when(away: Shell, server: s3.Server) -> None:
    file = away.folder / "release.toml"
    file.write_text(
        'name = "release"\n[[phase]]\nname = "build"\n'
        f'run = "{sys.executable} -m snapstore_cli task status release --json"\n'
    )
    ran = away.ok("task", "run", str(file), "--json")
    assert ran.json["ran"] == ["build"]
    told = next(line for line in ran.err.splitlines() if line.startswith("{"))
    running = json.loads(told)["running"]
    assert running["pid"] == os.getpid() and running["until"].endswith("Z")
    assert away.ok("task", "status", "release", "--json").json["running"] is None
