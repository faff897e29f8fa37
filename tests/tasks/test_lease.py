"""Leases: one runner at a time, in threads, processes and forks."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from journal import Journal
from stores import Place

import snapstore
from snapstore import Locked
from snapstore.tasks import Event
from snapstore.tasks.lease import FileLeases, Holder, Leases, LocalLeases

HOLDER = """
import sys, time, snapstore
def hold():
    print("held", flush=True)
    time.sleep(60)
snapstore.open(sys.argv[1]).run_task("t", [("hold", hold)])
"""


@pytest.fixture(params=["local", "files"])
def leases(request: pytest.FixtureRequest, tmp_path: Path) -> Leases:
    return LocalLeases() if request.param == "local" else FileLeases(tmp_path / "leases")


def test_a_lease_is_held_by_one(leases: Leases) -> None:
    first = leases.take("t")
    assert first is not None and leases.take("t") is None
    assert leases.take("another") is not None
    first.release()
    first.release()
    assert leases.holder("t") is None
    assert leases.take("t") is not None


def test_it_is_known_who_holds_a_lease(leases: Leases) -> None:
    assert leases.holder("t") is None
    taken = leases.take("t")
    holder = leases.holder("t")
    assert taken is not None and holder is not None and holder.pid == os.getpid()
    assert str(holder).startswith(f"process {os.getpid()} on {holder.host}, since 20")


def test_a_note_that_is_damaged_tells_nothing_and_decides_nothing(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path)
    taken = leases.take("t")
    (note,) = tmp_path.glob("*.holder")
    for text in ("", "{", "[]", '{"pid": "x"}'):
        note.write_text(text)
        assert leases.holder("t") is None and leases.take("t") is None
    assert taken is not None
    taken.release()
    note.write_text('{"pid": 1, "host": "elsewhere", "since": 0}')  # as one that was killed leaves
    assert leases.holder("t") is None
    assert leases.take("t") is not None


def test_a_forked_child_does_not_keep_its_parent_s_lease(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path)
    taken = leases.take("t")
    assert taken is not None
    ready, child_ready = os.pipe()
    go_on, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(child_ready, b"x")
        os.read(go_on, 1)
        os._exit(0)
    os.read(ready, 1)
    taken.release()
    again = leases.take("t")
    os.write(tell, b"x")
    os.waitpid(child, 0)
    assert again is not None


# --- through the runner --------------------------------------------------------------------------


def test_two_threads_run_a_task_one_after_the_other(place: Place, journal: Journal) -> None:
    store = place.open()

    def slow() -> None:
        journal.note("slow")
        time.sleep(0.1)

    threads = [
        threading.Thread(target=store.run_task, args=("t", [("slow", slow)])) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert journal.words == ["slow"]


def test_two_async_runs_in_one_loop_wait_for_each_other(place: Place, journal: Journal) -> None:
    async def slow() -> None:
        journal.note("slow")
        await asyncio.sleep(0.1)

    async def main() -> list[snapstore.tasks.Report]:  # type: ignore[name-defined]
        store = place.open()
        return await asyncio.gather(
            *(store.run_task_async("t", [("slow", slow)]) for _ in range(3))
        )

    reports = asyncio.run(main())
    assert sorted(len(report.ran) for report in reports) == [0, 0, 1]
    assert journal.words == ["slow"]


def test_the_second_runner_is_told_who_has_the_task_and_gives_up_when_told_to(
    tmp_path: Path,
) -> None:
    root = tmp_path / "s"
    with (
        subprocess.Popen([sys.executable, "-c", HOLDER, root], stdout=subprocess.PIPE) as process,
        snapstore.open(root) as store,
    ):
        try:
            assert process.stdout is not None and process.stdout.readline() == b"held\n"
            events: list[Event] = []
            with pytest.raises(Locked, match=f"run by process {process.pid} on "):
                store.run_task("t", [("hold", dict)], wait=0.15, watch=events.append)
            assert [event.kind for event in events] == ["waiting"]
            assert isinstance(events[0].holder, Holder) and events[0].holder.pid == process.pid
            assert store.run_task("another", [("p", dict)], wait=0).ran == ["p"]
        finally:
            process.kill()
        process.wait()
        report = store.run_task("t", [("hold", dict)], wait=5)
        assert report.ran == ["hold"]  # it had started and never finished


def test_the_lease_is_given_back_whatever_ends_the_run(place: Place, journal: Journal) -> None:
    store = place.open()
    with pytest.raises(RuntimeError):
        store.run_task("t", [journal.failing("p")])
    with pytest.raises(snapstore.InvalidInput):
        store.run_task("t", [("p", dict), ("p", dict)])
    assert store.run_task("t", [journal.phase("p")], wait=0).ran == ["p"]
