"""Directories of a store that is not on this machine: as quick, and as safe, as those of one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from frail import Died, DyingDisk, QuickDisk
from pictures import differing
from test_restore_crash import TwoTurns, rewound

from snapstore import Refused, Store
from snapstore.disk import Disk
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.links import links
from snapstore.worktree.local import Local


def far_store(bucket: Bucket, state: Path, disk: Disk | None = None) -> Store:
    """A store in a bucket, of which this machine keeps its own below a directory."""
    here = Local(state, disk or QuickDisk())
    return Store(ObjectStoreEngine(bucket, links=links), here=here)


def test_a_restore_that_was_killed_is_taken_back_or_finished_by_the_next_command(
    tmp_path: Path, work: Path
) -> None:
    bucket, state = Bucket.in_memory(), tmp_path / "state"
    turns = TwoTurns(far_store(bucket, state), work)
    halfway = 0
    for at in range(0, 200, 9):
        died = True
        with contextlib.suppress(Died):
            rewound(far_store(bucket, state, DyingDisk(at)), 1)
            died = False
        halfway += turns.turn_on_disk() is None
        store = far_store(bucket, state)
        store.session("s").save()  # any command that works on the directory
        head = store.session("s").turn
        assert turns.turn_on_disk() == head, (
            at,
            differing(turns.there(), turns.pictures[head]),
        )
        assert not list(state.rglob("*.journal"))
        if not died:
            break
        if head == 1:
            rewound(store, 2)
    assert not died and halfway > 3


def test_what_was_captured_before_is_not_read_again(tmp_path: Path, work: Path) -> None:
    bucket, state = Bucket.in_memory(), tmp_path / "state"
    (work / "file").write_text("x" * 1000)
    session = far_store(bucket, state).session("s")
    session.worktree = work
    session.save()
    assert list(state.glob("cache/files-*"))
    again = far_store(bucket, state).worktree(work)
    (work / "file").chmod(0o000)  # whoever reads it now fails, where that is not root
    assert again._known().tree == session.head.record.files
    (work / "file").chmod(0o644)


def test_a_directory_that_only_another_machine_has_captured_is_left_alone(
    tmp_path: Path, work: Path
) -> None:
    bucket = Bucket.in_memory()
    TwoTurns(far_store(bucket, tmp_path / "one"), work)
    there = far_store(bucket, tmp_path / "two").session("s")
    with pytest.raises(Refused, match="never captured"):
        there.rewind(1, files=True)
    there.rewind(1, files=True, force=True)
    there.undo()  # by now it has been captured here, before anything was written


def test_the_state_of_a_store_is_kept_by_its_address(tmp_path: Path) -> None:
    places = [
        Local.beside(url, tmp_path)
        for url in ("s3://bucket/a", "s3://bucket/a/", "s3://bucket/b", "az://bucket/a")
    ]
    roots = [place.root for place in places if place is not None]
    assert roots[0] == roots[1] and len(set(roots)) == 3
    assert all(root.parent == tmp_path for root in roots)
    assert Local.beside("s3://bucket/a", False) is None


def test_who_has_no_place_for_state_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert Local.beside("s3://bucket/a", True) is not None
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert Local.beside("s3://bucket/a", True) is None
