"""A browser for the tests that need one; without it they are skipped, and say why."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium import Browser, missing, started
from chronicle import written


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items:
        if reason and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one module, for its event loop is in the way of all others in the same thread."""
    with started() as running:
        yield running


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the store that shown_store makes."""
    return written(tmp_path_factory.mktemp("page"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if reason := missing():
        terminalreporter.write_line(f"browser tests were skipped: {reason}")
