"""snapstore verify (fsck): every byte and every link."""

from __future__ import annotations

from typing import Any

import click

from snapstore.engine import Problem
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.progress import Bar
from snapstore_cli.render.words import count, one_line

_DAMAGE = 5


@click.command(cls=Command)
@click.option("--quick", is_flag=True, help="Follow the links only; no content is read.")
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

    Exits with 5 when something that was saved is damaged. What costs nothing, such as the torn
    tail that a crash leaves, is a warning.

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
        for problem in problems:
            if problem.harmless:
                run.out.warn(_line(problem))
        run.out.lines(run.out.look.style("error", _line(problem)) for problem in damage)
        verdict = count(len(damage), "problem") if damage else "all is well"
        run.out.say(f"{count(objects, 'object')} checked: {verdict}")
        if damage:
            run.out.note("`snapstore repair` shows what can be saved; copy the store away first")
    if damage:
        context.exit(_DAMAGE)


def _document(problem: Problem) -> dict[str, Any]:
    return {
        "kind": problem.kind,
        "path": problem.path,
        "offset": problem.offset,
        "id": problem.id.hex() if problem.id else None,
        "message": problem.message,
        "harmless": problem.harmless,
    }


def _line(problem: Problem) -> str:
    place = problem.path or ""
    if problem.offset is not None:
        place += f" at {problem.offset}"
    told = f" ({place})" if place not in problem.message else ""
    return one_line(f"{problem.kind}: {problem.message}{told}")
