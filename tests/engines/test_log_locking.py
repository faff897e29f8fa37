"""One writer at a time, also across processes; a lock ends with the process that holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from given import Keeping, content, holds_turn, turn

from snapstore.disk import Disk
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.errors import Locked

HOLD = textwrap.dedent("""
    import fcntl, os, sys
    fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
""")


@pytest.fixture
def holder(root: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of a store until its stdin is closed."""
    engine = LogEngine(root)
    turn(engine, "a", "before")
    engine.close()
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(Layout(root).lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "locked\n"
    with process:
        yield process
        process.kill()


def test_a_lock_held_elsewhere_is_waited_for_and_then_given_up(
    root: Path, holder: subprocess.Popen[str], log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at(lock_timeout=0.2)
    begun = time.monotonic()
    with pytest.raises(Locked):
        engine.commit([content(b"not saved")])
    assert 0.2 <= time.monotonic() - begun < 5
    assert not engine.contains(content(b"not saved").id)


def test_reading_needs_no_lock(
    root: Path, holder: subprocess.Popen[str], log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at(lock_timeout=0.0)
    assert holds_turn(engine, "before")
    assert len(list(engine.reflog())) == 1


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_lock_ends_with_its_holder(
    root: Path, holder: subprocess.Popen[str], end: signal.Signals, log_at: Callable[..., LogEngine]
) -> None:
    holder.send_signal(end)
    holder.wait()
    engine = log_at(lock_timeout=5.0)
    turn(engine, "a", "after")
    assert holds_turn(engine, "after")


def test_a_lock_given_back_meanwhile_is_taken(
    root: Path, holder: subprocess.Popen[str], log_at: Callable[..., LogEngine]
) -> None:
    assert holder.stdin is not None
    holder.stdin.close()
    turn(log_at(lock_timeout=10.0), "a", "after")


def test_the_lock_file_is_never_written_or_replaced(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at(seal_at=600)
    turn(engine, "a", "turn")
    before = Layout(root).lock.stat()
    for i in range(15):
        turn(engine, "a", f"turn {i}")
    after = Layout(root).lock.stat()
    assert (after.st_ino, after.st_size) == (before.st_ino, 0)


def in_a_child(work: Callable[[], None]) -> int:
    """Fork, work, and end at once; the exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_child_works_with_files_of_its_own(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at()
    turn(engine, "a", "parent before")

    def work() -> None:
        assert holds_turn(engine, "parent before")
        turn(engine, "a", "child")

    assert in_a_child(work) == 0
    turn(engine, "a", "parent after")
    assert [holds_turn(engine, t) for t in ("parent before", "child", "parent after")] == [True] * 3
    assert list(engine.verify()) == []


def test_a_forked_child_does_not_share_its_parents_lock(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine = log_at(lock_timeout=0.2)
    turn(engine, "a", "parent")
    engine._disk.lock(engine._appender._lock_fd, timeout=0)

    def work() -> None:
        with pytest.raises(Locked):
            engine.commit([content(b"by the child")])

    try:
        assert in_a_child(work) == 0
    finally:
        engine._appender.unlock()
    assert not engine.contains(content(b"by the child").id)


def test_a_forked_child_that_closes_leaves_its_parent_the_lock(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    engine, other = log_at(), log_at(lock_timeout=0.1)
    turn(engine, "a", "parent")
    engine._disk.lock(engine._appender._lock_fd, timeout=0)
    try:
        assert in_a_child(engine.close) == 0
        with pytest.raises(Locked):
            other.commit([content(b"meanwhile")])
    finally:
        engine._appender.unlock()


class Interrupted(Disk):
    """Ctrl-C comes when the system has given the lock."""

    armed = False

    def lock(self, fd: int, *, timeout: float) -> None:
        super().lock(fd, timeout=timeout)
        if self.armed:
            raise KeyboardInterrupt


@pytest.mark.parametrize("doing", ["saving", "rewriting", "repairing"])
def test_ctrl_c_while_the_lock_is_taken_does_not_keep_it(
    doing: str, root: Path, log_at: Callable[..., LogEngine]
) -> None:
    disk = Interrupted()
    engine, other = log_at(disk=disk), log_at(lock_timeout=0.0)
    turn(engine, "a", "before")
    disk.armed = True
    with pytest.raises(KeyboardInterrupt):
        if doing == "saving":
            turn(engine, "a", "interrupted")
        elif doing == "rewriting":
            engine.rewrite(Keeping([content(b"message of before").id]), now=0, grace=0)
        else:
            engine.salvage(0)
    turn(other, "a", "after")
    assert holds_turn(other, "after") and not holds_turn(other, "interrupted")
