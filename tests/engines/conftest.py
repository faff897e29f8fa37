"""The engines that the behaviour suite runs on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from homes import Home, Opened

from snapstore.engines.log.engine import LogEngine
from snapstore.engines.memory import MemoryEngine
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine


def _homes(name: str, tmp_path: Path) -> Home:
    if name == "memory":
        return Home(MemoryEngine, lasts=False)
    if name == "object store":
        bucket = Bucket.in_memory()
        return Home(lambda: ObjectStoreEngine(bucket))
    seal_at = 16_384 if name == "log, many segments" else 64 << 20
    return Home(lambda: LogEngine(tmp_path / "store", seal_at=seal_at))


@pytest.fixture(params=["memory", "log", "log, many segments", "object store"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each kind of engine in turn."""
    place = _homes(request.param, tmp_path)
    with place.opened:
        yield place


@pytest.fixture
def engine(home: Home) -> Opened:
    """An engine with nothing in it yet."""
    return home.open()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a local store may be made; nothing is there yet."""
    return tmp_path / "store"


@pytest.fixture
def log_at(root: Path) -> Iterator[Callable[..., LogEngine]]:
    """Opens local engines on root, and closes them when the test ends."""
    with ExitStack() as opened:

        def at(**options: object) -> LogEngine:
            made = LogEngine(root, **options)  # type: ignore[arg-type]
            opened.callback(made.close)
            return made

        yield at
