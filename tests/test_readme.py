"""The examples of the README, run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def example(mark: str) -> str:
    """The Python block that holds this text."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    (found,) = [block for block in blocks if mark in block]
    return str(found)


def run(code: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_the_agent_loop_saves_a_turn_for_each_question(tmp_path: Path) -> None:
    loop = example("complete()")
    assert run(loop, tmp_path) == ["saved turn 1", "saved turn 2"]
    assert run(loop, tmp_path) == ["saved turn 3", "saved turn 4"]


def test_the_task_runs_its_phases_once(tmp_path: Path) -> None:
    task = example("@release.phase")
    results = "{'build': {'wheel': 'app-1.0.whl'}, 'upload': 'sent app-1.0.whl'}"
    assert run(task, tmp_path) == [f"['build', 'upload'] [] {results}"]
    assert run(task, tmp_path) == [f"[] ['build', 'upload'] {results}"]
