"""snapstore stats: what a store holds and what it saves."""

from __future__ import annotations

import click

from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.progress import Bar
from snapstore_cli.render import storage


@click.command(cls=Command)
@click.pass_obj
def stats(run: Invocation) -> None:
    """What the store holds: sessions, turns, objects, and their bytes.

    `as whole copies` is what the messages would take if every turn kept its whole history; of a
    young store that is less than what is on disk, and left out. By kind each content counts once;
    by session it is the messages of the last turn, those that forks share in each of them.

    \b
    Examples:
      snapstore stats
      snapstore stats --json
    """
    with Bar(run.settings) as bar:
        found = run.store.stats(bar.progress)
    if run.out.json:
        run.out.document(found)
    else:
        run.out.lines(storage.lines(found, run.out.look))
