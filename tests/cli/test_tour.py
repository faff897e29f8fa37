"""snapstore tour: it really runs, holds, and notices when something does not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from shell import Shell

from snapstore_cli.output import Output
from snapstore_cli.settings import Settings
from snapstore_cli.tour.scratch import Scratch
from snapstore_cli.tour.story import STORY


def tour(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """The tour with an empty home and its scratch folder below tmp_path."""
    keep = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    (tmp_path / "home").mkdir()
    (tmp_path / "scratch").mkdir()
    place = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "scratch")}
    return subprocess.run(
        [sys.executable, "-m", "snapstore_cli", "tour"],
        env={**keep, **place, "SNAPSTORE_STORE": str(tmp_path / "elsewhere")},
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_everything_it_tells_holds_and_nothing_is_left_behind(tmp_path: Path) -> None:
    done = tour(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all of it held\n")
    assert "\nNO" not in done.stdout
    assert "\x1b" not in done.stdout
    for step in STORY:
        assert step.title in done.stdout
    for shown in ("$ python agent.py 3", "warning: torn_tail", "$ snapstore undo", "|/"):
        assert shown in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "scratch"]
    assert list((tmp_path / "home").iterdir()) == []
    assert list((tmp_path / "scratch").iterdir()) == []


def test_as_json_it_tells_each_command_and_the_folder_it_kept(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("snapstore_cli.commands.tour.STORY", STORY[:1])
    told: dict[str, Any] = shell.ok("tour", "--json", "--keep").json
    assert told["ok"]
    (step,) = told["steps"]
    assert step["title"] == STORY[0].title
    assert [run["command"] for run in step["runs"]] == ["snapstore init", "python agent.py 3"]
    assert "saved turn 3" in step["runs"][1]["output"]
    assert step["checks"] == [{"what": "three turns are saved", "holds": True}]
    assert (Path(told["folder"]) / ".snapstore").is_dir()


def test_it_fails_when_something_does_not_hold(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snapstore_cli.commands.tour.STORY", STORY[2:3])  # there is no session
    assert shell("tour", "--json").code == 1


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    made = Scratch(tmp_path, Output(Settings(json=True)), quiet=True)
    made.begin("a step", "")
    return made


def test_a_command_that_fails_is_something_that_does_not_hold(scratch: Scratch) -> None:
    scratch.command("show", "nothing")
    assert not scratch.holds
    assert scratch.told[0].runs[0].exit_code == 10


def test_a_program_that_lives_on_is_something_that_does_not_hold(scratch: Scratch) -> None:
    (scratch.folder / "lives.py").write_text("print('still here')")
    scratch.program_that_dies("lives.py")
    assert not scratch.holds


def test_a_lost_turn_is_something_that_does_not_hold(tmp_path: Path) -> None:
    class Boasting(Scratch):
        def kill_while_it_prints(self, name: str, lines: int) -> list[str]:
            printed = super().kill_while_it_prints(name, lines)
            return [*printed, f"saved turn {len(printed) + 2}\n"]

    scratch = Boasting(tmp_path, Output(Settings(json=True)), quiet=True)
    (step,) = (step for step in STORY if step.title == "An agent is killed at any moment")
    scratch.begin(step.title, step.text)
    step.act(scratch)
    assert [check.what for check in scratch.told[0].checks if not check.holds]
    assert not scratch.holds
