"""Leases: one runner at a time, in threads, processes and forks, and on several hosts."""

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
from servers import s3
from stores import Place

import snapstore
from snapstore import Locked, Store
from snapstore.disk import Disk
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.links import links
from snapstore.tasks import Context, Event, hostlease, status
from snapstore.tasks.hostlease import HostLeases
from snapstore.tasks.lease import FileLeases, Holder, Lease, Leases, LocalLeases
from snapstore.tasks.record import Records
from snapstore.times import moment

HOLDER = """
import sys, time, snapstore
def hold():
    print("held", flush=True)
    time.sleep(60)
snapstore.open(sys.argv[1]).run_task("t", [("hold", hold)])
"""


LASTS = 0.3


@pytest.fixture(params=["local", "files", "hosts"])
def leases(request: pytest.FixtureRequest, tmp_path: Path) -> Leases:
    if request.param == "hosts":
        engine = engine_on(Bucket.in_memory())
        engine.create()
        return HostLeases(engine)
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


def test_ctrl_c_while_a_lease_is_taken_does_not_keep_it(tmp_path: Path) -> None:
    class Interrupted(Disk):
        def try_lock(self, fd: int) -> bool:
            assert super().try_lock(fd)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FileLeases(tmp_path, Interrupted()).take("t")
    assert FileLeases(tmp_path).take("t") is not None


# --- on several hosts ----------------------------------------------------------------------------


REF = hostlease.PREFIX + "t"


def engine_on(bucket: Bucket, lease_time: float = LASTS) -> ObjectStoreEngine:
    return ObjectStoreEngine(bucket, links=links, lease_time=lease_time)


def store_on(bucket: Bucket, lease_time: float = LASTS) -> Store:
    return Store(engine_on(bucket, lease_time))


def kill(lease: Lease | None) -> None:
    """Let a lease be as one whose holder is no more: nobody renews it."""
    lease._ended.set()  # type: ignore[union-attr]


