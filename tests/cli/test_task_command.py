"""snapstore task: running, looking at and resetting tasks of shell commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from shell import Result, Shell

from snapstore_cli.task.commands import Kept

COMMAND = [sys.executable, "-c", "import sys; from snapstore_cli.main import run; sys.exit(run())"]


def task_file(shell: Shell, *phases: dict[str, Any], name: str = "t") -> Path:
    """A file that describes these phases."""
    lines = [f'name = "{name}"']
    for phase in phases:
        lines += ["[[phase]]", *(f"{key} = {_toml(value)}" for key, value in phase.items())]
    path = shell.folder / f"{name}.toml"
    path.write_text("\n".join(lines))
    return path


def _toml(value: Any) -> str:
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{ " + ", ".join(f"{key} = {_toml(member)}" for key, member in value.items()) + " }"


def calls(shell: Shell) -> list[str]:
    path = shell.folder / "calls"
    return path.read_text().split() if path.exists() else []


def run(shell: Shell, *phases: dict[str, Any], options: tuple[str, ...] = ()) -> Result:
    return shell("task", "run", str(task_file(shell, *phases)), "--json", *options)


ONE = {"name": "one", "run": "echo 1 >> calls"}
TWO = {"name": "two", "run": "echo 2 >> calls; test -e ready"}
THREE = {"name": "three", "run": "echo 3 >> calls"}


def test_a_task_stops_at_the_phase_that_fails_and_goes_on_from_there(shell: Shell) -> None:
    first = run(shell, ONE, TWO, THREE)
    assert first.code == 1
    assert first.json == {
        "schema": 1, "task": "t", "ran": ["one"], "skipped": [], "failed": "two",
        "error": "exit status 1",
    }  # fmt: skip
    (shell.folder / "ready").touch()
    second = run(shell, ONE, TWO, THREE)
    assert second.code == 0
    assert (second.json["ran"], second.json["skipped"]) == (["two", "three"], ["one"])
    assert run(shell, ONE, TWO, THREE).json["ran"] == []
    assert calls(shell) == ["1", "2", "2", "3"]


@pytest.mark.parametrize(
    "change",
    [{"run": "true # else"}, {"cwd": "."}, {"env": {"A": "1"}}, {"version": 2}],
)
def test_a_changed_phase_runs_again_with_those_after_it(
    shell: Shell, change: dict[str, Any]
) -> None:
    two = {"name": "two", "run": "true"}
    run(shell, ONE, two, THREE)
    assert run(shell, ONE, {**two, "timeout": 9, "retries": 1}, THREE).json["ran"] == []
    assert run(shell, ONE, {**two, **change}, THREE).json["ran"] == ["two", "three"]


def test_a_phase_has_its_directory_and_its_environment(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.folder / "sub").mkdir()
    told = 'echo "$PWD $A $B $SNAPSTORE_TASK $SNAPSTORE_PHASE $SNAPSTORE_ATTEMPT" > ../told'
    monkeypatch.setenv("B", "outer")
    done = run(shell, {"name": "p", "run": told, "cwd": "sub", "env": {"A": "a b"}})
    assert done.code == 0
    expected = f"{shell.folder}/sub a b outer t p 1\n"
    assert (shell.folder / "told").read_text() == expected
    missing = run(shell, {"name": "p", "run": "true", "cwd": "nowhere"})
    assert missing.code == 1 and "nowhere" in missing.json["error"]


def test_output_goes_on_as_it_comes_and_is_kept(shell: Shell) -> None:
    talks = {"name": "talks", "run": "printf out; echo err >&2; exit 3"}
    as_json = run(shell, talks)
    assert "out" in as_json.err and "err" in as_json.err
    plain = shell("task", "run", str(task_file(shell, talks)))
    assert (plain.code, plain.out) == (1, "outt: 0 phases ran, 0 had finished\n")
    error, hint = plain.err.splitlines()[-2:]
    assert error == "error: phase talks failed: exit status 3"
    assert "run it again" in hint and "snapstore task status t" in hint
    record = shell.ok("show", "task/t", "--json").json["messages"][-1]
    assert record["facts"]["exit_status"] == 3
    assert sorted(record["facts"]["output"]) == sorted("outerr\n")


def test_of_much_output_the_beginning_and_the_end_are_kept() -> None:
    kept = Kept(most=400)
    for n in range(1000):
        kept.add(b"line %d\n" % n)
    text = kept.text()
    assert text.startswith("line 0\n") and text.endswith("line 999\n")
    assert 400 <= len(text) < 440 and "bytes ..." in text
    whole = Kept(most=400)
    whole.add(b"x" * 100)
    whole.add(b"y" * 300)
    assert whole.text() == "x" * 100 + "y" * 300


def test_a_phase_that_takes_too_long_is_ended_with_all_that_it_started(shell: Shell) -> None:
    slow = {"name": "slow", "run": "sleep 60 & echo $! > pid; wait", "timeout": 0.3}
    begun = time.monotonic()
    done = run(shell, slow)
    assert done.code == 1 and "longer than 0.3 s" in done.json["error"]
    assert time.monotonic() - begun < 10
    assert gone(int((shell.folder / "pid").read_text()))


def gone(pid: int, patience: float = 5) -> bool:
    """Whether a process ends soon."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_what_a_phase_leaves_running_does_not_hold_it_up(shell: Shell) -> None:
    begun = time.monotonic()
    assert run(shell, {"name": "p", "run": "sleep 30 & echo $! > pid"}).code == 0
    assert time.monotonic() - begun < 10
    os.kill(int((shell.folder / "pid").read_text()), signal.SIGKILL)


