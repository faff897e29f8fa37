"""snapstore verify (fsck): every byte and every link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from snapstore.engine import Problem
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.output import Output
from snapstore_cli.progress import Bar
from snapstore_cli.render import touches
from snapstore_cli.render.style import Look
from snapstore_cli.render.words import count, one_line

_DAMAGE = 5
_WARNINGS = 20
"""Warnings that are told one by one: a transcript may have a thousand results without a call."""


@click.command(cls=Command)
@click.option("--quick", is_flag=True, help="Check the links only; no content is read.")
@click.option(
    "--read-data",
    type=click.IntRange(1, 100),
    default=100,
    metavar="N",
    help="Read a random N percent of the data.",
)
@click.pass_context
def verify(context: click.Context, quick: bool, read_data: int) -> None:
    """Read everything again: each object against its hash, each link from each session and turn.

    Each problem says which turns of which sessions it touches. Exits with 5 when something that was
    saved is damaged. What costs nothing is a warning: the torn tail that a crash leaves, and a tool
    result that answers no call, which a model's API refuses.

    \b
    Examples:
      snapstore verify
      snapstore verify --quick
      snapstore verify --read-data 10 --json
    """
    run: Invocation = context.obj
    store = run.store
    with Bar(run.settings) as bar:
        problems = store.verify(bar.progress, quick=quick, share=read_data / 100)
    damage = [problem for problem in problems if not problem.harmless]
    objects = store.engine.stats().objects
    if run.out.json:
        listed = [_document(problem) for problem in problems]
        run.out.document({"ok": not damage, "objects": objects, "problems": listed})
    else:
        _warn([problem for problem in problems if problem.harmless], run.out)
        run.out.lines(_of_damage(damage, run.out.look))
        verdict = count(len(damage), "problem") if damage else "all is well"
        run.out.say(f"{count(objects, 'object')} checked: {verdict}")
        if damage:
            run.out.note("`snapstore repair` shows what can be saved; copy the store away first")
    if damage:
        context.exit(_DAMAGE)


def _warn(harmless: Sequence[Problem], out: Output) -> None:
    for problem in harmless[:_WARNINGS]:
        out.warn("; ".join(_told(problem)))
    if len(harmless) > _WARNINGS:
        out.warn(f"{count(len(harmless) - _WARNINGS, 'more warning')}; --json lists them")


def _document(problem: Problem) -> dict[str, Any]:
    return {
        "kind": problem.kind,
        "path": problem.path,
        "offset": problem.offset,
        "id": problem.id.hex() if problem.id else None,
        "message": problem.message,
        "harmless": problem.harmless,
        "touches": list(map(touches.document, problem.touches)),
        "index": problem.position,
    }


def _of_damage(damage: Iterable[Problem], look: Look) -> Iterator[str]:
    for problem in damage:
        line, *further = _told(problem)
        yield look.style("error", line)
        yield from (f"  {more}" for more in further)


def _told(problem: Problem) -> list[str]:
    """What is wrong, and what it touches, if that is known."""
    line = problem.message
    place = problem.path or ""
    if problem.offset is not None:
        place += f" at {problem.offset}"
    if place not in line:
        line += f" ({place})"
    touched = [f"touches {touches.in_words(problem.touches)}"] if problem.touches else []
    return [one_line(text) for text in (f"{problem.kind}: {line}", *touched)]
