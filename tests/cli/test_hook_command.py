"""snapstore hook: silent, exit code 0, whatever it is given; and quick when nothing changed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import Shell

from snapstore.integrations.hooks import events
from snapstore.worktree import statcache
from snapstore_cli.hooking import glance, log
from snapstore_cli.hooking import main as hooking


def row(n: int, text: str) -> str:
    kind = "assistant" if n % 2 else "user"
    content: Any = [{"type": "text", "text": text}] if n % 2 else text
    told = {
        "parentUuid": f"u{n - 1}" if n else None,
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": f"u{n}",
        "timestamp": "2030-01-01T00:00:00.000Z",
        "sessionId": "S1",
        "isSidechain": False,
    }
    return json.dumps(told) + "\n"


class Work:
    """A harness's session in a project of its own, saved to the store of a shell."""

    def __init__(self, root: Path, store: Path) -> None:
        self.project = root / "work"
        self.project.mkdir()
        (self.project / "a.txt").write_text("one")
        self.transcript = root / "S1.jsonl"
        self.store = store
        self.rows = 0

    def turn(self) -> None:
        with self.transcript.open("a") as file:
            for text in ("question", "answer"):
                file.write(row(self.rows, f"{text} {self.rows // 2}"))
                self.rows += 1

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        told = {
            "session_id": "S1",
            "transcript_path": str(self.transcript),
            "cwd": str(self.project),
            "hook_event_name": name,
        }
        return told | more

    def start(self, name: str, **how: Any) -> subprocess.Popen[bytes]:
        """A hook as a process of its own, as a harness starts it."""
        command = [sys.executable, "-m", "snapstore_cli", "hook", "--store", str(self.store)]
        pipe = subprocess.PIPE
        hook = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **how)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(self.event(name)).encode())
        hook.stdin.close()
        hook.stdin = None
        return hook


@pytest.fixture
def work(shell: Shell, tmp_path: Path) -> Work:
    return Work(tmp_path, shell.store)


def hook(shell: Shell, told: Any, *args: str) -> None:
    """Run a hook, which is silent and ends well, whatever it is told."""
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    result = shell("hook", *args, stdin=data)
    assert (result.code, result.out, result.err) == (0, "", "")


def nothing_changed(work: Work, name: str = "PostToolUse", **more: Any) -> bool:
    return glance.nothing_changed(str(work.store / "cache"), work.event(name, **more))


def until_not_racy() -> None:
    """Wait until what was changed just now is told from what will be."""
    time.sleep(0.03)


# --- what it saves -----------------------------------------------------------------------------


def test_a_turn_is_saved_with_its_files(shell: Shell, work: Work) -> None:
    hook(shell, work.event("UserPromptSubmit"))
    assert shell.ok("sessions", "--json").json["sessions"] == []
    work.turn()
    (work.project / "a.txt").write_text("two")
    hook(shell, work.event("Stop", last_assistant_message="answer 0"))
    (session,) = shell.ok("sessions", "--json").json["sessions"]
    assert (session["name"], session["turn"]) == ("question-0", 1)
    assert shell.ok("show", "question-0:a.txt").out == "two"


def test_the_log_tells_what_was_done_and_what_was_not(shell: Shell, work: Work) -> None:
    work.turn()
    hook(shell, work.event("Stop"))
    hook(shell, work.event("Stop", cwd="/nonexistent"))
    hook(shell, b"not json")
    told = (shell.store / "cache" / "hook.log").read_text().splitlines()
    assert len(told) == 3
    assert "Stop of S1: question-0 at turn 1; files of" in told[0]
    assert "there is no directory /nonexistent" in told[1]
    assert "no event" in told[2]


