"""snapstore diff: what two turns do not share."""

from __future__ import annotations

from typing import Any

import click

from snapstore.diff import Diff, MapDiff
from snapstore_cli import documents, outfile
from snapstore_cli.command import Command
from snapstore_cli.commands import html_page
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import difference, diffstat

PARTS = ("messages", "scratchpad", "files")


def parts_option(context: click.Context, option: click.Parameter, value: str | None) -> set[str]:
    """The parts in a comma-separated list; all for none. Raises BadParameter."""
    if value is None:
        return set(PARTS)
    chosen = {part.strip() for part in value.split(",") if part.strip()}
    strange = sorted(chosen - set(PARTS))
    if strange or not chosen:
        raise click.BadParameter(
            f"{', '.join(strange) or value!r}: choose from {', '.join(PARTS)}", context, option
        )
    return chosen


@click.command(cls=Command)
@click.argument("left", metavar="A")
@click.argument("right", metavar="[B]", required=False)
@click.option("--stat", is_flag=True, help="Only numbers.")
@click.option(
    "--only",
    metavar="PARTS",
    callback=parts_option,
    help="Some of messages,scratchpad,files.",
)
@click.option("--side-by-side", is_flag=True, help="Two columns.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 when they differ.")
@click.option(
    "--html", metavar="FILE", help="Write a page for a browser, without secrets; - is stdout."
)
@click.option("--no-redact", is_flag=True, help="Of --html: leave secrets in.")
@click.pass_context
def diff(
    context: click.Context,
    left: str,
    right: str | None,
    stat: bool,
    only: set[str],
    side_by_side: bool,
    exit_code: bool,
    html: str | None,
    no_redact: bool,
) -> None:
    """What two turns or two sessions did since they parted.

    First what both hold, up to their last common turn; then the turns and messages of each side;
    then what differs in the scratchpad. B is the current session when it is not given.

    \b
    Examples:
      snapstore diff fix-login try-redis
      snapstore diff fix-login@2 fix-login@5 --stat
      snapstore diff try-redis --only scratchpad
      snapstore diff a b --exit-code --json
      snapstore diff fix-login try-redis --html compared.html
    """
    run: Invocation = context.obj
    page = outfile.named(html, "--html")
    ours = run.turn(left)
    theirs = run.turn(right)
    found = run.store.diff(ours, theirs)
    equal = _equal(found, only)
    name = right or run.session_name
    if html is not None:
        html_page.diff_page(run, left, right, page, not no_redact)
    elif run.out.json:
        run.out.document(_document(found, documents.names(run.store), equal))
    elif stat:
        run.out.lines(diffstat.stat(found, left, name, only, run.out.look))
    else:
        look = run.out.look
        lines = difference.lines(found, left, name, only, look, beside=side_by_side)
        run.out.lines(lines, page=True)
    if right is None and ours == theirs:
        run.out.note(f"{name} is where it stands now: `snapstore diff {left} B` names the other")
    if exit_code and not equal:
        context.exit(1)


def _equal(found: Diff, parts: set[str]) -> bool:
    messages = bool(found.history.left or found.history.right)
    return not (
        (messages and "messages" in parts)
        or (found.scratchpad and "scratchpad" in parts)
        or (found.files and "files" in parts)
    )


def _document(found: Diff, at: documents.Names, equal: bool) -> dict[str, Any]:
    base = found.base
    return {
        "base": {"id": base.id, "turn": base.turn} if base else None,
        "left": {
            "head": found.left_head.id,
            "turns": [documents.turn(turn, at) for turn in found.left],
            "messages": found.history.left,
        },
        "right": {
            "head": found.right_head.id,
            "turns": [documents.turn(turn, at) for turn in found.right],
            "messages": found.history.right,
        },
        "scratchpad": _map(found.scratchpad),
        "files": documents.files_diff(found.files) if found.files is not None else None,
        "equal": equal,
    }


def _map(found: MapDiff) -> dict[str, Any]:
    changed = {key: list(pair) for key, pair in found.changed.items()}
    return {"added": found.added, "removed": found.removed, "changed": changed}
