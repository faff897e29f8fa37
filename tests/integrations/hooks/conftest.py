"""A project, a store, and a harness that works on the one and is saved to the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Claude

import snapstore
from snapstore import Store
from snapstore.integrations.hooks import history


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    return folder


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[Store]:
    with snapstore.open(tmp_path / "store", durable=False) as store:
        yield store


@pytest.fixture
def claude(tmp_path: Path, project: Path) -> Claude:
    return Claude(tmp_path / "projects" / "x" / "S1.jsonl", project)


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "PAUSES", (0.002,) * 3)