def test_a_phase_is_tried_again(shell: Shell) -> None:
    flaky = {"name": "flaky", "run": "echo x >> calls; test $SNAPSTORE_ATTEMPT -gt 1", "retries": 1}
    done = run(shell, flaky)
    assert done.code == 0 and calls(shell) == ["x", "x"]
    assert "again in 1 s" in done.err


def test_independent_phases_run_side_by_side_and_mark_their_lines(shell: Shell) -> None:
    meets = (
        "touch {0}; for i in $(seq 500); do test -e {1} && echo met && exit 0; sleep 0.01; done;"
        "exit 1"
    )
    phases = [
        {"name": "a", "run": meets.format("a", "b"), "needs": []},
        {"name": "b", "run": meets.format("b", "a"), "needs": []},
        {"name": "last", "run": "printf unfinished"},
    ]
    done = run(shell, *phases, options=("-j", "2"))
    assert done.code == 0 and done.json["ran"][-1] == "last"
    assert {"[a] met", "[b] met", "[last] unfinished"} <= set(done.err.splitlines())


def test_phases_run_in_the_order_of_their_needs(shell: Shell) -> None:
    late = {**ONE, "needs": ["three"]}
    assert run(shell, late, {**THREE, "needs": []}).json["ran"] == ["three", "one"]