class Clock:
    """Stands for the time that leases go by, of a host each."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def time_ns(self) -> int:
        return int(self.now * 10**9)

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(hostlease, "time", made)
    return made


def test_a_lease_is_renewed_for_as_long_as_its_holder_lives() -> None:
    store = store_on(Bucket.in_memory())
    taken = store.leases.take("t")
    assert taken is not None
    first = store.engine.tip(REF)
    while (now := store.engine.tip(REF)) is not None and now.gen < 5:
        time.sleep(0.01)
    assert first is not None and now is not None and now.time > first.time
    taken.release()
    assert store.leases.holder("t") is None


def test_a_holder_that_is_no_more_is_followed_once_its_time_is_over(clock: Clock) -> None:
    bucket = Bucket.in_memory()
    first = store_on(bucket, 60).leases.take("t")
    there = store_on(bucket, 60).leases
    holder = there.holder("t")
    assert holder is not None and holder.until == (clock.now + 60) * 10**6
    assert f"until {moment(holder.until):%H:%M:%S} UTC unless" in str(holder)
    clock.now += 59
    assert there.take("t") is None
    clock.now += 2
    second = there.take("t")
    assert first is not None and second is not None and second.number > first.number
    assert (first.taken_over, second.taken_over) == (False, True)
    second.release()


def test_by_a_clock_that_may_be_wrong_it_is_over_half_its_time_later(clock: Clock) -> None:
    bucket = Bucket.in_memory()
    assert store_on(bucket, 60).leases.take("t") is not None
    clock.now += 89
    assert store_on(bucket, 60).leases.take("t") is None  # seen for the first time just now
    clock.now += 2
    assert store_on(bucket, 60).leases.holder("t") is None
    second = store_on(bucket, 60).leases.take("t")
    assert second is not None
    second.release()


def test_the_renewals_of_a_lease_are_dropped_when_it_is_given_back() -> None:
    bucket = Bucket.in_memory()
    taken = store_on(bucket, 0.03).leases.take("t")
    assert taken is not None
    time.sleep(0.2)
    taken.release()
    moves = list(store_on(bucket).engine.reflog())
    assert [move.op for move in moves] == ["release"]
    assert moves[0].gen > 5
    assert store_on(bucket).verify() == []


def test_what_a_runner_records_whose_task_was_taken_over_is_refused(journal: Journal) -> None:
    bucket = Bucket.in_memory()
    stale, other = store_on(bucket), store_on(bucket)
    ran: list[list[str]] = []

    def slow() -> str:
        journal.note("slow")
        if not ran:
            ran.append([])
            kill(held[0])
            ran.append(other.run_task("t", phases, wait=20).ran)
        return "done"

    phases = [("slow", slow), ("next", lambda: journal.note("next"))]
    held = noting(stale)
    with pytest.raises(Locked, match=f"taken over by process {os.getpid()} on "):
        stale.run_task("t", phases)
    assert ran[1] == ["slow", "next"]
    assert journal.words == ["slow", "slow", "next"]
    states = [(m["name"], m["state"]) for m in store_on(bucket).session("task/t").history[1:]]
    assert states == [
        ("slow", "started"), ("slow", "started"), ("slow", "done"),
        ("next", "started"), ("next", "done"),
    ]  # fmt: skip


def noting(store: Store) -> list[Lease | None]:
    """The leases that are taken through a store from now on."""
    taken: list[Lease | None] = []
    take = store.leases.take

    def note(task: str) -> Lease | None:
        taken.append(take(task))
        return taken[-1]

    store.leases.take = note  # type: ignore[method-assign]
    return taken


def test_an_effect_does_not_take_place_when_the_task_was_taken_over(journal: Journal) -> None:
    bucket = Bucket.in_memory()
    stale, other = store_on(bucket), store_on(bucket)
    held = noting(stale)
    first = [True]

    def send(ctx: Context) -> None:
        if first.pop() if first else False:
            kill(held[0])
            assert other.run_task("t", [("send", send)], wait=20).ran == ["send"]
        ctx.once("mail", lambda: journal.note("sent"))

    with pytest.raises(Locked, match="taken over"):
        stale.run_task("t", [("send", send)])
    assert journal.words == ["sent"]


def test_a_result_that_came_in_before_it_was_taken_over_counts(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may come in after the one who takes over has read what is left, and before he claims."""
    bucket = Bucket.in_memory()
    stale, other = store_on(bucket), store_on(bucket)
    held = noting(stale)
    begun, read = threading.Event(), threading.Event()

    def slow() -> None:
        journal.note("slow")
        kill(held[0])
        begun.set()
        assert read.wait(20)

    runner = threading.Thread(target=stale.run_task, args=("t", [("slow", slow)]))
    runner.start()
    assert begun.wait(20)
    claim = Records.claim

    def late(self: Records, lease: Lease) -> bool:
        if lease.taken_over and not read.is_set():
            read.set()
            runner.join(20)
        return claim(self, lease)

    monkeypatch.setattr(Records, "claim", late)
    report = other.run_task("t", [("slow", slow), ("next", lambda: journal.note("next"))], wait=20)
    assert (report.skipped, report.ran) == (["slow"], ["next"])
    assert journal.words == ["slow", "next"]


HOLDER_ELSEWHERE = """
import sys, time
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.links import links
from snapstore.store import Store
def hold():
    print("held", flush=True)
    time.sleep(60)
url, lasts, *options = sys.argv[1:]
bucket = Bucket.at(url, dict(option.split("=", 1) for option in options))
engine = ObjectStoreEngine(bucket, links=links, lease_time=float(lasts))
Store(engine).run_task("t", [("before", lambda: 1), ("hold", hold)])
"""


def test_a_runner_that_was_killed_is_followed_by_one_of_another_host() -> None:
    with s3.moto() as server:
        url, options = server.url(), server.options()
        words = [url, "2.0", *(f"{name}={value}" for name, value in options.items())]
        command = [sys.executable, "-c", HOLDER_ELSEWHERE, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None and process.stdout.readline() == b"held\n"
                store = store_on(Bucket.at(url, options), 2.0)
                phases = [("before", lambda: 1), ("hold", dict)]
                with pytest.raises(Locked, match=rf"process {process.pid} on .*, until \d\d:"):
                    store.run_task("t", phases, wait=0)
            finally:
                process.kill()
            process.wait()
            report = store.run_task("t", phases, wait=30)
        assert (report.skipped, report.ran) == (["before"], ["hold"])
        assert [p.state for p in status(store, "t").phases] == ["done", "done"]


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
