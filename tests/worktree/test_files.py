"""The files of a turn as a mapping, and how those of two turns differ."""

from __future__ import annotations

from pathlib import Path

import pytest
from pictures import fill

from snapstore import Corrupt, NotFound, Session, Store
from snapstore.engine import Kind, Obj
from snapstore.worktree.files import content_of


def test_files_are_a_mapping_of_full_paths(session: Session, work: Path) -> None:
    fill(work, {"a/b/c": "deep", "a/d": "x", "e": "y"})
    files = session.save().files
    assert files is not None
    assert list(files) == ["a", "a/b", "a/b/c", "a/d", "e"] and len(files) == 5
    assert files["a/b/c"].size == 4 and "a/b" in files and "a/x" not in files
    assert files.get("a/b/c/d") is None and "" not in files
    with pytest.raises(KeyError):
        files["nothing"]
    assert [path for path, _ in files.entries("a/b")] == ["a/b/c"]


def test_what_has_no_content_cannot_be_read(session: Session, work: Path) -> None:
    fill(work, {"a/b": "x"})
    (work / "link").symlink_to("a/b")
    files = session.save().files
    assert files is not None
    for path in ("a", "link", "nothing"):
        with pytest.raises(NotFound):
            files.read(path)


def test_files_are_equal_when_all_is(session: Session, work: Path) -> None:
    fill(work, {"a": "x"})
    one = session.save()
    two = session.save("same files")
    fill(work, {"a": "z"})
    three = session.save()
    assert one.files == two.files == dict(one.files or {}) and two.files != three.files


def test_a_file_from_outside_the_calendar_has_no_time(session: Session, work: Path) -> None:
    import os

    fill(work, {"a": "x"})
    os.utime(work / "a", ns=(0, -(2**62)))
    files = session.save().files
    assert files is not None and (files["a"].mtime is None or files["a"].mtime.year < 1970)


def test_chunks_that_make_up_something_else_are_damage(store: Store) -> None:
    piece, whole = bytes(range(32)), b"w" * 32
    store.engine.commit([Obj(piece, Kind.CONTENT, b"x"), Obj(whole, Kind.CHUNKED, piece)])
    with pytest.raises(Corrupt):
        list(content_of(store.objects, whole))


def test_a_diff_sorts_paths_into_added_removed_changed_and_renamed(
    session: Session, work: Path, store: Store
) -> None:
    fill(work, {"same": "s", "edited": "1", "old/name": "content", "gone": "g", "empty1": ""})
    one = session.save()
    fill(work, {"edited": "2", "gone": None, "empty1": None, "empty2": "", "new/x": "n"})
    (work / "old/name").rename(work / "new/name")
    two = session.save()
    found = store.diff(one, two).files
    assert found is not None
    assert set(found.added) == {"new", "new/name", "new/x", "empty2"}
    assert set(found.removed) == {"old/name", "gone", "empty1"}
    assert set(found.changed) == {"edited"}
    assert found.renamed == {"new/name": "old/name"}, "an empty file says nothing of where it was"
    back = store.diff(two, one).files
    assert back is not None and set(back.added) == set(found.removed)
    assert not store.diff(one, one).files and store.diff(one, one).equal


def test_files_make_a_difference_and_turns_without_have_none(
    session: Session, work: Path, store: Store
) -> None:
    fill(work, {"a": "x"})
    with_files = session.save()
    session.worktree = None
    without = session.save("no files")
    last = session.save("none again")
    found = store.diff(with_files, without)
    assert found.files is not None and set(found.files.removed) == {"a"} and not found.equal
    assert store.diff(without, last).files is None


def test_a_session_tells_how_its_directory_differs_from_head(session: Session, work: Path) -> None:
    assert session.files_diff() is None
    fill(work, {"a": "1", "b": "1"})
    session.save()
    assert not session.files_diff()
    fill(work, {"a": "2", "b": None, "c": "2"})
    found = session.files_diff()
    assert found is not None
    assert (set(found.added), set(found.removed), set(found.changed)) == ({"c"}, {"b"}, {"a"})
