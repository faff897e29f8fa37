"""Tasks: named phases that are run in order and recorded, so that none that finished runs again.

    from snapstore.tasks import Task

    release = Task("release")

    @release.phase
    def build():
        return {"wheel": "app-1.0.whl"}

    @release.phase(retries=3, timeout=60)
    def upload(ctx):
        return ctx.once("upload", lambda: send(ctx.results["build"]["wheel"]))

    report = release.run(store)

The promise
    A phase whose record was saved never runs again, unless it is changed (see ``Phase``) or reset.
    A phase that was cut off may run again, from its beginning. So what it does to the outside goes
    through ``ctx.once``, or is such that doing it twice is doing it once.
    Each attempt begins with the scratchpad that the finished phases left: what a failed attempt set
    there is kept in its record only.

The record of a task is the session ``task/NAME`` (see ``record``).
"""

from __future__ import annotations

from snapstore.tasks.context import AsyncContext, Context
from snapstore.tasks.lease import Holder, Lease, Leases
from snapstore.tasks.phase import Phase
from snapstore.tasks.report import Event, Report
from snapstore.tasks.runner import run_task, run_task_async
from snapstore.tasks.status import PhaseStatus, TaskStatus, reset, status, tasks
from snapstore.tasks.task import Task

__all__ = [
    "AsyncContext",
    "Context",
    "Event",
    "Holder",
    "Lease",
    "Leases",
    "Phase",
    "PhaseStatus",
    "Report",
    "Task",
    "TaskStatus",
    "reset",
    "run_task",
    "run_task_async",
    "status",
    "tasks",
]
