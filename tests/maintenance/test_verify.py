"""What a verification still finds where the reflog itself is damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from snapstore import Store
from snapstore.engine import Problem
from snapstore.engines.log.batch import Header
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout

SEAL_AT = 1500


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store of several segments; session gone, whose turns come first, was deleted."""
    root = tmp_path / "store"
    with Store(LogEngine(root, seal_at=SEAL_AT)) as store:
        for name, turns in (("gone", 3), ("here", 14)):
            session = store.session(name)
            for turn in range(turns):
                session.history.append({"role": "user", "content": f"{name} {turn} " * 30})
                session.save()
        store.delete("gone")
    assert len(Layout(root).segments_on_disk()) > 2
    return root


def hurt(root: Path, number: int, batch: int) -> None:
    """Damage the middle of a batch of a sealed segment; batch 0 holds no turn."""
    path = Layout(root).segment(number)
    data, start = bytearray(path.read_bytes()), 0
    for _ in range(batch):
        start += Header(bytes(data[start:]), (str(path), start)).size
    data[start + Header(bytes(data[start:]), (str(path), start)).size // 2] ^= 0xFF
    path.write_bytes(data)


def found(root: Path, verify: Callable[[Store], list[Problem]]) -> list[Problem]:
    with Store(LogEngine(root)) as store:
        return [problem for problem in verify(store) if not problem.harmless]


def test_moves_before_the_damaged_part_of_the_reflog_are_followed_too(root: Path) -> None:
    hurt(root, 1, 1)
    hurt(root, 2, 1)
    problems = found(root, lambda store: store.verify(quick=True))
    assert any("session gone" in problem.message for problem in problems)


def test_a_damaged_batch_is_told_once(root: Path) -> None:
    hurt(root, 2, 1)
    for verify in (lambda store: store.verify(), lambda store: store.verify(quick=True)):
        problems = found(root, verify)
        assert [problem.kind for problem in problems].count("damaged_batch") == 1
