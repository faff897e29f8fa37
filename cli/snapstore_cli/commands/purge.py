"""snapstore purge: a text out of every turn, for good."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from snapstore.maintenance.purge import Purged
from snapstore.maintenance.purge import purge as take_out
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.render.words import count


@click.command(cls=Command)
@click.option("--match", metavar="TEXT|-", required=True, help="The text; - reads it from stdin.")
@click.option("--apply", "applies", is_flag=True, help="Do it; else only show what would be done.")
@click.pass_obj
def purge(run: Invocation, match: str, applies: bool) -> None:
    """Replace a text, such as a leaked key, in every turn of every session, and drop the old turns.

    Messages, scratchpads, files, labels and metadata are changed in all turns that hold it, those
    of forks, tags and deleted sessions too, and those that only undo reached. Turn numbers, labels
    and times stay; ids become others. What held the text is then removed from the store's files:
    old ids are not found any more, and undo does not go back beyond this.

    Without --apply nothing is changed. A key that was leaked must be revoked all the same. Copies
    in bundles and other stores stay as they are: purge there too. Files in working directories are
    not touched, and the next save captures them again.

    In an object store others may go on saving, but not to sessions that share turns with those that
    change: then it is refused, and what it has done so far stays. Versions that a bucket keeps of
    deleted objects are not its business: delete them with the provider's own tools.

    \b
    Examples:
      snapstore scan
      pbpaste | snapstore purge --match -
      snapstore purge --match "$OLD_KEY" --apply
    """
    text = sys.stdin.read().strip("\r\n") if match == "-" else match
    done = take_out(run.store, text, apply=applies)
    if run.out.json:
        run.out.document(asdict(done))
        return
    run.out.lines(done.sessions)
    run.out.say(_told(done))
    if done.signed_thinking:
        run.out.warn(
            f"{count(done.signed_thinking, 'message')} held it in thinking that is signed: a "
            "provider may refuse such a history"
        )
    for ref in done.elsewhere:
        run.out.warn(f"{ref} holds the text too, and is left as it is")


def _told(done: Purged) -> str:
    if not done.sessions:
        return "no turn holds this text"
    parts = (
        count(done.turns, "turn"),
        count(done.messages, "message"),
        count(done.values, "scratchpad value"),
        count(done.files, "file"),
    )
    changed = "changed" if done.applied else "would be changed; nothing was: --apply does it"
    return f"{', '.join(parts)} {changed}"
