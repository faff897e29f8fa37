"""A restore that is killed, or runs out of space, at any call: all of it or nothing.

One directory goes back and forth between two turns that differ in every way that a restore must
handle. In each round the restore dies one call later than in the round before. Whoever comes next
finds the files and HEAD both as they were before or both as they should be, and no litter.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from frail import Died, DyingDisk, FullDisk, QuickDisk, UncertainDisk
from nobody import as_nobody
from overdisk import OpenStore, store_at
from pictures import Picture, differing, fill, picture, stamps

from snapstore import DiskError, Store, UnknownOutcome
from snapstore.disk import Disk
from snapstore.worktree import moves


def first_state(work: Path) -> None:
    fill(work, {
        "same": "same in both", "edited": "one", "gone": "only in one", "deep/er/file": "deep",
        "to_dir": "a file", "to_file/inside": "x", "closed/file": "in a closed directory",
    })  # fmt: skip
    (work / "empty/inner").mkdir(parents=True)
    (work / "link").symlink_to("edited")
    (work / "mode").write_text("m")
    (work / "mode").chmod(0o600)
    (work / "closed").chmod(0o500)


def second_state(work: Path) -> None:
    (work / "closed").chmod(0o700)
    fill(
        work, {"edited": "two!", "gone": None, "to_dir": None, "new/a/b": "new", "closed/more": "m"}
    )
    (work / "closed").chmod(0o555)
    shutil.rmtree(work / "deep")
    shutil.rmtree(work / "to_file")
    shutil.rmtree(work / "empty")
    fill(work, {"to_dir/now": "a directory", "to_file": "a file"})
    (work / "link").unlink()
    (work / "link").symlink_to("same")
    (work / "mode").chmod(0o755)


class TwoTurns:
    """A session with two turns of a directory, and what the directory was at each."""

    def __init__(self, store: Store, work: Path) -> None:
        self.work = work
        session = store.session("s")
        session.worktree = work
        first_state(work)
        session.save("one")
        one = picture(work)
        second_state(work)
        session.save("two")
        self.pictures = {1: one, 2: picture(work)}

    def there(self) -> Picture:
        return picture(self.work)

    def turn_on_disk(self) -> int | None:
        """Which of the two turns the directory is exactly as."""
        now = self.there()
        return next((turn for turn, was in self.pictures.items() if now == was), None)


def rewound(store: Store, turn: int) -> None:
    """HEAD and files at a turn: turn 2 is reached by undoing the rewind to turn 1."""
    session = store.session("s")
    if turn == 1:
        session.rewind(1, files=True)
    else:
        session.undo()


def test_a_restore_that_dies_at_any_call_is_all_or_nothing(
    open_store: OpenStore, work: Path
) -> None:
    turns = TwoTurns(open_store(), work)
    halfway = finished = 0
    for goal in (1, 2):
        at = 0
        while True:
            disk = DyingDisk(at)
            try:
                rewound(open_store(disk), goal)
                died = False
            except Died:
                died = True
            halfway += turns.turn_on_disk() is None
            store = open_store()
            store.session("s").save()  # any command that works on the directory
            head = store.session("s").turn
            now = turns.turn_on_disk()
            assert now == head, (goal, at, differing(turns.there(), turns.pictures[head]))
            assert not list(work.parent.glob("store/restore/*.journal"))
            if not died:
                assert now == goal
                break
            if now == goal:
                finished += 1
                rewound(store, 3 - goal)
                assert turns.turn_on_disk() == 3 - goal
            at += 1
        assert at > 50, "a restore that has hardly any calls to die at is no test"
    assert halfway > 50 and finished > 5


def test_a_restore_elsewhere_that_dies_at_any_call_is_all_or_nothing(
    open_store: OpenStore, work: Path
) -> None:
    turns = TwoTurns(open_store(), work)
    copy = work.parent / "copy"
    copy.mkdir()
    nothing = 0
    for at in range(300):
        store = open_store(DyingDisk(at))
        try:
            moves.restore_to(store, store.resolve("s@1"), copy)
            died = False
        except Died:
            died = True
        store = open_store()
        session = store.session("look")
        session.worktree = copy
        session.save()  # any command that works on that directory
        found = picture(copy)
        assert found in ({}, turns.pictures[1]), (at, sorted(found))
        nothing += not found
        shutil.rmtree(copy)
        copy.mkdir()
        if not died:
            break
    assert found == turns.pictures[1] and nothing > 30


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become an ordinary user")
def test_an_ordinary_user_is_taken_back_to_where_they_were_too(nobodys: Path) -> None:
    root = nobodys / "store"
    work = nobodys / "project"
    with as_nobody():
        work.mkdir()
        turns = TwoTurns(store_at(root), work)
        for at in range(0, 140, 3):
            with contextlib.suppress(Died):
                rewound(store_at(root, DyingDisk(at)), 1)
            store = store_at(root)
            store.session("s").save()
            head = store.session("s").turn
            assert turns.turn_on_disk() == head, (
                at,
                differing(turns.there(), turns.pictures[head]),
            )
            if head == 1:
                rewound(store, 2)
        (work / "closed").chmod(0o755)


@pytest.mark.parametrize("call", ["rename_at", "link_at", "remove_dir_at", "set_dir_mode_at"])
def test_a_file_that_somebody_holds_on_to_stops_the_restore_and_nothing_is_changed(
    open_store: OpenStore, work: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    turns = TwoTurns(open_store(), work)
    real, calls = getattr(Disk, call), 0

    def busy(self: Disk, *args: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise DiskError("renaming failed: device or resource busy", errno.EBUSY)
        real(self, *args)

    monkeypatch.setattr(QuickDisk, call, busy, raising=False)
    with pytest.raises(DiskError):
        rewound(open_store(), 1)
    assert calls >= 2 and turns.turn_on_disk() == 2
    assert open_store().session("s").turn == 2


def test_taking_back_may_itself_die_at_any_call(open_store: OpenStore, work: Path) -> None:
    turns = TwoTurns(open_store(), work)
    counting = DyingDisk()
    rewound(open_store(counting), 1)
    rewound(open_store(), 2)
    late = counting.calls * 3 // 4  # well into the steps, before the ref moves
    for at in range(200):
        with pytest.raises(Died):
            rewound(open_store(DyingDisk(late)), 1)
        assert turns.turn_on_disk() is None
        try:
            open_store(DyingDisk(at)).session("s").save()
            died = False
        except Died:
            died = True
        open_store().session("s").save()
        assert turns.turn_on_disk() == 2, (at, differing(turns.there(), turns.pictures[2]))
        if not died:
            return
    pytest.fail("taking back does not end")


def test_a_restore_on_a_full_disk_changes_nothing(open_store: OpenStore, work: Path) -> None:
    turns = TwoTurns(open_store(), work)
    at = 0
    while True:
        at += 1
        disk = FullDisk(at)
        try:
            rewound(open_store(disk), 1)
        except DiskError as error:
            assert error.errno == 28
        else:
            assert turns.turn_on_disk() == 1
            if disk.calls < at:
                break
            rewound(open_store(), 2)  # it was a cache that could not be written
        assert turns.turn_on_disk() == 2, (at, differing(turns.there(), turns.pictures[2]))
        assert open_store().session("s").turn == 2
        assert not list(work.glob(".snapstore*"))
    assert at > 20


@pytest.mark.parametrize("written", [True, False])
def test_an_unknown_outcome_is_settled_by_what_the_store_turns_out_to_hold(
    open_store: OpenStore, work: Path, written: bool
) -> None:
    turns = TwoTurns(open_store(), work)
    disk = UncertainDisk(written)
    store = open_store(disk)
    session = store.session("s")
    disk.armed = True
    with pytest.raises(UnknownOutcome):
        session.rewind(1, files=True)
    store = open_store()
    store.session("s").save()
    assert store.session("s").turn == turns.turn_on_disk() == (1 if written else 2)


def test_files_that_somebody_changed_after_the_crash_are_not_taken_back(
    open_store: OpenStore, work: Path
) -> None:
    turns = TwoTurns(open_store(), work)
    counting = DyingDisk()
    rewound(open_store(counting), 1)
    rewound(open_store(), 2)
    for at in range(counting.calls, 0, -1):  # until it dies just before the ref moves
        with contextlib.suppress(Died):
            rewound(open_store(DyingDisk(at)), 1)
        store = open_store()
        if store.session("s").turn == 2:
            break
        rewound(store, 2)
    assert (work / "edited").read_text() == "one", "the crash should come after this was restored"
    fill(work, {"edited": "by hand, after the crash"})
    open_store().session("s").save("after")
    assert (work / "edited").read_text() == "by hand, after the crash"
    assert differing(turns.there(), turns.pictures[2]) == ["edited"]


RESTORE = """
import sys, snapstore
print("ready", flush=True)
session = snapstore.open(sys.argv[1]).session("s")
while True:
    session.rewind(1, files=True)
    session.undo()
"""


def test_kill_9_in_the_middle_of_restores_leaves_one_turn_or_the_other(
    open_store: OpenStore, work: Path
) -> None:
    turns = TwoTurns(open_store(), work)
    fill(work, {f"many/{n}": f"{n}\n" * n for n in range(60)})
    session = open_store().session("s")
    session.save("more")
    turns.pictures[3] = picture(work)
    root = work.parent / "store"
    for n in range(8):
        child = subprocess.Popen(
            [sys.executable, "-c", RESTORE, str(root)], stdout=subprocess.PIPE, cwd=root.parent
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.15 + 0.037 * n)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        store = open_store()
        store.session("s").save()
        head = store.session("s").turn
        assert turns.turn_on_disk() == head, differing(turns.there(), turns.pictures[head])
        if head == 1:
            rewound(store, 2)
            assert turns.turn_on_disk() == 3
    before = stamps(work)
    open_store().session("s").save()
    assert stamps(work) == before