def test_nothing_is_added_to_a_state_that_damage_made_older(shell: Shell, work: Work) -> None:
    for _ in range(3):
        work.turn()
        hook(shell, work.event("Stop"))
    (log_file,) = (shell.store / "log").glob("*.seg")
    data = bytearray(log_file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    log_file.write_bytes(data)
    work.turn()
    hook(shell, work.event("Stop"))
    assert log_file.read_bytes() == data
    assert "failed: Corrupt" in (shell.store / "cache" / "hook.log").read_text()


def test_a_log_that_is_full_keeps_its_end(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "hook.log"
    for n in range(400):
        log.write(path, f"entry {n}\n" + "x" * 1500)
    assert log.MOST // 4 < path.stat().st_size <= log.MOST + 2100
    lines = path.read_text().splitlines()
    assert all(" entry " in line for line in lines)
    assert "entry 399" in lines[-1]
    assert path.stat().st_mode & 0o777 == 0o600


def test_without_a_store_that_is_a_directory_the_log_is_the_users(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    hook(shell, b"{", "--store", str(tmp_path / "none"))
    assert "no event" in (tmp_path / "state" / "snapstore" / "hook.log").read_text()
    assert not (tmp_path / "none").exists()


def test_a_store_that_is_in_the_way_is_told_in_the_log(
    shell: Shell, work: Work, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "file").write_text("not a store")
    hook(shell, work.event("UserPromptSubmit"), "--store", str(tmp_path / "file"))
    told = (tmp_path / "state" / "snapstore" / "hook.log").read_text()
    assert "is a file, not a store" in told


def test_options_that_are_not_known_are_no_reason_to_fail(shell: Shell, work: Work) -> None:
    work.turn()
    hook(shell, work.event("Stop"), "--of-a-later-version", "yes")
    assert len(shell.ok("sessions", "--json").json["sessions"]) == 1


def test_secrets_are_left_out_when_that_is_asked_for(shell: Shell, work: Work) -> None:
    key = "ghp_" + "0a1B" * 9
    work.transcript.write_text(row(0, f"my key: {key}") + row(1, "thanks"))
    hook(shell, work.event("Stop"), "--redact")
    (session,) = shell.ok("sessions", "--json").json["sessions"]
    assert key not in shell.ok("show", session["name"], "--json").out


# --- whatever it is given ----------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
FIELDS = ("session_id", "transcript_path", "cwd", "last_assistant_message")
ODD_EVENTS = st.fixed_dictionaries(
    {"hook_event_name": st.sampled_from(sorted(glance.EVENTS)) | VALUES},
    optional={field: VALUES | st.just("TRUE") for field in FIELDS},
)


@given(told=st.binary(max_size=60) | ODD_EVENTS | VALUES, transcript=st.binary(max_size=200))
@settings(deadline=None, max_examples=120)
def test_nothing_that_it_is_given_makes_it_fail_or_speak(
    told: Any, transcript: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("odd")
    (root / "S1.jsonl").write_bytes(row(0, "q").encode() + transcript)
    true = {"session_id": "S1", "transcript_path": str(root / "S1.jsonl"), "cwd": str(root)}
    if isinstance(told, dict):
        told = {key: true.get(key, "a") if v == "TRUE" else v for key, v in told.items()}
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setenv("XDG_STATE_HOME", str(root / "state"))
        patch.setattr("snapstore.integrations.hooks.history.PAUSES", ())
        for sync in ("fsync", "fdatasync"):
            patch.setattr(os, sync, lambda fd: None)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = hooking.run(hooking.Arguments(str(root / "store")))
    assert (code, said.getvalue()) == (0, "")
    told_in = root / "store" / "cache" / "hook.log"
    assert not told_in.exists() or "failed" not in told_in.read_text()


# --- several at once, and killed ----------------------------------------------------------------


def test_hooks_of_one_session_at_once_make_one_turn(shell: Shell, work: Work) -> None:
    work.turn()
    started = [work.start(name) for name in ("Stop", "Stop", "SessionEnd", "PostToolUse")]
    for one in started:
        out, err = one.communicate(timeout=60)
        assert (one.returncode, out, err) == (0, b"", b"")
    (session,) = shell.ok("sessions", "--json").json["sessions"]
    assert session["turn"] == 1
    assert "failed" not in (shell.store / "cache" / "hook.log").read_text()
    assert shell.ok("verify", "--json").json["ok"]


def test_a_hook_that_is_killed_at_any_moment_is_made_up_for_by_the_next(
    shell: Shell, work: Work
) -> None:
    for n in range(1, 9):
        work.turn()
        (work.project / "a.txt").write_text(f"after turn {n}")
        killed = work.start("Stop")
        time.sleep(0.02 * n)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=60)
    hook(shell, work.event("Stop"))
    (session,) = shell.ok("sessions", "--json").json["sessions"]
    assert session["turn"] == 8
    assert shell.ok("show", "question-0:a.txt").out == "after turn 8"
    assert shell.ok("verify", "--json").json["ok"]


def test_a_large_transcript_does_not_keep_the_harness_waiting(
    shell: Shell, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    monkeypatch.setattr(hooking, "LARGE", 10)
    monkeypatch.setattr(hooking, "_start_catching_up", lambda *job: started.append(job))
    work.turn()
    hook(shell, work.event("Stop"))
    assert shell.ok("sessions", "--json").json["sessions"] == []
    assert not nothing_changed(work, "Stop")
    assert len(started) == 1


def test_a_process_of_its_own_reads_it(shell: Shell, work: Work) -> None:
    work.turn()
    script = (
        "import sys; sys.argv = ['snapstore', 'hook', '--store', sys.argv[1]]\n"
        "from snapstore_cli.hooking import main\n"
        "main.LARGE = 10\n"
        "from snapstore_cli.__main__ import run\n"
        "sys.exit(run())\n"
    )
    told = json.dumps(work.event("Stop")).encode()
    command = [sys.executable, "-c", script, str(shell.store)]
    subprocess.run(command, input=told, check=True, timeout=60)
    until = time.monotonic() + 60
    while not shell.ok("sessions", "--json").json["sessions"] and time.monotonic() < until:
        time.sleep(0.05)
    assert shell.ok("show", "question-0:a.txt").out == "one"


# --- quick when nothing changed -----------------------------------------------------------------


def test_the_glance_knows_what_the_library_knows() -> None:
    assert (glance.TICK, glance.COARSE_TICK) == (statcache.TICK, statcache.COARSE_TICK)
    assert glance.CAPTURES == events.FILES
    assert glance.EVENTS == events.FILES | events.HISTORY
    assert glance.TURN == events.TURN


@pytest.mark.parametrize("name", ["UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd", "Other"])
def test_when_nothing_changed_neither_click_nor_the_library_is_loaded(
    shell: Shell, work: Work, name: str
) -> None:
    work.turn()
    until_not_racy()
    hook(shell, work.event("Stop"))
    script = (
        "import sys; sys.argv = ['snapstore', 'hook', '--store', sys.argv[1]]\n"
        "from snapstore_cli.__main__ import run\n"
        "assert run() == 0\n"
        "loaded = {'snapstore', 'click', 'pathlib', 'dataclasses', 'msgpack'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    told = json.dumps(work.event(name)).encode()
    command = [sys.executable, "-S", "-c", script, str(shell.store)]
    path = os.pathsep.join(filter(None, sys.path))
    subprocess.run(command, input=told, check=True, env={**os.environ, "PYTHONPATH": path})


def _edited_with_its_old_times(project: Path) -> None:
    before = (project / "a.txt").stat()
    (project / "a.txt").write_text("two")
    os.utime(project / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES = {
    "edited": lambda p: (p / "a.txt").write_text("two"),
    "edited, with its old times": _edited_with_its_old_times,
    "deleted": lambda p: (p / "a.txt").unlink(),
    "made executable": lambda p: (p / "a.txt").chmod(0o755),
    "a new file": lambda p: (p / "new").touch(),
    "a new directory": lambda p: (p / "new").mkdir(),
    "a new file below": lambda p: (p / "below" / "new").touch(),
    "an edit below": lambda p: (p / "below" / "b.txt").write_text("x"),
    "another mode of a directory": lambda p: (p / "below").chmod(0o700),
    "a directory gone": lambda p: ((p / "below" / "b.txt").unlink(), (p / "below").rmdir()),
    "renamed": lambda p: (p / "a.txt").rename(p / "c.txt"),
    "another in its place": lambda p: (p / "below" / "b.txt").rename(p / "a.txt"),
    "a link": lambda p: (p / "link").symlink_to("a.txt"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_of_files_is_seen(shell: Shell, work: Work, change: Any) -> None:
    (work.project / "below").mkdir()
    (work.project / "below" / "b.txt").write_text("b")
    until_not_racy()
    hook(shell, work.event("UserPromptSubmit"))
    assert nothing_changed(work)
    until_not_racy()
    change(work.project)
    assert not nothing_changed(work)


def test_a_transcript_that_grew_is_seen_by_the_events_that_ask_for_it(
    shell: Shell, work: Work
) -> None:
    work.turn()
    until_not_racy()
    hook(shell, work.event("Stop"))
    assert all(nothing_changed(work, name) for name in glance.EVENTS)
    work.turn()
    assert [name for name in sorted(glance.EVENTS) if nothing_changed(work, name)] == sorted(
        glance.CAPTURES
    )


def test_another_session_or_directory_is_not_known_yet(
    shell: Shell, work: Work, tmp_path: Path
) -> None:
    until_not_racy()
    hook(shell, work.event("UserPromptSubmit"))
    assert nothing_changed(work)
    assert not nothing_changed(work, session_id="S2")
    assert not nothing_changed(work, cwd=str(tmp_path))


def test_when_the_clock_was_set_back_times_tell_nothing(
    shell: Shell, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    until_not_racy()
    hook(shell, work.event("UserPromptSubmit"))
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert not nothing_changed(work)


@pytest.mark.parametrize("rubbish", [b"", b"{", b"[]", b'{"cwd": 1}', b"\xff", b"{}" * 9])
def test_a_note_that_makes_no_sense_means_a_full_look(
    shell: Shell, work: Work, rubbish: bytes
) -> None:
    work.turn()
    until_not_racy()
    hook(shell, work.event("Stop"))
    Path(glance.place(str(shell.store / "cache"), str(work.project))).write_bytes(rubbish)
    assert not nothing_changed(work, "Stop")
    hook(shell, work.event("Stop"))
    assert nothing_changed(work, "Stop")


def test_a_lagging_turn_is_looked_at_again(
    shell: Shell, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snapstore.integrations.hooks.history.PAUSES", ())
    work.turn()
    until_not_racy()
    hook(shell, work.event("Stop", last_assistant_message="something else"))
    assert not nothing_changed(work, "Stop")


def test_notes_of_many_sessions_do_not_pile_up(tmp_path: Path) -> None:
    kept = b""
    for n in range(100):
        seen = glance.Seen({}, True, f"/root{n}", 1, ["below"] * 10)
        kept = glance.noted(kept, "/w", f"S{n}", seen)
    told = json.loads(kept)
    assert list(told["sessions"])[-1] == "S99"
    assert len(told["sessions"]) == len(told["below"]) < 20
    for n in range(100):
        kept = glance.noted(
            kept, "/w", "S99", glance.Seen({f"agent{n}": [1, 1]}, False, None, 1, [])
        )
    assert list(json.loads(kept)["sessions"]["S99"]["ends"])[-1] == "agent99"
    assert len(kept) < 5000


def test_a_transcript_of_an_agent_that_grew_is_seen_at_its_stop(
    shell: Shell, work: Work, tmp_path: Path
) -> None:
    work.turn()
    agent = tmp_path / "S1" / "subagents" / "agent-1.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_text(row(0, "errand"))
    until_not_racy()
    told = {"agent_transcript_path": str(agent)}
    hook(shell, work.event("SubagentStop", **told))
    assert nothing_changed(work, "SubagentStop", **told)
    agent.write_text(row(0, "errand") + row(1, "done"))
    assert not nothing_changed(work, "SubagentStop", **told)
