"""Stores over directories, and sessions that capture them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from frail import Died
from nobody import NOBODY
from overdisk import OpenStore, store_at

import snapstore
from snapstore import Session, Store
from snapstore.disk import Disk


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[OpenStore]:
    """Opens the one store of the test, over any disk; the handle before is given back."""
    opened: list[Store] = []

    def close() -> None:
        for store in opened:
            with contextlib.suppress(Died):
                store.close()
        opened.clear()

    def open_it(disk: Disk | None = None) -> Store:
        close()
        opened.append(store_at(tmp_path / "store", disk))
        return opened[-1]

    yield open_it
    close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty directory to work in."""
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture(params=["log", "memory"])
def store(request: pytest.FixtureRequest, open_store: OpenStore) -> Iterator[Store]:
    """A store with nothing in it, of each kind in turn."""
    if request.param == "log":
        yield open_store()
    else:
        with snapstore.open("memory://") as found:
            yield found


@pytest.fixture
def session(store: Store, work: Path) -> Session:
    """A session whose saves capture the directory."""
    found = store.session("s")
    found.worktree = work
    return found


@pytest.fixture
def nobodys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that an ordinary user can reach and write: see as_nobody."""
    root = Path(tempfile.mkdtemp(prefix="snapstore-nobody-"))
    root.chmod(0o755)
    path = root / "work"
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)
    yield path
    shutil.rmtree(root)
