"""snapstore rewind, undo and redo: HEAD back and forth."""

from __future__ import annotations

import click

from snapstore import NotFound, NothingToDo, Session, Snapshot, refs
from snapstore_cli import documents
from snapstore_cli.command import Command
from snapstore_cli.commands.diff import PARTS, parts_option
from snapstore_cli.invocation import Invocation
from snapstore_cli.render.words import count, one_line, short

_MESSAGES, _SCRATCHPAD, _FILES = PARTS
_WHOLE = {_MESSAGES, _SCRATCHPAD}
_DRY = "  (dry run: nothing was moved)"


@click.command(cls=Command)
@click.argument("rev")
@click.option(
    "--what",
    metavar="PARTS",
    default=f"{_MESSAGES},{_SCRATCHPAD}",
    show_default=True,
    callback=parts_option,
    help="What goes back: messages,scratchpad,files.",
)
@click.option("--dry-run", is_flag=True, help="Only show where HEAD would go.")
@click.option("--force", is_flag=True, help="Go on where something would be lost.")
@click.pass_obj
def rewind(run: Invocation, rev: str, what: set[str], dry_run: bool, force: bool) -> None:
    """Move HEAD of a session back to an earlier turn. Nothing is lost: undo goes forth again.

    Without `files` in --what no file is touched. With only one of messages and scratchpad, HEAD
    moves on to a new turn that has this part as it was at REV and the other as it is now.

    \b
    Examples:
      snapstore rewind fix-login@3
      snapstore rewind @~2 --dry-run
      snapstore rewind fix-login@3 --what messages
    """
    revision = run.revision(rev)
    target = revision.snapshot
    session = run.acted_on(revision)
    if _FILES in what:
        raise NotFound(f"turn {target.turn} holds no files", hint="leave files out of --what")
    before = session.head
    if what >= _WHOLE:
        after = target if dry_run else session.rewind(target, force=force)
    elif dry_run:
        part = " and ".join(sorted(what))
        text = f"a new turn with the {part} of turn {target.turn}"
        document = documents.moved(session, before, None, dry_run=True)
        run.result({**document, "turn": session.turn + 1}, f"{session.name}: {text}{_DRY}")
        return
    else:
        after = _rewound_in_part(session, target, what)
    _tell(run, session, before, after, dry_run=dry_run)


def _rewound_in_part(session: Session, target: Snapshot, what: set[str]) -> Snapshot:
    if _MESSAGES in what:
        session.history = target.history
    else:
        session.scratchpad = target.scratchpad
    return session.save(f"{' and '.join(sorted(what))} of turn {target.turn}")


@click.command(cls=Command)
@click.option("-n", "steps", type=click.IntRange(min=1), default=1, metavar="N", help="How many.")
@click.pass_obj
def undo(run: Invocation, steps: int) -> None:
    """Take back the last moves of a session: saves, rewinds, forks, its deletion too.

    \b
    Examples:
      snapstore undo
      snapstore undo -n 3
      snapstore undo -s try-redis          # brings a deleted session back
    """
    _step(run, steps, "undo")


@click.command(cls=Command)
@click.option("-n", "steps", type=click.IntRange(min=1), default=1, metavar="N", help="How many.")
@click.pass_obj
def redo(run: Invocation, steps: int) -> None:
    """Go forth again over what undo took back. A new save ends what can be redone.

    \b
    Examples:
      snapstore redo
      snapstore redo -s fix-login -n 2
    """
    _step(run, steps, "redo")


def _step(run: Invocation, steps: int, way: str) -> None:
    name = run.session_name
    session = run.store.session(name)
    before = session.head
    done = 0
    for done in range(steps):
        try:
            _once(run, session, way)
        except NothingToDo:
            if done == 0:
                raise
            run.out.warn(f"there were only {count(done, 'step')} to {way}")
            break
    _tell(run, session, before, session.head)


def _once(run: Invocation, session: Session, way: str) -> None:
    store = run.store
    tip = store.engine.tip(refs.SESSIONS + session.name)
    (session.undo if way == "undo" else session.redo)()
    renamed = tip is not None and tip.op == "rename" and "from_ref" in tip.info
    if tip is not None and renamed and store.current == session.name and not session.head:
        # The name that is current is gone with the rename; its old one is back.
        run.make_current(str(tip.info["from_ref"]).removeprefix(refs.SESSIONS))


def _tell(
    run: Invocation,
    session: Session,
    before: Snapshot | None,
    after: Snapshot | None,
    *,
    dry_run: bool = False,
) -> None:
    text = f"{session.name}: {_named(before)} -> {_named(after)}"
    if after is not None and after.label:
        text += f"  {one_line(after.label)}"
    if dry_run:
        text += _DRY
    run.result(documents.moved(session, before, after, dry_run=dry_run), text)
    waiting = documents.pending(after)
    if waiting:
        names = ", ".join(str(call["name"] or call["id"]) for call in waiting)
        run.out.warn(f"{count(len(waiting), 'tool call')} there without a result: {names}")


def _named(snapshot: Snapshot | None) -> str:
    return f"turn {snapshot.turn} ({short(snapshot.id)})" if snapshot else "nothing"
