"""snapstore doctor: whether all is well."""

from __future__ import annotations

from collections.abc import Iterator

import click

from snapstore import __version__
from snapstore.maintenance.doctor import Sign, examine
from snapstore_cli import pushing
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation

_TO_MEND = 1


@click.command(cls=Command)
@click.pass_context
def doctor(context: click.Context) -> None:
    """Look at the store and say whether all is well, and what to do if not.

    Exits with 1 when there is something to mend. Nothing is changed. It does not read everything:
    `snapstore verify` does.

    \b
    Examples:
      snapstore doctor
    """
    run: Invocation = context.obj
    found = [*examine(run.store), *_pushes(run)]
    ill = [sign for sign in found if not sign.well]
    if run.out.json:
        run.out.document(
            {
                "ok": not ill,
                "version": __version__,
                "store": run.place,
                "signs": [sign._asdict() for sign in found],
            }
        )
    else:
        run.out.say(f"snapstore {__version__}, {run.place}")
        run.out.lines(_line(run, sign) for sign in found)
    if ill:
        context.exit(_TO_MEND)


def _pushes(run: Invocation) -> Iterator[Sign]:
    """Being offline is nothing to mend: the next push brings everything."""
    for name, last in pushing.failed(run.store):
        advice = "the push after a later save goes on" if last.offline else f"snapstore push {name}"
        yield Sign(last.offline, pushing.told(name, last), advice)


def _line(run: Invocation, sign: Sign) -> str:
    mark = "ok" if sign.well else run.out.look.style("error", "mend")
    return f"{mark}: {sign.text}" + (f" ({sign.advice})" if sign.advice else "")
