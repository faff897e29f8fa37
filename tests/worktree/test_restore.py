"""What a restore brings back, what it deletes, what it leaves alone, and when it refuses."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest
from nobody import as_nobody
from overdisk import OpenStore
from pictures import differing, fill, picture, stamps

import snapstore
from snapstore import NotFound, ObjectMissing, Refused, Session, Store
from snapstore.worktree import moves


def turn(session: Session, label: str = "") -> dict[str, tuple[object, ...]]:
    """Save, and what there was to save."""
    session.save(label)
    assert session.worktree is not None
    return picture(session.worktree)


# --- it is exact ----------------------------------------------------------------------------------


def test_edits_creations_deletions_and_modes_made_by_anyone_go_back(
    session: Session, work: Path
) -> None:
    fill(work, {"edited": "1", "removed": "1", "chmod": "1", "a/b/c": "1"})
    (work / "chmod").chmod(0o640)
    one = turn(session)
    fill(work, {"edited": "2", "removed": None, "new/x": "2"})
    (work / "chmod").chmod(0o755)
    shutil.rmtree(work / "a")
    turn(session)
    session.rewind(1, files=True)
    assert differing(picture(work), one) == []
    assert session.restored is not None
    assert session.restored.deleted == ("new", "new/x")
    assert session.restored.written == ("a", "a/b", "a/b/c", "chmod", "edited", "removed")


@pytest.mark.parametrize(
    "content",
    [b"one\r\ntwo\r\n", b"one\r\ntwo\nthree", b"\xef\xbb\xbfbom", b"", b"\0\xff" * 50_000],
)
def test_contents_come_back_to_the_byte(session: Session, work: Path, content: bytes) -> None:
    fill(work, {"f": content})
    session.save()
    fill(work, {"f": "changed"})
    session.restore(1)
    assert (work / "f").read_bytes() == content


@pytest.mark.parametrize("mode", [0o400, 0o444, 0o600, 0o644, 0o755, 0o000, 0o4755])
def test_modes_come_back_exactly_and_are_never_wider_on_the_way(
    session: Session, work: Path, mode: int
) -> None:
    fill(work, {"f": "secret"})
    (work / "f").chmod(mode)
    one = turn(session)
    (work / "f").unlink()
    fill(work, {"f": "other"})
    old = os.umask(0)
    try:
        session.restore(1)
    finally:
        os.umask(old)
    assert picture(work) == one


def test_files_directories_and_links_swap(session: Session, work: Path, tmp_path: Path) -> None:
    fill(work, {"a": "file", "b/in": "dir", "c": "file", "target/x": "x"})
    (work / "d").symlink_to("target")
    (work / "e").symlink_to("dangling")
    one = turn(session)
    for name in ("a", "c", "d", "e"):
        (work / name).unlink()
    shutil.rmtree(work / "b")
    fill(work, {"a/in": "dir", "b": "file", "d/in": "dir", "e": "file"})
    (work / "c").symlink_to("a")
    two = turn(session)
    session.rewind(1, files=True)
    assert differing(picture(work), one) == []
    session.undo()
    assert differing(picture(work), two) == []


def test_a_hard_link_is_broken_and_its_other_name_left_alone(
    session: Session, work: Path, tmp_path: Path
) -> None:
    fill(work, {"f": "one"})
    session.save()
    fill(tmp_path, {"other": "two"})
    (work / "f").unlink()
    os.link(tmp_path / "other", work / "f")
    (work / "f").chmod(0o600)
    session.restore(1)
    assert (work / "f").read_text() == "one"
    assert (tmp_path / "other").read_text() == "two"
    assert (tmp_path / "other").stat().st_nlink == 1


def test_an_empty_project_can_be_gone_back_to(session: Session, work: Path) -> None:
    session.save()
    fill(work, {"a/b": "x"})
    session.save()
    session.rewind(1, files=True)
    assert list(work.iterdir()) == []


def test_where_nothing_differs_nothing_is_written_and_no_move_made(
    session: Session, work: Path, store: Store
) -> None:
    fill(work, {"a/b": "x", "c": "y"})
    session.save()
    before, moved = stamps(work), list(store.engine.reflog())
    session.restore(1)
    assert stamps(work) == before
    assert list(store.engine.reflog()) == moved


def test_only_what_differs_is_touched(session: Session, work: Path) -> None:
    fill(work, {"same": "x", "d/same": "y", "d/edited": "1"})
    session.save()
    fill(work, {"d/edited": "2"})
    before = stamps(work)
    session.restore(1)
    after = stamps(work)
    changed = {Path(p).name for p in before if before[p] != after[p]}
    assert changed == {"d", "edited"}


def test_a_deleted_project_is_made_again_when_forced(
    session: Session, work: Path, store: Store
) -> None:
    fill(work, {"a/b": "x"})
    one = turn(session)
    shutil.rmtree(work)
    dry = moves.restore_files(store, "s", session.at(1), force=True, dry_run=True)
    assert dry.made == {"a", "a/b"} and not work.exists()
    assert session.restore(1, force=True) == dry
    assert picture(work) == one


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become an ordinary user")
def test_read_only_directories_are_no_obstacle_to_their_owner(nobodys: Path) -> None:
    session = snapstore.open("memory://").session("s")
    session.worktree = nobodys
    with as_nobody():
        fill(nobodys, {"ro/a": "1", "ro/deep/b": "1", "gone/x": "1"})
        for name in ("ro/deep", "ro", "gone", ""):
            (nobodys / name).chmod(0o555)
        one = turn(session)
        for name in ("", "ro", "ro/deep", "gone"):
            (nobodys / name).chmod(0o755)
        fill(nobodys, {"ro/a": "2", "ro/deep/b": None, "ro/deep/new": "2"})
        shutil.rmtree(nobodys / "gone")
        for name in ("ro/deep", "ro", ""):
            (nobodys / name).chmod(0o500)
        two = turn(session)
        session.rewind(1, files=True)
        assert differing(picture(nobodys), one) == []
        assert nobodys.stat().st_mode & 0o777 == 0o555
        session.undo()
        assert differing(picture(nobodys), two) == []
        (nobodys).chmod(0o755)
        for name in ("ro", "ro/deep"):
            (nobodys / name).chmod(0o755)


# --- what stays -----------------------------------------------------------------------------------


def test_what_no_turn_knew_and_what_is_ignored_stays_and_is_listed(
    session: Session, work: Path
) -> None:
    fill(work, {".gitignore": "build/\n*.log", "a": "1"})
    session.save()
    fill(work, {"a": "2", "known/x": "2"})
    session.save()
    fill(work, {"mine": "by hand", "known/mine": "by hand", "build/o": "", "x.log": ""})
    session.rewind(1, files=True)
    assert session.restored is not None
    assert session.restored.deleted == ("known/x",)
    assert session.restored.kept == ("build", "known", "known/mine", "mine", "x.log")
    assert (work / "mine").read_text() == (work / "known/mine").read_text() == "by hand"


def test_a_path_is_known_if_any_turn_holds_it_also_one_that_was_rewound_away(
    session: Session, work: Path
) -> None:
    session.save()
    fill(work, {"d/once": "x"})
    session.save()
    session.rewind(1, files=True)
    session.history.append({"role": "user", "content": "another line"})
    session.save()
    fill(work, {"d/once": "again", "d/never": "y"})
    session.restore(1)
    assert not (work / "d/once").exists() and (work / "d/never").exists()


def test_captures_made_by_the_way_make_nothing_known(session: Session, work: Path) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2", "mine": "x"})
    session.restore(1)  # captures mine first
    fill(work, {"a": "2"})
    session.restore(1)
    assert (work / "mine").exists()


def test_turns_of_another_directory_make_nothing_known(
    session: Session, work: Path, store: Store, tmp_path: Path
) -> None:
    fill(tmp_path, {"other/shared": "x"})
    elsewhere = store.session("elsewhere")
    elsewhere.worktree = tmp_path / "other"
    elsewhere.save()
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2", "shared": "by hand"})
    session.restore(1)
    assert (work / "shared").read_text() == "by hand"


def test_what_the_rules_of_the_wanted_turn_leave_out_is_not_deleted(
    session: Session, work: Path
) -> None:
    fill(work, {".gitignore": "data/\n", "data/big": "kept out"})
    session.save()
    fill(work, {".gitignore": ""})
    session.save()  # holds data/big, so it is known
    session.rewind(1, files=True)
    assert (work / "data/big").read_text() == "kept out"


def test_repositories_are_never_touched(session: Session, work: Path) -> None:
    fill(work, {"sub/.git/HEAD": "one", "sub/code": "1", "top": "1"})
    session.save()
    fill(work, {"sub/.git/HEAD": "two", "sub/code": None, "more/.git/HEAD": "x", "more/c": "2"})
    session.save()
    session.rewind(1, files=True)
    assert (work / "sub/.git/HEAD").read_text() == "two"
    assert (work / "more/.git/HEAD").exists() and not (work / "more/c").exists()


def test_sockets_and_fifos_stay(session: Session, work: Path) -> None:
    fill(work, {"a": "1"})
    session.save()
    os.mkfifo(work / "pipe")
    os.chdir(work)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("sock")
    fill(work, {"a": "2"})
    session.save()
    session.rewind(1, files=True)
    assert {p.name for p in work.iterdir()} == {"a", "pipe", "sock"}
    assert session.restored is not None and session.restored.kept == ("pipe", "sock")


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become an ordinary user")
def test_what_a_partial_turn_lacks_is_neither_brought_back_nor_deleted(nobodys: Path) -> None:
    session = snapstore.open("memory://").session("s")
    session.worktree = nobodys
    with as_nobody():
        fill(nobodys, {"a": "1", "closed/in": "1", "file": "1"})
        (nobodys / "closed").chmod(0)
        (nobodys / "file").chmod(0)
        assert session.save().partial
        (nobodys / "closed").chmod(0o755)
        (nobodys / "file").chmod(0o644)
        fill(nobodys, {"a": "2", "file": "2"})
        session.save()
        session.rewind(1, files=True)
        assert (nobodys / "a").read_text() == "1"
        assert (nobodys / "closed/in").read_text() == "1" and (nobodys / "file").read_text() == "2"


# --- when it refuses ------------------------------------------------------------------------------


def test_an_ignored_file_in_the_way_is_a_reason_to_refuse_and_force_goes_on(
    session: Session, work: Path
) -> None:
    fill(work, {"out/x": "1", "same": "equal"})
    one = turn(session)
    fill(work, {".gitignore": "out\nsame\n", "out/x": "nobody else holds this"})
    session.save()
    before = stamps(work)
    with pytest.raises(Refused) as refused:
        session.rewind(1, files=True)
    assert "out/x" in str(refused.value) and "same" not in str(refused.value)
    assert stamps(work) == before and session.turn == 2
    session.rewind(1, files=True, force=True)
    assert differing(picture(work), one) == []


def test_a_socket_in_the_way_is_a_reason_to_refuse(session: Session, work: Path) -> None:
    fill(work, {"a": "1"})
    one = turn(session)
    (work / "a").unlink()
    os.mkfifo(work / "a")
    with pytest.raises(Refused):
        session.restore(1)
    session.restore(1, force=True)
    assert picture(work) == one


def test_unknown_files_in_a_directory_that_must_become_a_file_are_a_reason_to_refuse(
    session: Session, work: Path
) -> None:
    fill(work, {"x": "file"})
    one = turn(session)
    (work / "x").unlink()
    fill(work, {"x/known": "2"})
    session.save()
    fill(work, {"x/mine": "by hand", "x/sub/.git/HEAD": "ref"})
    with pytest.raises(Refused) as refused:
        session.rewind(1, files=True)
    assert "x/mine" in str(refused.value)
    session.rewind(1, files=True, force=True)
    assert picture(work) == one


def test_edits_by_hand_are_no_reason_to_refuse_for_undo_brings_them_back(
    session: Session, work: Path
) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    session.save()
    fill(work, {"a": "by hand"})
    session.rewind(1, files=True)
    session.undo()
    assert (work / "a").read_text() == "by hand"


def test_a_turn_without_files_says_so(store: Store) -> None:
    session = store.session("s")
    session.save()
    for restore in (lambda: session.rewind(1, files=True), lambda: session.restore(1)):
        with pytest.raises(NotFound) as missing:
            restore()
        assert "turn 1 holds no files" in str(missing.value)


def test_content_that_is_missing_is_found_out_before_anything_is_touched(
    session: Session, work: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(work, {f"f{n}": f"{n}" for n in range(20)})
    saved = session.save()
    assert saved.files is not None
    lost = saved.files["f7"].id
    fill(work, {f"f{n}": "changed" for n in range(20)})
    session.save()
    before = stamps(work)
    read = store.engine.read

    def losing(object_id: bytes) -> object:
        if object_id.hex() == lost:
            raise ObjectMissing(object_id)
        return read(object_id)

    monkeypatch.setattr(store.engine, "read", losing)
    with pytest.raises(ObjectMissing):
        session.rewind(1, files=True)
    assert stamps(work) == before and session.turn == 2


def test_a_file_that_changes_during_the_restore_is_not_lost(
    session: Session, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from snapstore.worktree.apply import Applier

    fill(work, {"a": "1", "b": "1"})
    session.save()
    fill(work, {"a": "2", "b": "2"})
    session.save()
    run = Applier.run

    def late_edit(self: Applier) -> None:
        fill(work, {"b": "edited at the last moment"})
        run(self)

    monkeypatch.setattr(Applier, "run", late_edit)
    with pytest.raises(Refused):
        session.rewind(1, files=True)
    assert (work / "a").read_text() == "2"
    assert (work / "b").read_text() == "edited at the last moment"
    assert session.turn == 2


# --- nothing out of the root ----------------------------------------------------------------------


def test_a_directory_swapped_for_a_link_is_replaced_and_not_written_through(
    session: Session, work: Path, tmp_path: Path
) -> None:
    fill(work, {"d/f": "1", "d/e/g": "1"})
    one = turn(session)
    fill(tmp_path, {"outside/f": "not ours", "outside/e/g": "not ours"})
    shutil.rmtree(work / "d")
    (work / "d").symlink_to(tmp_path / "outside")
    session.restore(1)
    assert picture(work) == one
    assert (tmp_path / "outside/f").read_text() == "not ours"
    assert (tmp_path / "outside/e/g").read_text() == "not ours"


@pytest.mark.parametrize("step", ["stage", "run"])
def test_a_directory_swapped_for_a_link_in_between_fails_and_reaches_nothing(
    session: Session, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    from snapstore.worktree.apply import Applier

    fill(work, {"d/f": "1", "d/g": "1"})
    session.save()
    fill(work, {"d/f": "2", "d/g": None, "d/new": "2"})
    session.save()
    fill(tmp_path, {"outside/f": "not ours", "outside/new": "not ours"})
    real = getattr(Applier, step)

    def swapping(self: Applier, *args: object) -> None:
        (work / "d").rename(work / "was")
        (work / "d").symlink_to(tmp_path / "outside")
        real(self, *args)

    monkeypatch.setattr(Applier, step, swapping)
    with pytest.raises(OSError):
        session.rewind(1, files=True)
    assert picture(tmp_path / "outside").keys() == {"f", "new"}
    assert (work / "was/f").read_text() == "2" and (work / "was/new").exists()
    assert session.turn == 2


# --- some of it, and elsewhere --------------------------------------------------------------------


def test_single_paths_are_restored_and_nothing_else(session: Session, work: Path) -> None:
    fill(work, {"a": "1", "b": "1", "d/x": "1", "d/e/y": "1"})
    session.save()
    shutil.rmtree(work / "d")
    fill(work, {"a": "2", "b": "2"})
    session.save()
    done = session.restore(1, ["a", "d/e"])
    assert done.written == ("a", "d", "d/e", "d/e/y")
    assert (work / "b").read_text() == "2" and not (work / "d/x").exists()
    session.undo()
    assert (work / "a").read_text() == "2" and not (work / "d").exists()


def test_a_path_is_also_given_absolute_and_must_lie_in_the_directory(
    session: Session, work: Path
) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    assert session.restore(1, [str(work / "a")]).written == ("a",)
    for path in ("../a", "/etc/passwd", "missing"):
        with pytest.raises(NotFound):
            session.restore(1, [path])


def test_restoring_elsewhere_gives_the_same_tree_and_leaves_the_project_alone(
    session: Session, work: Path, store: Store, tmp_path: Path
) -> None:
    fill(work, {"a/b": "1", "c": "1"})
    (work / "c").chmod(0o600)
    one = turn(session)
    fill(work, {"c": "2"})
    before, head = stamps(work), session.head
    assert session.at(1).files is not None
    done = moves.restore_to(store, session.at(1), tmp_path / "new/copy")
    assert done.written == ("a", "a/b", "c")
    assert picture(tmp_path / "new/copy") == one
    assert stamps(work) == before and session.head == head


def test_restoring_elsewhere_overwrites_nothing_unless_forced(
    session: Session, work: Path, store: Store, tmp_path: Path
) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(tmp_path, {"copy/a": "something else", "copy/b": "unrelated"})
    with pytest.raises(Refused):
        moves.restore_to(store, session.at(1), tmp_path / "copy")
    assert (tmp_path / "copy/a").read_text() == "something else"
    moves.restore_to(store, session.at(1), tmp_path / "copy", force=True)
    assert (tmp_path / "copy/a").read_text() == "1"
    assert (tmp_path / "copy/b").read_text() == "unrelated"


def test_restoring_elsewhere_again_finds_nothing_in_the_way(
    session: Session, work: Path, store: Store, tmp_path: Path
) -> None:
    fill(work, {"a/b": "1", "c": "1"})
    session.save()
    copy = tmp_path / "copy"
    moves.restore_to(store, session.at(1), copy)
    assert moves.restore_to(store, session.at(1), copy).written == ()
    os.utime(copy / "c", ns=(1, 1))
    assert moves.restore_to(store, session.at(1), copy).written == ("c",)
    (copy / "c").write_text("edited")
    dry = moves.restore_to(store, session.at(1), copy, dry_run=True)
    assert dry.written == dry.in_the_way == ("c",)
    assert (copy / "c").read_text() == "edited"
    with pytest.raises(Refused) as refused:
        moves.restore_to(store, session.at(1), copy)
    assert "--force" in refused.value.hint


def test_what_was_done_tells_new_from_changed_and_directories_from_files(
    session: Session, work: Path
) -> None:
    fill(work, {"same": "1", "edited": "1", "d/e": "1", "became": "a file"})
    session.save()
    fill(work, {"edited": "2", "d/e": None, "became": None, "x/y": "2"})
    (work / "d").rmdir()
    fill(work, {"became/z": "2"})
    session.save()
    done = session.restore(1)
    assert done.written == ("became", "d", "d/e", "edited") and done.made == {"d", "d/e"}
    assert done.deleted == ("became/z", "x", "x/y") and done.folders == {"d", "x"}
    session.undo()
    assert session.restored is not None
    assert session.restored.folders == {"became", "d", "x"}
    both = done.and_then(session.restored)
    assert "d" not in both.made and both.deleted == ("d", "d/e")


def test_a_dry_run_says_the_same_and_touches_nothing(
    session: Session, work: Path, store: Store
) -> None:
    fill(work, {"a": "1", "b/c": "1"})
    session.save()
    fill(work, {"a": "2", "b/c": None, "d": "2"})
    session.save()
    before, moved = stamps(work), list(store.engine.reflog())
    objects = store.engine.stats().objects
    dry = moves.rewind(store, "s", session.at(1), dry_run=True)
    assert stamps(work) == before and list(store.engine.reflog()) == moved
    assert store.engine.stats().objects == objects
    session.rewind(1, files=True)
    assert session.restored == dry


def test_saving_and_restoring_write_nothing_into_any_repository(
    open_store: OpenStore, work: Path
) -> None:
    fill(work, {".git/config": "x", ".git/objects/ab/cd": "y", "f": "1"})
    before = {p: v for p, v in stamps(work).items() if "/.git" in p}
    session = open_store().session("s")
    session.worktree = work
    session.save()
    fill(work, {"f": "2"})
    session.restore(1)
    assert {p: v for p, v in stamps(work).items() if "/.git" in p} == before
