"""The frameworks' own tests judge our backends: see ``suites``. Minutes, and a package index."""

from __future__ import annotations

from pathlib import Path

import pytest
from suites.__main__ import SUITES, Bench, NotFetchedError, judge


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder: Path = tmp_path_factory.mktemp("suites")
    return Bench(folder)


@pytest.mark.frameworks
@pytest.mark.parametrize("suite", SUITES)
def test_their_own_suite_passes(bench: Bench, suite: str) -> None:
    try:
        judged = judge(bench, suite)
    except NotFetchedError as reason:
        pytest.skip(f"{suite} could not be fetched: {reason}")
    assert judged.failed == ()
    assert judged.passed >= judged.bar
