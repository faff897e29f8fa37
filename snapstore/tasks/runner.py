"""Running a task: the lease, the phases one after another or side by side, retries."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snapstore import arguments
from snapstore.errors import InvalidInput, Locked, Refused
from snapstore.tasks.context import AsyncContext, Context
from snapstore.tasks.deadline import deadline, timed_out
from snapstore.tasks.lease import Lease
from snapstore.tasks.order import Queue, order
from snapstore.tasks.phase import Phase
from snapstore.tasks.report import Event, Report, Watch
from snapstore.tasks.run import Run, argument, kept

if TYPE_CHECKING:
    from snapstore.store import Store

Phases = Iterable[Phase | tuple[str, Callable[..., Any]]]

_running: ContextVar[frozenset[Hashable]] = ContextVar("running tasks", default=frozenset())
"""The tasks that this code is a part of, each with the place of its store."""


def run_task(
    store: Store,
    name: str,
    phases: Phases,
    *,
    worktree: str | Path | None = None,
    restore: bool = False,
    wait: float | None = None,
    watch: Watch | None = None,
) -> Report:
    """Run the phases of a task that have not finished yet, in order.

    Args:
        name: names the task, for good; its record is the session ``task/NAME``.
        phases: ``Phase`` objects, or pairs of a name and a function.
        worktree: a directory whose files each record captures.
        restore: bring the files back first that the finished phases left there.
        wait: seconds to wait for another runner of this task; None: as long as it takes.
        watch: told what happens.

    What a phase raises comes through after it was recorded, and the next run begins with that
    phase. Raises InvalidInput when the phases contradict each other or what has finished, Locked
    when another runner has the task for too long, UnsupportedValue for a result that is not JSON,
    Refused when the task is run from within itself.
    """
    run = Run(store, name, order(phases), worktree=worktree, restore=restore, watch=watch)
    with _held(store, name, wait, watch) as lease:
        run.prepare(lease)
        for phase in run.left:
            _run_phase(run, phase)
        return run.report()


async def run_task_async(
    store: Store,
    name: str,
    phases: Phases,
    *,
    worktree: str | Path | None = None,
    restore: bool = False,
    wait: float | None = None,
    watch: Watch | None = None,
    jobs: int = 1,
) -> Report:
    """As ``run_task``, for phases of which some are async; at most ``jobs`` of them side by side.

    Phases run side by side when neither needs the other. When one fails, those that are under way
    come to their end and no other is begun. A phase that is not async holds up the event loop, as
    any such function does.
    """
    if arguments.whole(jobs, "jobs") < 1:
        raise InvalidInput(f"cannot run {jobs} phases at once")
    run = Run(store, name, order(phases), worktree=worktree, restore=restore, watch=watch)
    async with _held_async(store, name, wait, watch) as lease:
        run.prepare(lease)
        await _side_by_side(run, jobs)
        return run.report()


# --- one phase -----------------------------------------------------------------------------------


def _run_phase(run: Run, phase: Phase) -> None:
    number = 1
    while True:
        attempt = run.start(phase, Context, number)
        begun = time.monotonic()
        try:
            with deadline(phase.timeout, f"phase {phase.name!r}"):
                result = kept(phase, _called(phase, attempt))
        except BaseException as error:
            pause = run.fail(phase, attempt, error, time.monotonic() - begun)
            if pause is None:
                raise
        else:
            run.finish(phase, attempt, result, time.monotonic() - begun)
            return
        time.sleep(pause)
        number += 1


def _called(phase: Phase, attempt: Context) -> Any:
    if not phase.is_async:
        result = phase.run(*argument(phase, attempt))
        if not inspect.isawaitable(result):
            return result
        if inspect.iscoroutine(result):
            result.close()
    raise InvalidInput(f"phase {phase.name!r} is async: run the task with run_task_async")


async def _run_phase_async(run: Run, phase: Phase) -> None:
    number = 1
    while True:
        if not phase.is_async:
            attempt: Context | AsyncContext = run.start(phase, Context, number)
        else:
            attempt = run.start(phase, AsyncContext, number)
        begun = time.monotonic()
        try:
            result = kept(phase, await _awaited(phase, attempt))
        except BaseException as error:
            pause = run.fail(phase, attempt, error, time.monotonic() - begun)
            if pause is None:
                raise
        else:
            run.finish(phase, attempt, result, time.monotonic() - begun)
            return
        await asyncio.sleep(pause)
        number += 1


async def _awaited(phase: Phase, attempt: Context | AsyncContext) -> Any:
    told = f"phase {phase.name!r}"
    if not phase.is_async:
        with deadline(phase.timeout, told):
            result = phase.run(*argument(phase, attempt))
        if not inspect.isawaitable(result):
            return result
    else:
        result = phase.run(*argument(phase, attempt))
    limit = asyncio.timeout(phase.timeout)
    try:
        async with limit:
            return await result
    except TimeoutError:
        if not limit.expired():
            raise
        raise timed_out(told, phase.timeout or 0) from None


async def _side_by_side(run: Run, jobs: int) -> None:
    queue = Queue(run.left, run.order.waits_for)
    under_way: dict[asyncio.Task[None], str] = {}
    failures: list[BaseException] = []
    try:
        while True:
            while not failures and len(under_way) < jobs and (phase := queue.next()) is not None:
                under_way[asyncio.create_task(_run_phase_async(run, phase))] = phase.name
            if not under_way:
                break
            ended, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                name = under_way.pop(task)
                error = task.exception()
                if error is not None:
                    failures.append(error)
                else:
                    queue.finished(name)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    if failures:
        raise failures[0]


# --- one runner at a time ------------------------------------------------------------------------


@contextlib.contextmanager
def _held(store: Store, name: str, wait: float | None, watch: Watch | None) -> Iterator[Lease]:
    with _given_back() as taken:
        for taken.lease, pause in _asking(store, name, wait, watch):
            if taken.lease is None:
                time.sleep(pause)
        assert taken.lease is not None
        _running.set(_running.get() | {_here(store, name)})
        yield taken.lease


@contextlib.asynccontextmanager
async def _held_async(
    store: Store, name: str, wait: float | None, watch: Watch | None
) -> AsyncIterator[Lease]:
    with _given_back() as taken:
        for taken.lease, pause in _asking(store, name, wait, watch):
            if taken.lease is None:
                await asyncio.sleep(pause)
        assert taken.lease is not None
        _running.set(_running.get() | {_here(store, name)})
        yield taken.lease


class _Taken:
    """Where a lease is put as soon as it is taken."""

    lease: Lease | None = None


@contextlib.contextmanager
def _given_back() -> Iterator[_Taken]:
    """Gives back what is put into it, at the end, and what is then said to run runs no more."""
    taken, around = _Taken(), _running.get()
    try:
        yield taken
    finally:
        _running.set(around)
        if taken.lease is not None:
            try:
                taken.lease.release()
            except KeyboardInterrupt:  # it may have come before anything was done
                taken.lease.release()
                raise


def _asking(
    store: Store, name: str, wait: float | None, watch: Watch | None
) -> Iterator[tuple[Lease | None, float]]:
    """Ask for the lease until it is there, which ends it; before that, seconds to wait. Raises
    Locked.

    Whoever takes it from here puts it where it will be given back before anything is called, so
    that Ctrl-C cannot come in between.
    """
    if _here(store, name) in _running.get():
        raise Refused(f"task {name} is run from within itself")
    store.engine.create()
    begun = time.monotonic()
    told = False
    while (lease := store.leases.take(name)) is None:
        holder = store.leases.holder(name)
        left = None if wait is None else begun + wait - time.monotonic()
        if left is not None and left <= 0:
            raise Locked(f"task {name} is being run by {holder or 'somebody else'}")
        if watch is not None and not told:
            watch(Event("waiting", holder=holder))
            told = True
        yield None, store.leases.pause if left is None else min(store.leases.pause, left)
    yield lease, 0.0


def _here(store: Store, name: str) -> Hashable:
    return store.local.root.resolve() if store.local else id(store.engine), name