def test_a_bad_file_changes_nothing_and_is_a_usage_error(shell: Shell, tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("[[phase]\n")
    place = tmp_path / "new"
    result = shell("task", "run", str(bad), "--json", "--store", str(place))
    assert result.code == 2 and "line 1" in result.error["message"]
    assert not place.exists()
    assert shell("task", "run", "missing.toml").code == 2
    circle = [{**ONE, "needs": ["three"]}, {**THREE, "needs": ["one"]}]
    assert run(shell, *circle).code == 2


def test_a_finished_phase_that_is_missing_is_a_usage_error_that_reset_mends(shell: Shell) -> None:
    run(shell, ONE, THREE)
    missing = run(shell, ONE)
    assert missing.code == 2 and "'three'" in missing.error["message"]
    assert shell.ok("task", "reset", "t", "three", "--json").json["reset"] == ["three"]
    assert run(shell, ONE).json == {**run(shell, ONE).json, "ran": [], "skipped": ["one"]}


def test_status_tells_how_far_tasks_have_come(shell: Shell) -> None:
    run(shell, ONE, TWO, THREE)
    found = shell.ok("task", "status", "t", "--json").json
    assert [p["state"] for p in found["phases"]] == ["done", "failed", "waiting"]
    assert found["phases"][1]["error"] == "CommandError: exit status 1"
    assert (found["task"], found["session"], found["running"]) == ("t", "task/t", None)
    assert shell.ok("task", "status", "task/t", "--json").json == found
    (one,) = shell.ok("task", "status", "--json").json["tasks"]
    assert one["task"] == "t"
    rows = shell.ok("task", "status", "t").rows
    assert [row[:2] for row in rows] == [["one", "done"], ["two", "failed"], ["three", "waiting"]]
    assert shell.ok("task", "status").rows == [["t", "1 of 3 phases done, two failed"]]
    assert shell("task", "status", "nothing").code == 3


def test_reset_lets_a_phase_and_those_after_it_run_again(shell: Shell) -> None:
    run(shell, ONE, THREE)
    assert shell.ok("task", "reset", "t", "one").out == "t: one, three will run again\n"
    assert run(shell, ONE, THREE).json["ran"] == ["one", "three"]
    shell.ok("task", "reset", "t", "one")
    shell.ok("undo", "-s", "task/t")
    assert run(shell, ONE, THREE).json["ran"] == []
    assert shell("task", "reset", "t", "nothing").code == 3


def test_files_are_captured_and_come_back(shell: Shell) -> None:
    writes = {"name": "writes", "run": "echo good > made"}
    spoils = {"name": "spoils", "run": "cat made; echo bad > made; exit 1"}
    options = ("--worktree", str(shell.folder), "--restore")
    for _ in range(2):
        assert run(shell, writes, spoils, options=options).code == 1
    record = shell.ok("show", "task/t", "--json").json
    assert record["messages"][-1]["facts"]["output"] == "good\n"
    assert "made" in record["files"]


# --- killed and interrupted ----------------------------------------------------------------------


def start(shell: Shell, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *words], cwd=shell.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists() or not path.read_text():
        assert time.monotonic() < end, f"{path.name} never came"
        time.sleep(0.005)


LONG = {"name": "long", "run": "echo $$ > pid; sleep 60; echo never >> calls"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_command_and_records_the_interruption(
    shell: Shell, number: signal.Signals
) -> None:
    process = start(shell, "task", "run", str(task_file(shell, ONE, LONG)))
    wait_for(shell.folder / "pid")
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert gone(int((shell.folder / "pid").read_text()))
    (_, long) = shell.ok("task", "status", "t", "--json").json["phases"]
    assert long["state"] == "interrupted"
    assert calls(shell) == ["1"]


def test_a_killed_runner_takes_its_command_with_it_and_the_next_goes_on(shell: Shell) -> None:
    process = start(shell, "task", "run", str(task_file(shell, ONE, LONG)))
    wait_for(shell.folder / "pid")
    found = shell.ok("task", "status", "t", "--json").json
    assert found["running"]["pid"] == process.pid
    assert found["phases"][1]["state"] == "running"
    assert shell("task", "reset", "t", "one").code == 11
    busy = shell("task", "run", str(task_file(shell, ONE)), "--wait", "0", "--json")
    assert busy.code == 11 and f"process {process.pid}" in busy.error["message"]
    process.kill()
    process.communicate(timeout=60)
    assert gone(int((shell.folder / "pid").read_text()))
    assert shell.ok("task", "status", "t", "--json").json["phases"][1]["state"] == "interrupted"
    done = run(shell, ONE, {**LONG, "run": "echo done >> calls"})
    assert (done.json["skipped"], done.json["ran"]) == (["one"], ["long"])
    assert calls(shell) == ["1", "done"]


def test_two_runners_of_one_task_run_each_phase_once(shell: Shell) -> None:
    slow = {"name": "slow", "run": "echo x >> calls; sleep 0.3"}
    path = str(task_file(shell, slow))
    processes = [start(shell, "task", "run", path, "--json") for _ in range(3)]
    told = [json.loads(process.communicate(timeout=30)[0]) for process in processes]
    assert calls(shell) == ["x"]
    assert sorted(len(one["ran"]) for one in told) == [0, 0, 1]


def test_killed_at_random_moments_no_finished_command_runs_again(shell: Shell) -> None:
    import random

    rng = random.Random(3)
    phases = [
        {"name": f"p{n}", "run": f"echo begin{n} >> calls; sleep 0.02; echo end{n} >> calls"}
        for n in range(12)
    ]
    path = str(task_file(shell, *phases))
    acknowledged: set[str] = set()
    for _ in range(5):
        process = start(shell, "task", "run", path)
        time.sleep(rng.uniform(0.3, 0.6))
        process.kill()
        process.communicate(timeout=60)
        if (shell.store / "FORMAT").exists() and not shell("task", "status", "t").code:
            phases_now = shell.ok("task", "status", "t", "--json").json["phases"]
            now = {phase["name"] for phase in phases_now if phase["state"] == "done"}
            assert acknowledged <= now
            acknowledged = now
    assert run(shell, *phases).code == 0
    words = calls(shell)
    for n in range(12):
        assert words.count(f"end{n}") >= 1
        if n < 11:
            # The next one begins only when this one is recorded, and then it never runs again.
            assert f"begin{n}" not in words[words.index(f"begin{n + 1}") :]
