"""Async tasks: phases that await, and phases side by side."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from stores import Place

from snapstore import InvalidInput, PhaseTimedOut, Store
from snapstore.tasks import AsyncContext, Context, Phase


def test_async_and_plain_phases_go_together(store: Store) -> None:
    async def first(ctx: AsyncContext) -> int:
        await asyncio.sleep(0)
        ctx.scratchpad["first"] = True
        return 1

    async def main() -> Any:
        return await store.run_task_async(
            "t", [("first", first), ("second", lambda ctx: ctx.results["first"] + 1),
                  ("third", lambda: asyncio.sleep(0, "slept"))]
        )  # fmt: skip

    report = asyncio.run(main())
    assert report.results == {"first": 1, "second": 2, "third": "slept"}
    assert store.session("task/t").scratchpad == {"first": True}


class Together:
    """Phases that note who was under way with them."""

    def __init__(self) -> None:
        self.under_way: set[str] = set()
        self.most = 0
        self.met: set[frozenset[str]] = set()

    def phase(self, name: str, needs: tuple[str, ...] | None = None) -> Phase:
        async def run(ctx: AsyncContext) -> None:
            self.under_way.add(name)
            self.most = max(self.most, len(self.under_way))
            self.met.add(frozenset(self.under_way))
            ctx.scratchpad[name] = True
            await asyncio.sleep(0.02)
            self.under_way.remove(name)

        return Phase(name, run, needs=needs)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_phases_that_need_nothing_of_each_other_run_side_by_side(place: Place, jobs: int) -> None:
    together = Together()
    phases = [
        *(together.phase(name, ()) for name in "abc"),
        together.phase("d", ("a",)),
        together.phase("last"),
    ]
    report = asyncio.run(place.open().run_task_async("t", phases, jobs=jobs))
    assert together.most == jobs
    assert not any({"a", "d"} <= met or ("last" in met and len(met) > 1) for met in together.met)
    assert sorted(report.ran) == ["a", "b", "c", "d", "last"]
    assert place.open().session("task/t").scratchpad == dict.fromkeys(report.ran, True)
    assert asyncio.run(place.open().run_task_async("t", phases, jobs=jobs)).ran == []


def test_when_one_fails_the_others_come_to_their_end_and_no_other_is_begun(place: Place) -> None:
    async def fails() -> None:
        raise RuntimeError("no")

    async def slow() -> str:
        await asyncio.sleep(0.05)
        return "kept"

    def phases(second: Any) -> list[Phase]:
        return [
            Phase("slow", slow, needs=()),
            Phase("fails", second, needs=()),
            Phase("after", slow, needs=("slow",)),
        ]

    with pytest.raises(RuntimeError, match="no"):
        asyncio.run(place.open().run_task_async("t", phases(fails), jobs=2))
    report = asyncio.run(place.open().run_task_async("t", phases(dict), jobs=2))
    assert report.skipped == ["slow"] and sorted(report.ran) == ["after", "fails"]


def test_a_cancelled_run_stops_its_phases_and_records_that(place: Place) -> None:
    async def main() -> None:
        run = place.open().run_task_async(
            "t", [Phase(name, lambda: asyncio.sleep(9), needs=()) for name in "ab"], jobs=2
        )
        running = asyncio.create_task(run)
        await asyncio.sleep(0.05)
        running.cancel()
        await running

    begun = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert time.monotonic() - begun < 3
    states = [(m["name"], m["state"]) for m in place.open().session("task/t").history[-2:]]
    assert sorted(states) == [("a", "interrupted"), ("b", "interrupted")]


def test_an_async_phase_that_takes_too_long_is_stopped(store: Store) -> None:
    stopped: list[bool] = []

    async def slow(ctx: AsyncContext) -> None:
        try:
            await asyncio.sleep(9)
        finally:
            stopped.append(True)

    phases = [Phase("slow", slow, timeout=0.02, retries=1, backoff=0)]
    with pytest.raises(PhaseTimedOut, match=r"'slow' took longer than 0\.02 s"):
        asyncio.run(store.run_task_async("t", phases))
    assert stopped == [True, True]


def test_a_time_out_of_the_phase_s_own_is_its_own(store: Store) -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(9)

    with pytest.raises(TimeoutError) as raised:
        asyncio.run(store.run_task_async("t", [Phase("p", impatient, timeout=9)]))
    assert not isinstance(raised.value, PhaseTimedOut)


def test_there_is_at_least_one_job(store: Store) -> None:
    with pytest.raises(InvalidInput):
        asyncio.run(store.run_task_async("t", [], jobs=0))


def test_a_plain_phase_may_use_the_plain_context(store: Store) -> None:
    def plain(ctx: Context) -> Any:
        return ctx.once("k", lambda: 5)

    assert asyncio.run(store.run_task_async("t", [("p", plain)])).results == {"p": 5}
