"""snapstore scan: keys, tokens and passwords in what was saved."""

from __future__ import annotations

from typing import Any

import click

from snapstore.maintenance.scan import Finding, Scan
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.progress import Bar
from snapstore_cli.render import columns
from snapstore_cli.render.words import count

_FOUND = 1
_DAMAGE = 5


@click.command(cls=Command)
@click.pass_context
def scan(context: click.Context) -> None:
    """Look for keys, tokens and passwords in messages, scratchpad and files of every turn.

    Prints the kind of each, the session and turn where it first appears, the place in it, its first
    characters and its length; never the whole. Exits with 1 when there are any, with 5 when there
    are none in what can be read of a damaged store.

    What was found can be taken out of every turn with `snapstore purge`; whatever was leaked should
    be revoked all the same.

    \b
    Examples:
      snapstore scan
      snapstore scan --json | jq -r '.findings[].rule' | sort | uniq -c
    """
    run: Invocation = context.obj
    look = Scan(run.store)
    with Bar(run.settings, amount=None) as bar:
        found = list(look.findings(bar.progress))
    if look.unread:
        run.out.warn(f"{count(look.unread, 'part')} could not be read; see `snapstore verify`")
    if run.out.json:
        run.out.document({"findings": [_document(finding) for finding in found]})
    else:
        run.out.lines(columns.lines(map(_cells, found), run.out.look))
        run.out.note(count(len(found), "secret") if found else "nothing that looks like a secret")
    if found:
        context.exit(_FOUND)
    if look.unread:
        context.exit(_DAMAGE)


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "session": finding.session,
        "turn": finding.turn,
        "where": finding.where,
        "begins": finding.begins,
        "length": finding.length,
    }


def _cells(finding: Finding) -> list[columns.Cell]:
    return [
        ("warning", finding.rule),
        ("name", f"{finding.session}@{finding.turn}"),
        ("", finding.where),
        ("dim", f"{finding.begins}... {count(finding.length, 'character')}"),
    ]
