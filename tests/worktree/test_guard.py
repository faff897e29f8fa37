"""Directories that are refused unless forced, and what a session is bound to."""

from __future__ import annotations

from pathlib import Path

import pytest
from overdisk import OpenStore
from pictures import fill

from snapstore import NotFound, Refused, Store
from snapstore.worktree.guard import refuse_too_much


@pytest.mark.parametrize(
    "path",
    ["/", "/home", "/usr", "/etc", "/tmp", "/h/me", "/h"]
    + [f"/h/me/{name}" for name in ("Desktop", "Documents", "Downloads")],
)
def test_homes_disks_and_folders_for_everything_are_refused(path: str) -> None:
    with pytest.raises(Refused) as refused:
        refuse_too_much(Path(path), home=Path("/h/me"))
    assert "force" in refused.value.hint


@pytest.mark.parametrize("path", ["/h/me/project", "/h/me/Documents/paper", "/srv/app", "/tmp/x"])
def test_projects_are_not(path: str) -> None:
    refuse_too_much(Path(path), home=Path("/h/me"))


def test_binding_a_home_needs_force(store: Store, work: Path) -> None:
    session = store.session("s")
    with pytest.raises(Refused):
        session.bind(work, home=work)
    assert session.worktree is None
    session.bind(work, home=work, force=True)
    assert session.worktree == work


def test_a_directory_that_is_not_there_cannot_be_bound(store: Store, work: Path) -> None:
    fill(work, {"file": ""})
    for path in (work / "missing", work / "file"):
        with pytest.raises(NotFound):
            store.session("s").worktree = path


def test_a_store_cannot_capture_itself(open_store: OpenStore) -> None:
    store = open_store()
    store.engine.create()
    assert store.local is not None
    session = store.session("s")
    session.worktree = store.local.root / "log"
    with pytest.raises(Refused):
        session.save()


def test_head_remembers_the_directory_and_later_saves_capture_it_again(
    open_store: OpenStore, work: Path
) -> None:
    session = open_store().session("s")
    session.worktree = work
    session.save()
    fill(work, {"a": "x"})
    session = open_store().session("s")
    assert session.worktree == work
    assert set(session.save().files or ()) == {"a"}
    session.worktree = None
    assert session.save().files is None


def test_a_link_to_a_directory_binds_what_it_leads_to(
    store: Store, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "alias").symlink_to(work)
    session = store.session("s")
    session.worktree = tmp_path / "alias"
    assert session.save().worktree == str(work)


def test_where_the_directory_is_not_on_this_machine_turns_go_on_with_the_files_of_head(
    open_store: OpenStore, work: Path
) -> None:
    session = open_store().session("s")
    session.worktree = work
    fill(work, {"a": "x"})
    first = session.save()
    work.rename(work.with_name("moved"))
    session = open_store().session("s")
    session.history.append({"role": "user", "content": "elsewhere"})
    second = session.save()
    assert second.files == first.files and second.worktree == first.worktree


def test_another_directory_with_the_same_files_is_a_new_turn(
    store: Store, work: Path, tmp_path: Path
) -> None:
    session = store.session("s")
    session.worktree = work
    session.save()
    (tmp_path / "copy").mkdir()
    session.worktree = tmp_path / "copy"
    assert session.save().worktree == str(tmp_path / "copy")
    assert session.turn == 2
