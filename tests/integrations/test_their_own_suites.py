"""The frameworks' own tests judge our backends: see ``suites``. What they say ends the run."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from suites import bench as benches
from suites.bench import Bench, NotFetchedError
from suites.judging import SUITES, judge


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


@pytest.mark.frameworks
@pytest.mark.parametrize("suite", SUITES)
def test_their_own_suite_passes(bench: Bench, suite: str, tell: Callable[[str], None]) -> None:
    begun = time.monotonic()
    try:
        judged = judge(bench, suite)
    except NotFetchedError as reason:
        tell(f"{suite}: could not be fetched, nothing was judged: {reason}")
        pytest.skip(f"{suite} could not be fetched: {reason}")
    tell(f"{suite}: {judged}, {time.monotonic() - begun:.0f} s")
    assert judged.failed == ()
    assert judged.passed >= judged.bar


def test_without_a_package_index_nothing_is_judged_and_the_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setattr(benches.venv, "create", lambda folder, with_pip: folder.mkdir(parents=True))
    monkeypatch.setattr(benches, "_python", lambda folder: Path(sys.executable))
    bench = Bench(tmp_path / "bench")
    with pytest.raises(NotFetchedError, match="langgraph") as first:
        judge(bench, "langgraph")
    with pytest.raises(NotFetchedError) as again:
        judge(bench, "agents")
    assert again.value is first.value
    assert list(tmp_path.iterdir()) == []
