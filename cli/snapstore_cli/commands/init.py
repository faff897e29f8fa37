"""snapstore init: make a store."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from snapstore import StoreNotFound
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.opening import open_store
from snapstore_cli.place import HERE, named_in_environment, nearest


@click.command(cls=Command)
@click.argument("path", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.pass_obj
def init(run: Invocation, path: Path | None) -> None:
    """Make a store in .snapstore/ here, or in PATH.

    Commands that are run in that directory, or anywhere below it, then use this store, and no
    longer one of a directory above. It is safe to repeat. With --store the store is made at that
    place instead.

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
    folder = Path(place).parent.resolve()
    above = _above(folder) if Path(place).name == HERE else None
    word = "made a store" if created else "there is a store already"
    run.result({"store": place, "created": created, "above": above}, f"{word} in {place}")
    if created and above is not None:
        run.out.note(
            f"until now commands in {folder} used {above}: what was saved stays there, and "
            f"`snapstore pull {shlex.quote(above)}` brings it here"
        )
    elsewhere = named_in_environment()
    if elsewhere and not run.settings.store:
        run.out.warn(f"commands go on using $SNAPSTORE_STORE, which is {elsewhere}")


def _above(folder: Path) -> str | None:
    """The store that commands in a directory would use if it had none of its own."""
    try:
        return nearest(str(folder.parent))
    except StoreNotFound:  # what stands there is none
        return None
