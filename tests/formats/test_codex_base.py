"""Forks of Codex threads begin in another file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transcripts import ROLLOUT, codex, item, written

from snapstore import formats

PARENT = written(ROLLOUT)
SHARED = written(ROLLOUT[:9])


def fork(**base: Any) -> bytes:
    told = {"thread_id": "T", "end_byte_offset": len(SHARED), **base}
    meta = {"id": "C", "forked_from_id": "T", "history_base": told, "cwd": "/w"}
    own = [item("user", "another way"), item("assistant", "y")]
    return written([codex("session_meta", meta), *own])


@pytest.fixture
def child(tmp_path: Path) -> Path:
    """The file of a fork; that of its parent lies in the folder of another day."""
    folders = [tmp_path / "sessions" / "2030" / "01" / day for day in ("01", "02")]
    for folder in folders:
        folder.mkdir(parents=True)
    (folders[0] / "rollout-2030-01-01T00-00-00-T.jsonl").write_bytes(PARENT)
    path = folders[1] / "rollout-2030-01-02T00-00-00-C.jsonl"
    path.write_bytes(fork())
    return path


def test_the_turns_that_a_fork_goes_on_from_are_read_from_its_parents_file(child: Path) -> None:
    told = formats.read_file(child)
    live = told.sessions[0].live
    assert [turn.label for turn in live.turns] == ["count the files", "another way"]
    assert live.meta["session_id"] == "C"
    assert (told.rows, told.warnings) == (3, ())
    assert [bool(turn.rows) for turn in live.turns] == [False, True]


def test_what_the_parent_went_on_with_is_not_the_forks(child: Path) -> None:
    assert "second" not in str(formats.read_file(child).sessions[0].live.history())


@pytest.mark.parametrize(
    "base", [{"thread_id": "gone"}, {"thread_id": 7}, {"end_byte_offset": "x"}]
)
def test_a_fork_whose_parent_is_not_there_is_read_as_far_as_it_goes(
    child: Path, base: dict[str, Any]
) -> None:
    child.write_bytes(fork(**base))
    told = formats.read_file(child)
    assert [turn.label for turn in told.sessions[0].live.turns] == ["another way"]
    assert len(told.warnings) == 1


def test_a_fork_of_itself_ends(child: Path) -> None:
    child.write_bytes(fork(thread_id="C"))
    assert formats.read_file(child).sessions
