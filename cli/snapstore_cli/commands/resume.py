"""snapstore resume: what a harness needs to go on."""

from __future__ import annotations

from collections.abc import Iterator

import click

from snapstore import NotFound, SessionInfo, Store, pairs, revisions
from snapstore.latest import last_saved, saved_at
from snapstore.revisions import Revision
from snapstore.tasks.record import PREFIX as TASK
from snapstore.transfer.exports import Wish, export
from snapstore_cli import documents
from snapstore_cli.command import Command
from snapstore_cli.deep import with_room
from snapstore_cli.errors import INTERRUPTED
from snapstore_cli.homes import here
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import columns, turns, words
from snapstore_cli.render import messages as rendered
from snapstore_cli.render.style import Look

_LAST_MESSAGES = 4
_LINES_A_MESSAGE = 6
_PICKED = 15
"""Sessions that the picker offers."""


@click.command(cls=Command)
@click.argument("rev", required=False)
@click.option(
    "--format",
    "harness",
    type=click.Choice(["anthropic", "openai", "claude-code", "codex"]),
    help="Print the messages as this API or program takes them.",
)
@click.pass_obj
def resume(run: Invocation, rev: str | None, harness: str | None) -> None:
    """What is needed to go on from a turn: messages, scratchpad, calls that wait for a result.

    Without REV a terminal offers the sessions to pick from; elsewhere it is the session saved
    last. --format prints the messages as that API, or the transcript as that program takes it.

    \b
    Examples:
      snapstore resume fix-login
      snapstore resume fix-login --json
      snapstore resume fix-login@3 --format anthropic > messages.json
    """
    found = _chosen(run) if rev is None else run.revision(rev)
    run.require_newest()
    snapshot = found.snapshot
    if harness is not None and not run.out.json:
        _print_as(run, found, harness)
        return
    if run.out.json:
        whole = documents.whole_turn(snapshot)
        keys = ("id", "turn", "messages", "scratchpad", "pending_tool_calls")
        run.out.document({"session": found.session, **{key: whole[key] for key in keys}})
        return
    at = documents.names(run.store)
    run.out.lines(_page(found, at, run.out.look), page=True)


# --- which session -----------------------------------------------------------------------------


def _chosen(run: Invocation) -> Revision:
    if run.settings.session is not None:
        return run.revision(None)
    store = run.store
    name = pick(run, store) if run.may_ask else saved_last(store)
    head = run.existing_session(name).head
    assert head is not None
    return Revision(head, name, None)


def saved_last(store: Store, leaving_out: tuple[str, ...] = ()) -> str:
    """The session that was saved last. Raises NotFound when there is none.

    Names that begin with one of ``leaving_out`` do not count.
    """
    name = last_saved(store, leaving_out)
    if name is None:
        raise NotFound("there are no sessions yet", hint="`snapstore save` makes one")
    return name


def pick(run: Invocation, store: Store, leaving_out: tuple[str, ...] = ()) -> str:
    """The session that the user picks from a list, by number or by name.

    Raises NotFound when there is none. Ctrl-C ends the command.
    """
    found = [info for info in store.sessions() if not info.name.startswith(leaving_out)]
    listed = sorted(found, key=saved_at, reverse=True)[:_PICKED]
    if not listed:
        raise NotFound("there are no sessions yet", hint="`snapstore save` makes one")
    look = run.out.look
    rows = [_picked(store, number, info, look) for number, info in enumerate(listed, 1)]
    for line in columns.lines(rows, look, whole=1):
        click.echo(line, err=True)
    if len(found) > len(listed):
        click.echo(f"     {len(found) - len(listed):,} more: type a name", err=True)

    def chosen(answer: str) -> str:
        if answer.isdecimal() and 1 <= int(answer) <= len(listed):
            return listed[int(answer) - 1].name
        if any(info.name == answer for info in found):
            return answer
        unknown = revisions.unknown(store, answer)
        raise click.UsageError(f"{unknown}; {unknown.hint}")

    try:
        name: str = click.prompt("session", default="1", value_proc=chosen, err=True)
    except click.Abort:
        click.echo(err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    return name


def _picked(store: Store, number: int, info: SessionInfo, look: Look) -> list[columns.Cell]:
    """A session as the fields of a line to pick from."""
    label = "" if info.problem else words.one_line(store.snapshot(info.head).label)
    return [
        ("", f"{number:>3}"),
        ("name", info.name),
        ("heading", f"turn {info.turn}"),
        ("dim", look.time(info.time)),
        ("", words.count(info.messages, "message")),
        ("", label),
    ]


# --- as a page -----------------------------------------------------------------------------------


def _page(found: Revision, at: documents.Names, look: Look) -> Iterator[str]:
    snapshot = found.snapshot
    yield from turns.head(snapshot, found.session, at, look)
    yield ""
    total = len(snapshot.history)
    last = max(0, total - _LAST_MESSAGES)
    start = pairs.border_before(total, snapshot.history, last)  # no result without its call
    if start:
        yield look.style("dim", f"the last {total - start} of {words.count(total, 'message')}")
        yield ""
    limit = _LINES_A_MESSAGE if look.terminal else None
    yield from rendered.page(snapshot.history[start:], start, look, limit)
    waiting = documents.pending(snapshot)
    for call in waiting:
        told = f"{call['name']} ({call['id']}) in message #{call['index']} has no result yet"
        yield look.style("warning", words.one_line(told))
    if waiting:
        yield ""
    yield from turns.scratchpad(snapshot, look)
    if snapshot.scratchpad:
        yield ""
    if found.session is not None:
        is_task = found.session.startswith(TASK)
        command = "task run FILE" if is_task else f"save -s {found.session} --messages FILE"
        yield look.style("dim", f"go on: snapstore {command}")


# --- as an API or a program takes it -------------------------------------------------------------


def _print_as(run: Invocation, found: Revision, harness: str) -> None:
    wish = Wish(harness, here=here())
    made = with_room(lambda: export(run.store, found.snapshot, found.session, wish))
    for what, times in made.losses:
        run.out.warn(f"not carried: {times} {what}")
    run.out.raw([made.data])
