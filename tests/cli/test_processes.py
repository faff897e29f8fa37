"""Programs that the commands start, and how they are ended."""

from __future__ import annotations

import signal
import threading
import time

from snapstore_cli import processes


def test_a_program_is_ended_also_when_ctrl_c_left_the_lock_of_its_popen_locked() -> None:
    process = processes.start("sleep 60", stderr=None)
    # What is left of ``Popen.poll`` when Ctrl-C comes between its taking the lock and its ``try``.
    process._waitpid_lock.acquire()  # type: ignore[attr-defined]
    ending = threading.Thread(target=processes.end, args=(process,), daemon=True)
    ending.start()
    ending.join(30)
    assert not ending.is_alive()
    assert process.returncode == -signal.SIGTERM


def test_a_program_that_does_not_end_politely_is_killed() -> None:
    process = processes.start("trap '' TERM; echo ready; while :; do sleep 1; done", stderr=None)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    processes.end(process, grace=0.1)
    assert process.returncode == -signal.SIGKILL


def test_an_end_is_waited_for_no_longer_than_asked() -> None:
    process = processes.start("sleep 60", stderr=None)
    begun = time.monotonic()
    assert not processes.wait(process, 0.1)
    assert 0.1 <= time.monotonic() - begun < 30
    processes.end(process)
    assert processes.wait(process, 0) and processes.poll(process) == -signal.SIGTERM


def test_the_status_of_a_program_is_told() -> None:
    process = processes.start("exit 3", stderr=None)
    assert processes.wait(process) and process.returncode == 3
