"""What the tests of tasks share."""

from __future__ import annotations

from pathlib import Path

import pytest
from journal import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """A list of calls, empty."""
    return Journal(tmp_path / "calls")
