"""A restore was killed, and its journal damaged since: its files come to where they are seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from frail import Died, DyingDisk
from overdisk import OpenStore
from pictures import fill

from snapstore import Corrupt, Session, Store
from snapstore.maintenance.doctor import examine
from snapstore.maintenance.repair import repair
from snapstore.maintenance.stranded import RESCUED, stranded
from snapstore.worktree import moves
from snapstore.worktree.listing import STAGING

BEFORE = {f"file {n}": f"before {n}" for n in range(6)}


def killed(open_store: OpenStore, work: Path, *, bound: bool = True) -> Path:
    """Leave a restore half way, with files moved out, and damage its journal; the journal."""
    session = open_store().session("s")
    session.worktree = work
    fill(work, {name: f"turn 1, {name}" for name in BEFORE})
    session.save("one")
    there = work if bound else work.parent / "elsewhere"
    there.mkdir(exist_ok=True)
    fill(there, dict(BEFORE))
    session.save("two")
    for at in range(400):
        store = open_store(DyingDisk(at))
        try:
            if bound:
                store.session("s").rewind(1, files=True)
            else:
                moves.restore_to(store, store.resolve("s@1"), there, force=True)
        except Died:
            held = [p for folder in there.glob(f"{STAGING.decode()}*") for p in folder.glob("o*")]
            if len(held) >= 3:
                break
            with open_store().worktree(there).exclusive():
                continue  # it is taken back
        else:
            raise AssertionError("it came to its end before it was half way")
    (journal,) = (work.parent / "store" / "restore").glob("*.journal")
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 0xFF
    journal.write_bytes(data)
    return journal


def texts(folder: Path) -> set[str]:
    """What the files in a directory and below it hold."""
    return {path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_whoever_comes_next_is_told_where_the_files_are_and_what_to_do(
    open_store: OpenStore, work: Path
) -> None:
    journal = killed(open_store, work)
    (staging,) = work.glob(f"{STAGING.decode()}*")
    for step in (Session.save, lambda session: session.rewind(1, files=True)):
        with pytest.raises(Corrupt) as told:
            step(open_store().session("s"))
        assert told.value.path == str(journal)
        assert str(staging) in told.value.hint and "snapstore repair --apply" in told.value.hint
    (sign,) = [sign for sign in examine(open_store()) if not sign.well]
    assert str(staging) in sign.text and "snapstore repair" in sign.advice


def test_a_repair_shows_it_and_then_brings_everything_back(
    open_store: OpenStore, work: Path
) -> None:
    journal = killed(open_store, work)
    before, damaged = texts(work), journal.read_bytes()
    (shown,) = repair(open_store()).stranded
    assert (shown.journal, shown.worktree) == (journal, work)
    assert journal.exists() and all(folder.is_dir() for folder in shown.folders)
    (done,) = repair(open_store(), apply=True).stranded
    assert [folder.name.startswith(RESCUED) for folder in done.folders] == [True]
    assert texts(work) == before >= set(BEFORE.values())
    (aside,) = (work.parent / "store" / "damaged").iterdir()
    assert aside.read_bytes() == damaged
    assert stranded(open_store()) == []
    works(open_store(), work)


def works(store: Store, work: Path) -> None:
    """The directory can be saved and restored again."""
    session = store.session("s")
    session.save("after")
    session.rewind(1, files=True)
    assert (work / "file 1").read_text() == "turn 1, file 1"
    session.undo()


def test_a_repair_that_was_cut_off_is_done_again(open_store: OpenStore, work: Path) -> None:
    killed(open_store, work)
    before = texts(work)
    for at in range(60):
        try:
            done = repair(open_store(DyingDisk(at)), apply=True)
        except Died:
            continue
        break
    assert done.applied and stranded(open_store()) == [] and texts(work) == before
    works(open_store(), work)


def test_a_directory_that_no_session_is_bound_to_must_be_named(
    open_store: OpenStore, work: Path
) -> None:
    journal = killed(open_store, work, bound=False)
    (unknown,) = stranded(open_store())
    assert (unknown.journal, unknown.worktree, unknown.folders) == (journal, None, ())
    (found,) = stranded(open_store(), [work.parent / "elsewhere"])
    assert found.worktree == work.parent / "elsewhere" and found.folders


def test_where_no_journal_is_damaged_there_is_nothing(open_store: OpenStore, work: Path) -> None:
    session = open_store().session("s")
    session.worktree = work
    session.save("one")
    assert repair(open_store()).stranded == ()
