"""What a capture holds, what it only lists, and what it need not look at."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nobody import as_nobody
from overdisk import OpenStore
from pictures import fill, stamps

import snapstore
from snapstore import Locked, Refused, Session, Store
from snapstore.worktree import reading, statcache
from snapstore.worktree.capture import Limits
from snapstore.worktree.directory import Worktree
from snapstore.worktree.reading import store_file


def kinds(session: Session, label: str | None = None) -> dict[str, str]:
    """Path -> kind of what a save holds."""
    files = session.save(label).files
    assert files is not None
    return {path: entry.kind for path, entry in files.entries()}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the files that captures have read."""
    names: list[str] = []

    def counting(fd: int, *args: Any) -> Any:
        names.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        return store_file(fd, *args)

    monkeypatch.setattr("snapstore.worktree.capture.store_file", counting)
    yield names


def settled(work: Path) -> None:
    """Let the tick of the clock pass in which files are racy."""
    time.sleep(2.5 * statcache.TICK / 1e9)


# --- what it holds --------------------------------------------------------------------------------


def test_every_kind_of_entry_is_held_or_at_least_listed(session: Session, work: Path) -> None:
    fill(work, {"a/b": "x"})
    (work / "empty").mkdir()
    (work / "link").symlink_to("nowhere")
    (work / "to_dir").symlink_to("a")
    os.mkfifo(work / "pipe")
    with socket.socket(socket.AF_UNIX) as open_socket:
        os.chdir(work)  # the path of a socket may not be long
        open_socket.bind("sock")
    assert kinds(session) == {
        "a": "dir", "a/b": "file", "empty": "dir", "link": "symlink", "to_dir": "symlink",
        "pipe": "fifo", "sock": "socket",
    }  # fmt: skip
    assert session.head is not None and not session.head.partial


def test_an_entry_tells_mode_size_time_and_content(session: Session, work: Path) -> None:
    fill(work, {"run.sh": "#!/bin/sh\n"})
    (work / "run.sh").chmod(0o4751)
    os.utime(work / "run.sh", ns=(1, 1_234_567_890_123_456_789))
    files = session.save().files
    assert files is not None
    entry = files["run.sh"]
    assert (entry.mode, entry.size, entry.kind) == (0o4751, 10, "file")
    assert entry.mtime is not None and entry.mtime.timestamp() == 1234567890.123456
    assert files.read("run.sh") == b"#!/bin/sh\n"


@pytest.mark.parametrize(
    "name", [b"bad\xff\xfename", b"new\nline", "caf\u00e9 \U0001f600".encode()]
)
def test_names_are_any_bytes(session: Session, work: Path, name: bytes) -> None:
    os.close(os.open(os.fsencode(work) + b"/" + name, os.O_CREAT | os.O_WRONLY))
    assert kinds(session) == {os.fsdecode(name): "file"}


def test_repositories_and_stores_are_no_part_of_it_wherever_they_lie(
    session: Session, work: Path
) -> None:
    fill(work, {".git/HEAD": "ref", "nested/.git/HEAD": "ref", "nested/code.py": "x"})
    fill(work, {"module/.git": "gitdir: elsewhere", ".snapstore/FORMAT": "x", "a/.snapstore/x": ""})
    assert kinds(session) == {
        "nested": "dir", "nested/code.py": "file", "module": "dir", "a": "dir",
    }  # fmt: skip


def test_the_store_itself_is_never_captured_whatever_its_name(work: Path) -> None:
    fill(work, {"a": "x" * 100, "big": os.urandom(reading.PORTION + 1)})
    with snapstore.open(work / "deep/state", durable=False) as store:
        session = store.session("s")
        session.worktree = work
        assert kinds(session) == {"a": "file", "big": "file", "deep": "dir"}
        assert kinds(session, "again") == {"a": "file", "big": "file", "deep": "dir"}


def test_nothing_captured_and_nothing_there_are_told_apart(store: Store, work: Path) -> None:
    empty, without = store.session("empty"), store.session("without")
    empty.worktree = work
    files = empty.save().files
    assert files is not None and dict(files) == {}
    assert without.save().files is None


def test_a_capture_writes_nothing_into_the_directory(session: Session, work: Path) -> None:
    fill(work, {"a/b": "x", "c": "y", ".git/index": "z"})
    before = stamps(work), work.stat().st_mtime_ns
    session.save()
    assert (stamps(work), work.stat().st_mtime_ns) == before


def test_a_tree_that_another_restore_left_half_way_makes_no_turn(
    session: Session, work: Path
) -> None:
    session.save("whole")
    (work / ".snapstore-restore-00ff").mkdir()
    with pytest.raises(Refused, match="restore that was interrupted"):
        session.save("half")
    (work / ".snapstore-restore-00ff").rmdir()
    assert session.save("whole again").turn == 2


