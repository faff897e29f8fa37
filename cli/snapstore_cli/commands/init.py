"""snapstore init: make a store."""

from __future__ import annotations

from pathlib import Path

import click

from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.opening import open_store
from snapstore_cli.place import HERE


@click.command(cls=Command)
@click.argument("path", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.pass_obj
def init(run: Invocation, path: Path | None) -> None:
    """Make a store in .snapstore/ here, or in PATH.

    Commands that are run in that directory, or anywhere below it, then use this store. It is safe
    to repeat. With --store the store is made at that place instead.

    \b
    Examples:
      snapstore init
      snapstore init ~/projects/website
      snapstore init --store /srv/agents/store
    """
    if path is None and run.settings.store:
        place = run.settings.store
    else:
        place = str((path or Path.cwd()).absolute() / HERE)
    with open_store(place) as store:
        created = not store.engine.exists()
        store.engine.create()
    word = "made a store" if created else "there is a store already"
    run.result({"store": place, "created": created}, f"{word} in {place}")
