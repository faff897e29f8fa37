"""Lines that tests add to the end of the run's output, whether they pass or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

TOLD = "told"


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Add a line to the end of the output."""
    return partial(record_property, TOLD)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the lines."""
    reports = (report for found in terminalreporter.stats.values() for report in found)
    told = [
        line
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, line in report.user_properties
        if name == TOLD
    ]
    if told:
        terminalreporter.section("the frameworks' own tests")
    for line in told:
        terminalreporter.line(line)
