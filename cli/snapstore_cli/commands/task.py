"""snapstore task: checkpointed phases of shell commands."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from datetime import datetime

import click

from snapstore.tasks import (
    Event,
    Holder,
    PhaseStatus,
    TaskStatus,
    reset,
    run_task_async,
    status,
    tasks,
)
from snapstore.tasks.record import PREFIX
from snapstore.times import moment
from snapstore_cli import documents, pushing
from snapstore_cli.command import Group
from snapstore_cli.errors import tell
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import columns, words
from snapstore_cli.render.columns import Cell
from snapstore_cli.render.style import Look, Role
from snapstore_cli.task.commands import as_phase
from snapstore_cli.task.file import TaskFile, read
from snapstore_cli.task.watch import Progress, sinks

_ROLES: dict[str, Role] = {
    "done": "added", "failed": "error", "interrupted": "warning", "running": "name",
    "waiting": "dim",
}  # fmt: skip


@click.group(cls=Group, no_args_is_help=False)
def task() -> None:
    """Tasks: phases that are recorded when they finish, and never run again after that.

    \b
    Examples:
      snapstore task run release.toml
      snapstore task status release
      snapstore task reset release upload
    """


@task.command("run")
@click.argument("file", metavar="FILE.toml")
@click.option("-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True,
              metavar="N", help="Phases that may run side by side.")  # fmt: skip
@click.option("--wait", type=click.FloatRange(min=0), metavar="SECONDS",
              help="How long to wait for another runner; else as long as it takes.")  # fmt: skip
@click.option("--worktree", metavar="DIR", help="Capture the files of this directory.")
@click.option("--restore", is_flag=True, help="First bring the captured files back.")
@click.pass_context
def run_(
    context: click.Context,
    file: str,
    jobs: int,
    wait: float | None,
    worktree: str | None,
    restore: bool,
) -> None:
    """Run the phases of a task that have not finished yet. Exits with 1 when one fails.

    A finished phase never runs again, unless its run, cwd, env or version changes: then it does,
    with those after it. A phase that was cut off runs again from its start, so let it be one that
    may: write to a new file and rename it, use `mkdir -p`, check before you send. Its environment
    has SNAPSTORE_TASK, SNAPSTORE_PHASE and SNAPSTORE_ATTEMPT.

    One runner at a time: a second one waits, also on another host where the store is an object
    store. There a runner that was killed is followed within two minutes.

    \b
    release.toml:
      name = "release"
      [[phase]]
      name = "build"
      run = "make dist"
      [[phase]]
      name = "upload"
      run = "./upload.sh dist/*"
      retries = 3         # also: cwd, env, timeout (seconds), version, needs

    Phases run in the order of the file; `needs = ["build"]` waits for these phases only, and with
    -j those that need nothing of each other run side by side.

    \b
    Examples:
      snapstore task run release.toml
      snapstore task run release.toml -j 4 --worktree . --restore
      snapstore log task/release
    """
    run: Invocation = context.obj
    described = read(file)
    progress = Progress(run.out, [phase.name for phase in described.phases])

    def watch(event: Event) -> None:
        progress(event)
        if event.kind != "started":
            pushing.begin(run.writable_store)

    try:
        asyncio.run(_run(run, described, watch, jobs, wait, worktree, restore))
    except Exception as error:
        if error is not progress.error:
            raise
    failed = progress.failed
    document = {
        "task": described.name,
        "ran": progress.ran,
        "skipped": progress.skipped,
        "failed": failed,
        "error": str(progress.error) if failed else None,
    }
    told = f"{words.count(len(progress.ran), 'phase')} ran, {len(progress.skipped)} had finished"
    run.result(document, f"{described.name}: {told}")
    if failed:
        if not run.out.json:
            hint = (
                "run it again to go on: what finished is skipped; "
                f"`snapstore task status {described.name}` shows where it stands"
            )
            tell(f"phase {failed} failed: {progress.error}", hint, run.out.error_style)
        context.exit(1)


async def _run(
    run: Invocation,
    described: TaskFile,
    watch: Callable[[Event], None],
    jobs: int,
    wait: float | None,
    worktree: str | None,
    restore: bool,
) -> None:
    phases = [
        as_phase(
            described.name,
            phase,
            os.environ,
            sinks(phase.name, as_json=run.out.json, beside_others=jobs > 1),
        )
        for phase in described.phases
    ]
    this = asyncio.current_task()
    assert this is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, this.cancel)
    try:
        await run_task_async(
            run.writable_store,
            described.name,
            phases,
            worktree=worktree,
            restore=restore,
            wait=wait,
            watch=watch,
            jobs=jobs,
        )
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@task.command("status")
@click.argument("name", required=False)
@click.pass_obj
def status_(run: Invocation, name: str | None) -> None:
    """How far a task has come, phase by phase; without NAME, all tasks.

    \b
    Examples:
      snapstore task status
      snapstore task status release --json
    """
    if name is None:
        _list(run, [status(run.store, each) for each in tasks(run.store)])
        return
    found = status(run.store, name.removeprefix(PREFIX))
    if run.out.json:
        run.out.document(_document(found))
    else:
        run.out.lines(_lines(found, run.out.look), page=True)


def _list(run: Invocation, found: list[TaskStatus]) -> None:
    if run.out.json:
        run.out.document({"tasks": [_document(each) for each in found]})
        return
    rows: list[list[Cell]] = [
        [("name", words.one_line(each.name)), ("", _summary(each))] for each in found
    ]
    run.out.lines(columns.lines(rows, run.out.look), page=True)


def _summary(found: TaskStatus) -> str:
    told = f"{found.finished} of {words.count(len(found.phases), 'phase')} done"
    stopped = [p for p in found.phases if p.state in ("failed", "interrupted", "running")]
    return ", ".join([told, *(f"{words.one_line(p.name)} {p.state}" for p in stopped)])


def _lines(found: TaskStatus, look: Look) -> Iterator[str]:
    yield from columns.lines((_cells(phase, look) for phase in found.phases), look)
    if found.holder is not None:
        yield look.style("dim", f"being run by {found.holder}")
    for key in found.uncertain:
        told = f"the outcome of {key} is unknown: see on_uncertain of ctx.once"
        yield look.style("warning", words.one_line(told))


def _cells(phase: PhaseStatus, look: Look) -> list[Cell]:
    took = f"{phase.seconds:.1f} s" if phase.seconds is not None else ""
    attempt = f"attempt {phase.attempt}" if phase.attempt > 1 else ""
    error = words.one_line(phase.error) if phase.state in ("failed", "interrupted") else ""
    return [
        ("name", words.one_line(phase.name)),
        (_ROLES[phase.state], phase.state),
        ("dim", look.time(datetime.fromisoformat(phase.time)) if phase.time else ""),
        ("dim", took),
        ("dim", attempt),
        ("", error),
    ]


def _document(found: TaskStatus) -> dict[str, object]:
    holder = found.holder
    return {
        "task": found.name,
        "session": PREFIX + found.name,
        "running": _running(holder) if holder else None,
        "uncertain": list(found.uncertain),
        "phases": [
            {
                "name": phase.name,
                "state": phase.state,
                "attempt": phase.attempt,
                "time": phase.time or None,
                "seconds": phase.seconds,
                "error": phase.error or None,
                "result": phase.result,
                "facts": phase.facts,
            }
            for phase in found.phases
        ],
    }


def _running(holder: Holder) -> dict[str, object]:
    """Who runs it. What runs out by itself, unless its runner goes on, has a time for that."""
    until = documents.time(moment(holder.until)) if holder.until else None
    return {"pid": holder.pid, "host": holder.host, "until": until}


@task.command("reset")
@click.argument("name")
@click.argument("phase")
@click.pass_obj
def reset_(run: Invocation, name: str, phase: str) -> None:
    """Let PHASE, and what comes after it, run again. `undo -s task/NAME` takes that back.

    Effects that a program keeps with ctx.once stay known: they do not take place twice.

    \b
    Examples:
      snapstore task reset release upload
    """
    name = name.removeprefix(PREFIX)
    again = reset(run.store, name, phase)
    text = (
        f"{name}: {', '.join(again)} will run again" if again else f"{name}: nothing had finished"
    )
    run.result({"task": name, "reset": again}, text)