def test_what_is_saved_again_unchanged_is_no_new_turn(session: Session, work: Path) -> None:
    fill(work, {"a": "x"})
    first = session.save()
    assert session.save() == first
    fill(work, {"a": "y"})
    assert session.save().turn == 2


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become somebody who may not read")
def test_what_cannot_be_read_is_listed_and_makes_the_turn_partial(nobodys: Path) -> None:
    fill(nobodys, {"a": "x", "secret": "x", "closed/x": "y"})
    (nobodys / "secret").chmod(0)
    (nobodys / "closed").chmod(0)
    session = snapstore.open("memory://").session("s")
    session.worktree = nobodys
    with as_nobody():
        found = kinds(session)
    assert found == {"a": "file", "closed": "unreadable", "secret": "unreadable"}
    assert session.head is not None and session.head.partial


def test_neither_git_nor_its_variables_nor_a_bare_repository_matter(
    session: Session, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    monkeypatch.setenv("PATH", "")
    fill(work, {"HEAD": "ref: refs/heads/main", "objects/ab/c": "x", "refs/heads/main": "y"})
    assert set(kinds(session)) >= {"HEAD", "objects/ab/c", "refs/heads/main"}


@pytest.mark.root
@pytest.mark.skipif(os.getuid() != 0, reason="needs to mount")
def test_another_file_system_is_listed_and_left_alone(session: Session, work: Path) -> None:
    fill(work, {"a": "1"})
    (work / "mnt").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", str(work / "mnt")]).returncode:
        pytest.skip("cannot mount here")
    try:
        fill(work, {"mnt/in": "x"})
        assert kinds(session) == {"a": "file", "mnt": "mount"}
        assert session.head is not None and session.head.partial
        fill(work, {"a": "2"})
        session.restore(1)
        assert (work / "a").read_text() == "1" and (work / "mnt/in").read_text() == "x"
    finally:
        subprocess.run(["umount", str(work / "mnt")], check=True)


def test_a_capture_waits_for_a_restore_by_another_process(
    open_store: OpenStore, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snapstore.worktree.local.LOCK_TIMEOUT", 0.1)
    store = open_store()
    session = store.session("s")
    session.worktree = work
    session.save()
    other = Worktree(store.objects, work, store.local)
    with other.exclusive(), pytest.raises(Locked):
        session.save("meanwhile")
    session.save("after")


# --- what it need not look at ---------------------------------------------------------------------


def test_unchanged_files_are_not_read_again(
    session: Session, work: Path, opened: list[str]
) -> None:
    fill(work, {"a/b": "x", "a/c": "y", "d": "z"})
    settled(work)
    session.save()
    opened.clear()
    fill(work, {"a/c": "changed"})
    session.save()
    assert opened == ["c"]


def test_a_file_changed_within_the_tick_of_its_capture_is_seen(
    session: Session, work: Path
) -> None:
    for n in range(50):  # as fast as can be, with the size and often the time as before
        fill(work, {"a": f"{n:03}"})
        saved = session.save()
        assert saved.files is not None and saved.files.read("a") == f"{n:03}".encode()


def test_a_racy_look_is_not_trusted_and_an_old_one_is() -> None:
    second = 1_000_000_000
    now = 1_700_000_000 * second + 500
    assert statcache.is_racy(now - statcache.TICK + 1, now)
    assert not statcache.is_racy(now - statcache.TICK - 1, now)
    assert statcache.is_racy(1_699_999_999 * second, now), "a file system of whole seconds"
    assert not statcache.is_racy(1_699_999_990 * second, now)
    assert statcache.is_racy(now + second, now), "a clock that was set back"


def test_a_change_that_sets_its_time_back_is_seen(session: Session, work: Path) -> None:
    fill(work, {"a": "one"})
    settled(work)
    session.save()
    info = (work / "a").stat()
    fill(work, {"a": "two"})
    os.utime(work / "a", ns=(info.st_atime_ns, info.st_mtime_ns))
    saved = session.save()
    assert saved.files is not None and saved.files.read("a") == b"two"


def test_the_next_process_knows_what_the_last_one_read(
    open_store: OpenStore, work: Path, opened: list[str]
) -> None:
    fill(work, {"a/b": "x", "c": "y"})
    settled(work)
    session = open_store().session("s")
    session.worktree = work
    session.save()
    opened.clear()
    fill(work, {"new": "z"})
    open_store().session("s").save()
    assert opened == ["new"]


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "of another directory"])
def test_a_stat_cache_that_is_not_sound_is_as_good_as_none(
    open_store: OpenStore, work: Path, opened: list[str], damage: str
) -> None:
    fill(work, {"a": "x", "b/c": "y"})
    settled(work)
    store = open_store()
    session = store.session("s")
    session.worktree = work
    session.save()
    assert store.local is not None
    path = store.local.stat_cache(os.fsencode(work))
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[:-3])
    elif damage == "flipped":
        path.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
    else:
        cache = statcache.load(path, os.fsencode(work))
        path.write_bytes(cache.encode(b"/elsewhere"))
    opened.clear()
    assert open_store().session("s").save().turn == 1
    assert sorted(opened) == ["a", "c"]


