"""snapstore tour: a guided first run."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.tour.scratch import Scratch
from snapstore_cli.tour.story import STORY


@click.command(cls=Command)
@click.option("--keep", is_flag=True, help="Keep the scratch folder, to look around in it.")
@click.pass_context
def tour(context: click.Context, keep: bool) -> None:
    """See in a few seconds what this is for: an agent saves its turns, is killed, and goes on.

    Everything happens in a scratch folder with a store of its own. Each command is shown, really
    run, and what it prints is what you see. Exits with 1 if something is not as it should be.

    \b
    Examples:
      snapstore tour
      snapstore tour --keep
    """
    run: Invocation = context.obj
    folder = Path(tempfile.mkdtemp(prefix="snapstore-tour-"))
    scratch = Scratch(folder, run.out, quiet=run.settings.quiet)
    try:
        lasts = "kept" if keep else "removed at the end; --keep keeps it"
        run.out.note(f"scratch folder: {folder} ({lasts})")
        for step in STORY:
            scratch.begin(step.title, step.text)
            step.act(scratch)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if run.out.json:
        kept = str(folder) if keep else None
        run.out.document({"ok": scratch.holds, "folder": kept, "steps": scratch.document()})
    else:
        run.out.say(
            "\nall of it held" if scratch.holds else "\nsomething did not hold: see NO above"
        )
        if keep:
            run.out.say(f"look around: cd {folder} && snapstore log --graph --all")
    if not scratch.holds:
        context.exit(1)
