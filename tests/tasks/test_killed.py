"""Runners that are killed: at every durable step of a task, and at random moments of many."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from journal import Journal

import snapstore
from snapstore import Store, UncertainEffect
from snapstore.disk import Disk
from snapstore.engines.log.engine import LogEngine
from snapstore.tasks import Context, Event
from snapstore.worktree.local import Local

STEPS = ("open_lock", "write_at", "sync", "rename", "make_dir", "sync_dir", "lock", "try_lock")


class Fatal(Disk):
    """A disk on which the process is killed when it has begun so many steps."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def __getattribute__(self, name: str) -> Any:
        if name in STEPS:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().__getattribute__(name)


def phases(journal: Journal) -> list[tuple[str, Callable[..., Any]]]:
    def pay(ctx: Context) -> Any:
        journal.note("pay")
        try:
            return ctx.once("payment", lambda: journal.note("money") or "receipt")
        except UncertainEffect:
            journal.note("uncertain")
            return ctx.once("payment", lambda: None, on_uncertain="skip")

    return [journal.phase("a", 1), ("pay", pay), journal.phase("z", [2])]


def run(journal: Journal, disk: Disk) -> bool:
    """Run the task in a child process that notes what is acknowledged; whether it came to its
    end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            root = journal.path.parent / "store"
            store = Store(LogEngine(root, disk=disk, durable=False), local=Local(root, disk))

            def watch(event: Event) -> None:
                journal.note(f"{event.kind} {event.phase}")

            store.run_task("t", phases(journal), watch=watch)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), status
    return status == 0


def check(words: list[str], results: dict[str, Any]) -> None:
    """What may be in the list of calls, whatever happened on the way."""
    for name in ("a", "pay", "z"):
        finished = words.index(f"done {name}") if f"done {name}" in words else len(words)
        assert name not in words[finished:], f"{name} ran again after it had finished"
    assert words.count("money") <= 1
    assert results["a"] == 1 and results["z"] == [2]
    # The payment that was made is told, or it is told that nobody knows.
    assert results["pay"] == "receipt" or "uncertain" in words


def test_killed_at_any_step_no_finished_phase_runs_again_and_no_payment_is_made_twice(
    tmp_path: Path,
) -> None:
    steps = 0
    while True:
        folder = tmp_path / str(steps)
        folder.mkdir()
        journal = Journal(folder / "calls")
        whole = run(journal, Fatal(steps))
        if not whole:
            assert run(journal, Disk())
        with snapstore.open(folder / "store", create=False) as store:
            assert store.verify() == []
            check(journal.words, store.run_task("t", phases(journal)).results)
        if whole:
            break
        steps += 1
    assert steps > 20


def test_killed_at_random_steps_a_task_comes_to_its_end(tmp_path: Path) -> None:
    rng = random.Random(5)
    for n in range(12):
        folder = tmp_path / str(n)
        folder.mkdir()
        journal = Journal(folder / "calls")
        while not run(journal, Fatal(rng.randrange(4, 40))):
            pass
        with snapstore.open(folder / "store") as store:
            check(journal.words, store.run_task("t", phases(journal)).results)


CHILD = """
import sys, time, snapstore
root, calls = sys.argv[1:]
def note(word):
    with open(calls, "a") as file:
        file.write(word + "\\n")
def phase(n):
    note(f"begin {n}")
    time.sleep(0.004)
    note(f"end {n}")
    return n
store = snapstore.open(root)
store.run_task(
    "t", [(f"p{n}", lambda n=n: phase(n)) for n in range(60)],
    watch=lambda event: event.kind == "done" and note(f"done {event.phase[1:]}"),
)
"""


def test_killed_at_random_moments_a_long_task_goes_on_where_it_was(tmp_path: Path) -> None:
    rng = random.Random(8)
    calls = Journal(tmp_path / "calls")
    command = [sys.executable, "-c", CHILD, str(tmp_path / "store"), str(calls.path)]
    for _ in range(6):
        process = subprocess.Popen(command)
        time.sleep(rng.uniform(0.25, 0.5))
        process.kill()
        process.wait()
    subprocess.run(command, check=True)
    words = calls.words
    assert len(set(words)) >= 3 * 60 - 6  # a kill may come between a record and its note
    for n in range(60):
        finished = words.index(f"done {n}") if f"done {n}" in words else len(words)
        assert f"end {n}" in words[:finished]
        assert f"begin {n}" not in words[finished:]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_record_that_cannot_be_written_is_an_error_and_the_phase_s_own_comes_first(
    tmp_path: Path, when: str
) -> None:
    class Full(Disk):
        full = False

        def write_at(self, fd: int, data: bytes, offset: int) -> None:
            if self.full:
                raise snapstore.DiskError("no space")
            super().write_at(fd, data, offset)

    disk = Full()
    store = Store(LogEngine(tmp_path / "s", disk=disk, durable=False))

    def phase() -> None:
        disk.full = True
        if when == "before":
            raise RuntimeError("the phase's own")

    expected = RuntimeError if when == "before" else snapstore.DiskError
    with pytest.raises(expected) as raised:
        store.run_task("t", [("p", phase)])
    if when == "before":
        assert any("could not be recorded" in note for note in raised.value.__notes__)
    disk.full = False
    assert store.run_task("t", [("p", dict)]).ran == ["p"]
    states = [m["state"] for m in store.session("task/t").history if m["type"] == "phase"]
    assert states == ["started", "started", "done"]  # nothing of the lost record came along