def test_a_stat_cache_of_a_tree_that_the_store_lost_is_not_believed(
    open_store: OpenStore, work: Path, tmp_path: Path
) -> None:
    fill(work, {"a": "x"})
    settled(work)
    session = open_store().session("s")
    session.worktree = work
    session.save()
    cache = next((tmp_path / "store/cache").glob("files-*")).rename(tmp_path / "kept")
    shutil.rmtree(tmp_path / "store")
    store = open_store()
    store.engine.create()
    assert store.local is not None
    shutil.copy(cache, store.local.stat_cache(os.fsencode(work)))
    session = store.session("s")
    session.worktree = work
    assert session.save().turn == 1
    assert store.verify() == []


# --- large files and large trees ------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 700_000])
def test_contents_of_any_size_come_back(session: Session, work: Path, size: int) -> None:
    content = os.urandom(size)
    fill(work, {"f": content})
    files = session.save().files
    assert files is not None and files.read("f") == content


@pytest.mark.parametrize("size", [0, 10, 70_000, 6_000_000])
def test_a_file_read_as_a_stream_comes_back(
    session: Session, work: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(reading, "IN_MEMORY", -1)
    monkeypatch.setattr("snapstore.chunks._GROUP_MOST", 16)
    content = os.urandom(size)
    fill(work, {"f": content})
    saved = session.save()
    assert saved.files is not None and saved.files.read("f") == content
    assert session._store.verify() == []


def test_an_insertion_in_a_streamed_file_costs_its_neighbourhood(
    open_store: OpenStore, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "IN_MEMORY", 1 << 20)
    content = bytearray(os.urandom(8_000_000))
    fill(work, {"f": bytes(content)})
    store = open_store()
    session = store.session("s")
    session.worktree = work
    session.save()
    before = store.engine.stats().bytes
    content[4_000_000:4_000_000] = b"inserted" * 100
    fill(work, {"f": bytes(content)})
    session.save()
    assert store.engine.stats().bytes - before < 200_000


def test_a_capture_over_the_limits_is_refused_and_says_what_to_do(
    open_store: OpenStore, work: Path
) -> None:
    fill(work, {f"d/{n}": "x" * 10 for n in range(5)})
    store = open_store()
    worktree = Worktree(store.objects, work, store.local)
    with snapstore.objects.Stage(store.objects) as stage:
        worktree.capture(stage, Limits(files=5, size=50))
        for limits in (Limits(files=4), Limits(size=49)):
            with pytest.raises(Refused) as refused:
                worktree.capture(stage, limits)
            assert ".snapstoreignore" in refused.value.hint


def test_directories_deeper_than_files_may_be_open(session: Session, work: Path) -> None:
    os.chdir(work)
    for _ in range(1200):
        Path("d").mkdir()
        os.chdir("d")
    Path("f").write_text("deep")
    os.chdir("/")
    files = session.save().files
    assert files is not None and sum(1 for _ in files) == 1201
    subprocess.run(["rm", "-rf", str(work / "d")], check=True)


def test_a_directory_swapped_for_a_link_while_it_is_walked_leads_nowhere(
    session: Session, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, {"outside/f": "not ours"})
    fill(work, {"a/f": "ours"})
    list_it = os.scandir

    def swapping(where: Any) -> Any:
        with list_it(where) as found:
            listed = list(found)
        if not (work / "a").is_symlink():
            (work / "a").rename(tmp_path / "was")
            (work / "a").symlink_to(tmp_path / "outside")
        return contextlib.nullcontext(listed)

    monkeypatch.setattr(os, "scandir", swapping)
    assert kinds(session) == {}


def test_modes_are_kept_to_the_last_bit(session: Session, work: Path) -> None:
    for mode in (0o000, 0o400, 0o755, 0o1777, 0o2750, 0o6711):
        (work / f"{mode:o}").mkdir()
        (work / f"{mode:o}").chmod(mode)
    files = session.save().files
    assert files is not None
    held = {path: entry.mode for path, entry in files.entries() if entry.kind == "dir"}
    there = {p.name: stat.S_IMODE(p.lstat().st_mode) for p in work.iterdir()}
    assert held == there
