"""snapstore gc: what nothing reaches any more."""

from __future__ import annotations

import click

from snapstore import Store, refs
from snapstore.errors import SnapstoreError
from snapstore.maintenance.reach import Reach
from snapstore.model.layout import LAYOUT
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.render.words import count, size


@click.command(cls=Command)
@click.pass_obj
def gc(run: Invocation) -> None:
    """Show what no session, tag or reflog entry reaches.

    Nothing is ever deleted by itself.

    \b
    Examples:
      snapstore gc
      snapstore gc --json
    """
    objects, held = _unreached(run.store)
    run.result(
        {"objects": objects, "bytes": held, "applied": False},
        f"{count(objects, 'object')} that nothing reaches, {size(held)}; nothing was removed",
    )


def _unreached(store: Store) -> tuple[int, int]:
    """How many objects nothing reaches, and their bytes. Raises what makes an object unreadable:
    behind damage there may be links that nobody can follow."""

    def give_up(object_id: bytes, error: SnapstoreError) -> None:
        raise error

    reach = Reach(store.objects, give_up)
    for move in store.engine.reflog():
        if LAYOUT in move.info:
            reach.layout(move.info[LAYOUT])
        if move.new is None:
            continue
        if move.ref.startswith(refs.OF_SNAPSHOTS):
            for turn in reach.line(move.new):
                reach.visit(turn)
        else:
            reach.seen.add(move.new)
    rest = [i for i, _ in store.engine.ids(b"", 0) if i not in reach.seen]
    return len(rest), sum(len(store.engine.read(i).payload) for i in rest)
