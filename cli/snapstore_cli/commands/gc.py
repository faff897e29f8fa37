"""snapstore gc: what nothing reaches any more."""

from __future__ import annotations

from datetime import timedelta

import click

from snapstore.maintenance.gc import REFLOG, Collected, Rewriting, collect
from snapstore_cli.command import Command
from snapstore_cli.durations import DURATION
from snapstore_cli.invocation import Invocation
from snapstore_cli.progress import Bar
from snapstore_cli.render.words import count, size


@click.command(cls=Command)
@click.option("--apply", "applies", is_flag=True, help="Do it; else only show what would go.")
@click.option(
    "--grace",
    type=DURATION,
    default=REFLOG,
    show_default="90d",
    metavar="TIME",
    help="How long what only undo reaches stays; 0 lets go of all of it, and empties trash/.",
)
@click.pass_obj
def gc(run: Invocation, applies: bool, grace: timedelta) -> None:
    """Let go of what no session, tag or recent move reaches, and pack what stays.

    Without --apply nothing is changed, and nothing is ever deleted by itself. Others can save and
    read meanwhile. The files that were replaced stay in trash/ for a day. --grace 0 empties it at
    once, and ends what undo could bring back.

    \b
    Examples:
      snapstore gc
      snapstore gc --apply
      snapstore gc --apply --grace 7d
      snapstore gc --apply --grace 0
    """
    has_files = isinstance(run.store.engine, Rewriting)
    amount = size if has_files else lambda n: count(n, "request")
    with Bar(run.settings, amount=amount) as bar:
        found = collect(run.store, apply=applies, grace=grace, progress=bar.progress)
    run.result(
        {
            "objects": found.objects,
            "bytes": found.bytes,
            "applied": found.applied,
            "freed": found.freed,
            "trash": found.trash,
        },
        _told(found, packs=has_files),
    )


def _told(found: Collected, *, packs: bool) -> str:
    what = f"{count(found.objects, 'object')} that nothing reaches, {size(found.bytes)}"
    if not found.objects:
        what = "no object that nothing reaches"
    if not found.applied:
        hint = ": --apply does it" if found.objects else ""
        if packs:
            hint = (
                f"{hint}, and packs the rest"
                if hint
                else ": --apply packs the store where that helps"
            )
        return f"{what}; nothing was changed{hint}{_trash(found)}"
    grown = f"{size(abs(found.freed))} {'smaller' if found.freed > 0 else 'larger'}"
    done = ", removed" if found.objects else ""
    return f"{what}{done}; the store is {grown if found.freed else 'as it was'}{_trash(found)}"


def _trash(found: Collected) -> str:
    """What replaced files take beside the store, and what removes them."""
    if not found.trash:
        return ""
    return (
        f"; trash/ holds {size(found.trash)} more of replaced files, removed by the first "
        "`gc --apply` after a day"
    )
