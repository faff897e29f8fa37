"""snapstore op log (reflog): every move of every ref."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from snapstore import ObjectMissing, SnapstoreError, Store, refs
from snapstore.engine import AGAIN, Move
from snapstore.times import moment
from snapstore_cli import documents
from snapstore_cli.command import Group
from snapstore_cli.invocation import Invocation
from snapstore_cli.limits import MOST
from snapstore_cli.render import columns, moves
from snapstore_cli.render.moves import Step

_DAMAGE = 5


@click.group(cls=Group, no_args_is_help=False)
def op() -> None:
    """Operations: every save, rewind, fork, rename, delete, undo is a move of a ref.

    \b
    Examples:
      snapstore op log -n 20
    """


@op.command("log")
@click.option("-n", "most", type=MOST, metavar="N", help="At most N moves.")
@click.pass_context
def op_log(context: click.Context, most: int | None) -> None:
    """Every move of every ref, newest first; with -s, those of one session.

    Each can be stepped back with `undo -s NAME`, and NAME@{2} is where it was 2 moves ago.

    \b
    Examples:
      snapstore op log -n 20
      snapstore reflog -s fix-login
    """
    run: Invocation = context.obj
    steps = _Steps(run.store)
    found = islice(steps.of(run.settings.session), most)
    look = run.out.look
    if run.out.json:
        run.out.document({"moves": [_document(step) for step in found]})
    else:
        rows = (moves.fields(step, look) for step in found)
        run.out.lines(columns.lines(rows, look, whole=1), page=True)
    if steps.met:
        run.tell_of_damage(steps.met[0])
        context.exit(_DAMAGE)


class _Steps:
    """The moves that can be read, and what was met where others cannot."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.met: list[SnapstoreError] = []

    def of(self, session: str | None) -> Iterator[Step]:
        """Those of one session, or of every ref."""
        for move in refs.moves_around_damage(self._store.engine, self.met.append):
            if AGAIN in move.info:
                continue  # an engine repeated the move before it
            if session is None or move.ref == refs.SESSIONS + session:
                yield Step(move, self._before(move), self._end(move))

    def _before(self, move: Move) -> str | None:
        try:
            before = self._store.engine.move(move.ref, move.gen - 1) if move.gen > 1 else None
        except refs.UNREADABLE as error:
            self.met.append(error)
            return None
        return self._end(before)

    def _end(self, move: Move | None) -> str | None:
        if move is None or move.new is None:
            return None
        if move.ref != refs.CURRENT:
            return move.new.hex()
        try:  # it points at a name, whose id would say nothing
            return self._store.objects.content(move.new).decode()
        except (*refs.UNREADABLE, ObjectMissing) as error:
            self.met.append(error)
            return None


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
