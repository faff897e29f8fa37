"""The engines that the behaviour suite runs on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from homes import Home, Opened
from servers import azure, s3
from servers.azure import Azurite
from servers.s3 import Server

from snapstore.engines.log.engine import LogEngine
from snapstore.engines.memory import MemoryEngine
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine

KINDS = [
    "memory",
    "log",
    "log, many segments",
    "bucket in memory",
    "bucket on moto",
    pytest.param("bucket on ceph", marks=pytest.mark.ceph),
    "bucket on azurite",
]

SERVERS = ("moto", "ceph", "azurite")

LONG_ON_A_SERVER = (
    "test_engine_threads.py",
    "test_come_in_hundreds",
    "test_see_what_an_earlier_one_committed",
    "test_are_found_by_the_first_digits_of_their_ids",
    "test_show_all_their_moves_newest_first",
)
"""What takes hundreds of requests: on a bucket in memory in the plain run, on servers if asked."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave what is long on a server to the longer runs."""
    for item in items:
        on_a_server = any(f"bucket on {name}" in item.name for name in SERVERS)
        if on_a_server and any(name in item.nodeid for name in LONG_ON_A_SERVER):
            item.add_marker(pytest.mark.slow)


def _homes(name: str, tmp_path: Path) -> Home:
    if name == "memory":
        return Home(MemoryEngine)
    if name == "bucket in memory":
        bucket = Bucket.in_memory()
        return Home(lambda: ObjectStoreEngine(bucket))
    seal_at = 16_384 if name == "log, many segments" else 64 << 20
    return Home(lambda: LogEngine(tmp_path / "store", seal_at=seal_at))


@pytest.fixture(scope="session")
def moto() -> Iterator[Server]:
    """moto, with a bucket."""
    with s3.moto() as server:
        yield server


@pytest.fixture(scope="session")
def ceph_cluster() -> Iterator[s3.Ceph]:
    """A Ceph of one node. Where it is not installed, that is a failure only if it must be there."""
    reason = s3.why_no_ceph()
    if reason is not None:
        (pytest.fail if "SNAPSTORE_REQUIRE_CEPH" in os.environ else pytest.skip)(reason)
    with s3.ceph() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def ceph(ceph_cluster: s3.Ceph) -> Server:
    """The gateway of that Ceph, with a bucket."""
    return ceph_cluster.server


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Azurite, with a container. Skipped where it is not installed."""
    reason = azure.why_no_azurite()
    if reason is not None:
        pytest.skip(reason)
    with azure.azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each kind of engine in turn."""
    with _home(request, tmp_path) as place:
        yield place


@pytest.fixture(params=KINDS[1:])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each kind that keeps something beyond its handle: all but memory."""
    with _home(request, tmp_path) as place:
        yield place


@contextmanager
def _home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    if request.param.removeprefix("bucket on ") in SERVERS:
        server: Server | Azurite = request.getfixturevalue(request.param.removeprefix("bucket on "))
        url = server.url()
        cache = tmp_path / "cache"
        place = Home(lambda: ObjectStoreEngine(Bucket.at(url, server.options()), cache=cache))
    else:
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
