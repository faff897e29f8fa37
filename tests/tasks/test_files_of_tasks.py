"""Tasks that work on files: what is captured, and what a resume brings back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import snapstore
from snapstore import Store
from snapstore.tasks import Phase


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "readme").write_text("hello")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return snapstore.open(tmp_path / "store", durable=False)


def writes(project: Path, name: str, text: str, *, fails: bool = False) -> Any:
    def run() -> None:
        (project / name).write_text(text)
        if fails:
            raise RuntimeError

    return run


def files(store: Store, revision: str) -> list[str]:
    captured = store.resolve(revision).files
    assert captured is not None
    return sorted(captured)


def test_the_files_are_captured_after_each_phase(store: Store, project: Path) -> None:
    phases = [("a", writes(project, "a.py", "1")), ("b", writes(project, "b.py", "2"))]
    store.run_task("t", phases, worktree=project)
    assert files(store, "task/t@1") == ["readme"]
    assert files(store, "task/t@2") == ["a.py", "readme"]
    assert files(store, "task/t@4") == ["a.py", "b.py", "readme"]
    difference = store.diff("task/t@1", "task/t@4").files
    assert difference is not None and sorted(difference.added) == ["a.py", "b.py"]


def test_a_resume_brings_back_what_the_finished_phases_left_only_when_asked(
    store: Store, project: Path
) -> None:
    first = ("a", writes(project, "a.py", "1"))
    half = ("b", writes(project, "b.py", "half of it", fails=True))
    with pytest.raises(RuntimeError):
        store.run_task("t", [first, half], worktree=project)
    (project / "a.py").write_text("edited since")

    def look() -> list[Any]:
        return [(project / "a.py").read_text(), (project / "b.py").exists()]

    with pytest.raises(RuntimeError):
        store.run_task("t", [first, half], worktree=project)
    assert look() == ["edited since", True]
    report = store.run_task("t", [first, ("b", look)], worktree=project, restore=True)
    assert report.results["b"] == ["1", False]


def test_a_changed_phase_begins_with_the_files_that_it_began_with(
    store: Store, project: Path
) -> None:
    def phases(version: int) -> list[Phase]:
        def append() -> str:
            path = project / "log"
            path.write_text((path.read_text() if path.exists() else "") + "x")
            return path.read_text()

        return [
            Phase("a", writes(project, "a.py", "1")),
            Phase("b", append, version=version),
            Phase("c", append),
        ]

    store.run_task("t", phases(1), worktree=project)
    report = store.run_task("t", phases(2), worktree=project, restore=True)
    assert report.ran == ["b", "c"] and report.results["c"] == "xx"


def test_a_finished_task_touches_no_file(store: Store, project: Path) -> None:
    phases = [("a", writes(project, "a.py", "1"))]
    store.run_task("t", phases, worktree=project)
    (project / "a.py").write_text("mine")
    store.run_task("t", phases, worktree=project, restore=True)
    assert (project / "a.py").read_text() == "mine"


def test_the_first_phase_begins_again_with_the_files_of_its_start(
    store: Store, project: Path
) -> None:
    half = ("a", writes(project, "readme", "spoiled", fails=True))
    with pytest.raises(RuntimeError):
        store.run_task("t", [half], worktree=project)
    report = store.run_task("t", [("a", (project / "readme").read_text)], restore=True)
    assert report.results == {"a": "hello"}
