"""snapstore recover: turns that nothing leads to."""

from __future__ import annotations

import click

from snapstore.maintenance.recover import recover as find_lost
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.render.words import count


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Only show what would be recovered.")
@click.pass_obj
def recover(run: Invocation, dry_run: bool) -> None:
    """Make a session of each turn that is whole and that no session, tag or move leads to.

    They are called recovered/1, recovered/2 and so on. Deleted sessions and rewound turns need no
    recovering: undo brings them back.

    \b
    Examples:
      snapstore recover --dry-run
      snapstore recover
    """
    found = find_lost(run.store, dry_run=dry_run)
    if run.out.json:
        listed = [{"name": one.name, "id": one.id.hex(), "turn": one.turn} for one in found]
        run.out.document({"sessions": listed, "dry_run": dry_run})
        return
    run.out.lines(f"{one.name} at turn {one.turn} ({one.id.hex()[:12]})" for one in found)
    what = "to recover" if dry_run else "recovered"
    run.out.say(f"{count(len(found), 'session')} {what}" if found else "nothing to recover")
