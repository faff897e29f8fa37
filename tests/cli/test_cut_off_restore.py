"""A restore whose process was killed: who looks is told, and so is whose command settles it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Result, Shell

from snapstore.disk import DISK
from snapstore.worktree import restore
from snapstore.worktree.local import Local

TAKES_BACK = "the next save, rewind, restore, undo or redo there takes it back"
FINISHES = "the next save, rewind, restore, undo or redo there finishes it"
WHOLE = ["--what", "messages,scratchpad,files"]
Cut = Callable[[bool], Path]


@pytest.fixture
def cut(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cut:
    """Cuts a rewind of a directory off, after or before its commit point; the directory."""
    work = tmp_path / "work"
    work.mkdir()
    for turn in ("one", "two"):
        for n in range(3):
            (work / f"file {n}").write_text(f"{turn} {n}")
        shell.ok("save", "-s", "s", "-m", turn, "--worktree", str(work))

    def fails(_: object) -> None:
        raise OSError("killed")

    def cut_off(finishes: bool) -> Path:
        with monkeypatch.context() as patch:
            patch.setattr(restore._Work, "end", fails)
            if not finishes:
                patch.setattr(restore._Work, "back", lambda self: None)
                patch.setattr(restore.Applier, "run", _half(restore.Applier.run))
            assert shell("rewind", "s@1", *WHOLE).code != 0
        return work

    return cut_off


def _half(run: Callable[[restore.Applier], None]) -> Callable[[restore.Applier], None]:
    def half(applier: restore.Applier) -> None:
        run(applier)
        raise OSError("killed")

    return half


def restore_row(shown: Result) -> str:
    """What status says of restores."""
    (row,) = [line for line in shown.lines if line.startswith("restore")]
    return row


@pytest.mark.parametrize(("finishes", "advice"), [(False, TAKES_BACK), (True, FINISHES)])
def test_status_and_doctor_tell_of_it_and_what_ends_it(
    shell: Shell, cut: Cut, finishes: bool, advice: str
) -> None:
    work = cut(finishes)
    assert restore_row(shell.ok("status")).endswith(f"; {advice}")
    assert f"a restore of {work} was cut off" in restore_row(shell.ok("status"))
    expected = {"worktree": str(work), "finishes": finishes, "at_work": False}
    assert shell.ok("status", "--json").json["interrupted_restores"] == [expected]
    result = shell("doctor", "--json")
    (sign,) = [sign for sign in result.json["signs"] if not sign["well"]]
    assert result.code == 1 and sign["advice"] == advice
    assert list(work.glob(".snapstore-restore-*"))  # looking settles nothing


@pytest.mark.parametrize(
    ("finishes", "told", "turn"), [(False, "taken back", 2), (True, "finished", 1)]
)
@pytest.mark.parametrize(
    "command",
    [["save", "-s", "s"], ["rewind", "s", *WHOLE], ["restore", "s"], ["restore", "s", "--dry-run"]],
    ids=" ".join,
)
def test_the_command_that_settles_it_says_so(
    shell: Shell, cut: Cut, command: list[str], finishes: bool, told: str, turn: int
) -> None:
    work = cut(finishes)
    shown = shell.ok(*command)
    assert f"warning: a restore of {work} had been cut off, and was {told} first" in shown.err
    expected = {1: "one 0", 2: "two 0"}[turn]
    assert (work / "file 0").read_text() == expected
    assert not list(work.glob(".snapstore-restore-*"))
    assert "cut off" not in shell.ok(*command).err
    assert shell.ok("status", "--json").json["interrupted_restores"] == []
    assert shell("doctor").code == 0


def test_one_that_is_at_work_is_not_told_as_cut_off(shell: Shell, cut: Cut) -> None:
    work = cut(False)
    with Local(shell.store).locked(os.fsencode(work)):
        assert f"a restore of {work} is at work" in restore_row(shell.ok("status"))
        assert shell("doctor").code == 0


def test_the_directory_may_be_gone(shell: Shell, cut: Cut) -> None:
    work = cut(False)
    work.rename(work.with_name("moved"))
    (sign,) = [sign for sign in shell("doctor", "--json").json["signs"] if not sign["well"]]
    assert sign["advice"] == "that directory is not there: bring it back to where it was"


def test_one_whose_journal_is_damaged_is_told_by_status_too(shell: Shell, cut: Cut) -> None:
    cut(False)
    (journal,) = (shell.store / "restore").glob("*.journal")
    DISK.write_file(journal, journal.read_bytes()[:-1])
    assert "`snapstore repair --apply`" in restore_row(shell.ok("status"))
