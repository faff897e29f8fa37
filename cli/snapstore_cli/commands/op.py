"""snapstore op log (reflog): every move of every ref."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from snapstore import Store, refs
from snapstore.engine import Move
from snapstore.times import moment
from snapstore_cli import documents
from snapstore_cli.command import Group
from snapstore_cli.invocation import Invocation
from snapstore_cli.limits import MOST
from snapstore_cli.render import columns, moves
from snapstore_cli.render.moves import Step


@click.group(cls=Group, no_args_is_help=False)
def op() -> None:
    """Operations: every save, rewind, fork, rename, delete, undo is a move of a ref.

    \b
    Examples:
      snapstore op log -n 20
    """


@op.command("log")
@click.option("-n", "most", type=MOST, metavar="N", help="At most N moves.")
@click.pass_obj
def op_log(run: Invocation, most: int | None) -> None:
    """Every move of every ref, newest first; with -s, those of one session.

    Each can be stepped back with `undo -s NAME`, and NAME@{2} is where it was 2 moves ago.

    \b
    Examples:
      snapstore op log -n 20
      snapstore reflog -s fix-login
    """
    found = islice(_steps(run.store, run.settings.session), most)
    if run.out.json:
        run.out.document({"moves": [_document(step) for step in found]})
        return
    look = run.out.look
    run.out.lines(columns.lines((moves.fields(step, look) for step in found), look), page=True)


def _steps(store: Store, session: str | None) -> Iterator[Step]:
    for move in store.engine.reflog():
        if session is None or move.ref == refs.SESSIONS + session:
            before = store.engine.move(move.ref, move.gen - 1) if move.gen > 1 else None
            yield Step(move, _end(store, before), _end(store, move))


def _end(store: Store, move: Move | None) -> str | None:
    if move is None or move.new is None:
        return None
    if move.ref == refs.CURRENT:  # it points at a name, whose id would say nothing
        return store.objects.content(move.new).decode()
    return move.new.hex()


def _document(step: Step) -> dict[str, Any]:
    move = step.move
    info = {key: fact.hex() if isinstance(fact, bytes) else fact for key, fact in move.info.items()}
    return {
        "time": documents.time(moment(move.time)),
        "ref": move.ref,
        "move": move.gen,
        "op": move.op,
        "from": step.before,
        "to": step.after,
        "info": info,
    }
