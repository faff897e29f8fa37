"""Stores to test on: what the library promises, it promises on every engine."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest
from stores import ENGINES, Place, place_on

from snapstore import Store


def pytest_configure() -> None:
    """A shell that starts the run in the background has it ignore Ctrl-C, and so would all that the
    tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", params=ENGINES)
def new_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Place]:
    """Makes places, one after the other: for tests that need a store for each example."""
    directories = iter(lambda: tmp_path_factory.mktemp("place"), None)
    return lambda: place_on(request.param, directories)


@pytest.fixture
def place(new_place: Callable[[], Place]) -> Iterator[Place]:
    """Where a store is kept; nothing is there yet."""
    with new_place() as made:
        yield made


@pytest.fixture
def store(place: Place) -> Store:
    """A store with nothing in it yet."""
    return place.open()
