"""snapstore forget: deleting old sessions by a rule."""

from __future__ import annotations

from datetime import timedelta

import click

from snapstore.maintenance.retention import Rule
from snapstore.maintenance.retention import forget as delete_old
from snapstore_cli.command import Command
from snapstore_cli.durations import DURATION
from snapstore_cli.invocation import Invocation
from snapstore_cli.progress import Bar
from snapstore_cli.render.words import count


@click.command(cls=Command)
@click.option("--keep-last", type=click.IntRange(min=1), metavar="N", help="The N saved last stay.")
@click.option(
    "--keep-within", type=DURATION, metavar="TIME", help="Those saved within this time stay."
)
@click.option("--keep-tag", is_flag=True, help="Those with a tagged turn stay.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.pass_obj
def forget(
    run: Invocation,
    keep_last: int | None,
    keep_within: timedelta | None,
    keep_tag: bool,
    dry_run: bool,
) -> None:
    """Delete the sessions that no rule keeps. The current session always stays.

    Undo brings each of them back, until `snapstore gc` lets go of its turns. Tagged turns stay.

    \b
    Examples:
      snapstore forget --keep-last 20 --keep-within 30d --keep-tag --dry-run
      snapstore forget --keep-within 90d
    """
    rule = Rule(keep_last, keep_within, keep_tag)
    with Bar(run.settings, amount=lambda n: count(n, "session")) as bar:
        done = delete_old(run.store, rule, dry_run=dry_run, progress=bar.progress)
    if run.out.json:
        run.out.document(
            {"kept": list(done.kept), "deleted": list(done.deleted), "dry_run": dry_run}
        )
        return
    run.out.lines(done.deleted)
    what = "would be deleted" if dry_run else "deleted; undo -s NAME brings one back"
    run.out.say(f"{count(len(done.deleted), 'session')} {what}, {len(done.kept)} stay")
