"""snapstore repair: going on with what is whole."""

from __future__ import annotations

from pathlib import Path

import click

from snapstore.engine import Problem
from snapstore.maintenance.repair import Repaired
from snapstore.maintenance.repair import repair as mend
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.render.words import count


@click.command(cls=Command)
@click.option("--apply", "applies", is_flag=True, help="Do it; else only show what would be done.")
@click.pass_obj
def repair(run: Invocation, applies: bool) -> None:
    """Go on with what is whole after data was damaged.

    What still verifies is written anew; files with damaged parts are set aside in damaged/, never
    deleted. A session that leads to something that is lost is moved to its newest whole turn.
    Indexes are made again. Where the log is shorter than it was, what is gone is given up. Where
    the journal of an interrupted restore is damaged, the files that it was moving are put into
    snapstore-rescued-... in their directory. Without --apply nothing is changed. With it, what is
    damaged is also looked for in trash/, so more may be saved than was shown.

    \b
    Examples:
      snapstore verify
      snapstore repair
      snapstore repair --apply
    """
    done = mend(run.store, apply=applies, places=_around())
    if run.out.json:
        run.out.document(
            {
                "damaged": [
                    {"path": p.path, "offset": p.offset, "message": p.message} for p in done.damaged
                ],
                "moved": [
                    {
                        "ref": one.ref,
                        "from": one.old.hex(),
                        "to": one.new.hex() if one.new else None,
                        "turn": one.turn,
                    }
                    for one in done.moved
                ],
                "stranded": [
                    {
                        "journal": str(one.journal),
                        "worktree": str(one.worktree) if one.worktree else None,
                        "folders": list(map(str, one.folders)),
                    }
                    for one in done.stranded
                ],
                "applied": done.applied,
            }
        )
        return
    run.out.lines(map(_line, done.damaged))
    run.out.lines(map(str, done.moved))
    run.out.lines(map(str, done.stranded))
    run.out.say(_told(done))


def _line(problem: Problem) -> str:
    is_named = problem.path is None or problem.path in problem.message
    return problem.message if is_named else f"{problem.message} ({problem.path})"


def _around() -> list[Path]:
    """The working directory and those above it: one of them may have been restored into."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return []
    return [here, *here.parents]


def _told(done: Repaired) -> str:
    if not done.damaged and not done.moved and not done.stranded:
        return "nothing is damaged"
    told = f"{count(len(done.damaged), 'damaged part')}, {count(len(done.moved), 'session')} moved"
    if done.stranded:
        told += f", {count(len(done.stranded), 'restore')} given up"
    if not done.applied:
        return f"{told}; nothing was changed: --apply does it"
    return f"{told}; the damaged files are in damaged/"
