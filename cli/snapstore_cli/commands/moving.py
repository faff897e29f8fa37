"""snapstore rewind, restore, undo and redo: HEAD and files back and forth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from snapstore import NothingToDo, Session, Snapshot, refs
from snapstore_cli import documents
from snapstore_cli.command import Command
from snapstore_cli.commands.diff import PARTS, parts_option
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import files as rendered
from snapstore_cli.render.words import count, one_line, short
from snapstore_cli.worktree_paths import in_worktree

if TYPE_CHECKING:
    from snapstore.worktree.restore import Restored

_MESSAGES, _SCRATCHPAD, _FILES = PARTS
_NAMED = 5
"""Paths in the way that a warning names."""
_WHOLE = {_MESSAGES, _SCRATCHPAD}
_DRY = "  (dry run: nothing was moved)"
_DRY_FILES = "  (dry run: nothing was touched)"


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

    Without `files` in --what no file is touched. With it, the files in the directory that the turn
    was captured from become what they were, after what is there now was captured: undo brings that
    back. Files that no turn knows, and ignored ones, stay.

    With only one of messages and scratchpad, HEAD moves on to a new turn that has this part as it
    was at REV and the other as it is now. That does not go together with `files`.

    \b
    Examples:
      snapstore rewind fix-login@3
      snapstore rewind @~2 --dry-run
      snapstore rewind fix-login@3 --what messages,scratchpad,files
      snapstore rewind fix-login@3 --what messages
    """
    _refuse_half_with_files(rev, what)
    revision = run.revision(rev)
    target = revision.snapshot
    session = run.acted_on(revision)
    before, done = session.head, None
    with_files, what = _FILES in what, what - {_FILES}
    if with_files and dry_run:
        from snapstore.worktree import moves

        done = moves.rewind(run.store, session.name, target, force=force, dry_run=True)
    if what >= _WHOLE:
        after: Snapshot | None = target
        if not dry_run:
            session.rewind(target, files=with_files, force=force)
        done = done or session.restored
    elif not what:
        done = done or session.restore(target, force=force)
        after = before
    elif dry_run:
        part = " and ".join(sorted(what))
        text = f"a new turn with the {part} of turn {target.turn}"
        document = documents.moved(session, before, None, done=done, dry_run=True)
        run.result({**document, "turn": session.turn + 1}, f"{session.name}: {text}{_DRY}")
        return
    else:
        after = _rewound_in_part(session, target, what)
    _tell(run, session, before, after, done, dry_run=dry_run)


def _refuse_half_with_files(rev: str, what: set[str]) -> None:
    """It would be two moves, a restore and a save, and one undo would take back only half."""
    missing = _WHOLE - what
    if _FILES in what and len(missing) == 1:
        kept, (other,) = (what - {_FILES}).pop(), missing
        raise click.UsageError(
            f"{kept} and files do not go back together without {other}: add {other} to --what, "
            f"or take two steps: `snapstore restore {rev}`, then "
            f"`snapstore rewind {rev} --what {kept}`"
        )


def _rewound_in_part(session: Session, target: Snapshot, what: set[str]) -> Snapshot:
    if _MESSAGES in what:
        session.history = target.history
    else:
        session.scratchpad = target.scratchpad
    if not session.unsaved:
        return target if session.head is None else session.head
    return session.save(f"{' and '.join(sorted(what))} of turn {target.turn}")


@click.command(cls=Command)
@click.argument("rev")
@click.argument("paths", nargs=-1, metavar="[PATH]..")
@click.option("--to", "directory", metavar="DIR", help="Bring the files to DIR instead.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--force", is_flag=True, help="Replace also what could not be captured before.")
@click.pass_obj
def restore(
    run: Invocation,
    rev: str,
    paths: tuple[str, ...],
    directory: str | None,
    dry_run: bool,
    force: bool,
) -> None:
    """Bring back the files of a turn, all or some; HEAD and messages stay.

    It acts on the directory that the turn was captured from, and captures what is there first, so
    that undo brings it back. Paths are relative to that directory, else to the working directory
    (which comes first for ./PATH). Files that no turn knows, and ignored ones, stay. With --to the
    directory itself is not touched.

    \b
    Examples:
      snapstore restore fix-login@3
      snapstore restore @~1 src/login.py docs
      snapstore restore try-redis --to ../with-redis
      snapstore restore fix-login@3 --dry-run
    """
    revision = run.revision(rev)
    source = revision.snapshot
    given = (*paths, revision.path) if revision.path else paths
    chosen = [in_worktree(source, path) for path in given]
    session = run.acted_on(revision)
    from snapstore.worktree import moves

    if directory is None:
        done = moves.restore_files(
            run.store, session.name, source, chosen, force=force, dry_run=dry_run
        )
    else:
        done = moves.restore_to(run.store, source, directory, chosen, force=force, dry_run=dry_run)
    document = documents.moved(session, session.head, session.head, done=done, dry_run=dry_run)
    place = directory or source.worktree
    run.result(document, f"{place}: as in turn {source.turn} ({short(source.id)})")
    _tell_files(run, done, dry_run)


@click.command(cls=Command)
@click.option("-n", "steps", type=click.IntRange(min=1), default=1, metavar="N", help="How many.")
@click.option("--force", is_flag=True, help="Replace also files that could not be captured.")
@click.pass_obj
def undo(run: Invocation, steps: int, force: bool) -> None:
    """Take back the last moves of a session: saves, rewinds, restores, forks, its deletion too.

    What such a move did to files is taken back as well.

    \b
    Examples:
      snapstore undo
      snapstore undo -n 3
      snapstore undo -s try-redis          # brings a deleted session back
    """
    _step(run, steps, "undo", force)


@click.command(cls=Command)
@click.option("-n", "steps", type=click.IntRange(min=1), default=1, metavar="N", help="How many.")
@click.option("--force", is_flag=True, help="Replace also files that could not be captured.")
@click.pass_obj
def redo(run: Invocation, steps: int, force: bool) -> None:
    """Go forth again over what undo took back, a deletion too. A new save ends what can be redone.

    \b
    Examples:
      snapstore redo
      snapstore redo -s fix-login -n 2
    """
    _step(run, steps, "redo", force)


def _step(run: Invocation, steps: int, way: str, force: bool) -> None:
    name = run.session_to_move
    session = run.store.session(name)
    before = session.head
    was = _standing(run, session, before)
    done = 0
    restored: Restored | None = None
    for done in range(steps):
        try:
            (session.undo if way == "undo" else session.redo)(force=force)
            restored = restored.and_then(session.restored) if restored else session.restored
        except NothingToDo:
            if done == 0:
                raise
            run.out.warn(f"there were only {count(done, 'step')} to {way}")
            break
        session = _by_present_name(run, session)
    _tell(run, session, before, session.head, restored, was=was)


def _by_present_name(run: Invocation, session: Session) -> Session:
    """The session itself; under its other name when the step took a rename back, or made it."""
    ref = refs.successor(run.store.engine, refs.SESSIONS + session.name)
    name = ref.removeprefix(refs.SESSIONS)
    if name == session.name:
        return session
    run.out.note(f"{session.name} is called {name} again")
    return run.store.session(name)


def _tell(
    run: Invocation,
    session: Session,
    before: Snapshot | None,
    after: Snapshot | None,
    done: Restored | None,
    *,
    dry_run: bool = False,
    was: str = "",
) -> None:
    now = _standing(run, session, after)
    if before == after and after is not None:
        text = f"{session.name} stays at {now}" + (", where it stood" if done is None else "")
    else:
        text = f"{session.name}: {was or _standing(run, session, before)} -> {now}"
    if now == "deleted":
        text += f"; `snapstore undo -s {session.name}` brings it back"
    if after is not None and after.label:
        text += f"  {one_line(after.label)}"
    if dry_run:
        text += _DRY
    run.result(documents.moved(session, before, after, done=done, dry_run=dry_run), text)
    _tell_files(run, done, dry_run)
    waiting = documents.pending(after)
    if waiting:
        names = ", ".join(str(call["name"] or call["id"]) for call in waiting)
        run.out.warn(f"{count(len(waiting), 'tool call')} there without a result: {names}")


def _tell_files(run: Invocation, done: Restored | None, dry_run: bool) -> None:
    if done is None:
        return
    if done.in_the_way:
        several = count(len(done.in_the_way), "path")
        first = ", ".join(map(one_line, done.in_the_way[:_NAMED]))
        run.out.warn(f"{several} in the way, replaced only with --force: {first}")
    if run.out.json:
        return
    run.out.say(rendered.summary(done) + (_DRY_FILES if dry_run else ""))
    if dry_run or run.settings.verbose:
        run.out.lines(rendered.details(done, run.out.look))


def _standing(run: Invocation, session: Session, head: Snapshot | None) -> str:
    if head is not None:
        return f"turn {head.turn} ({short(head.id)})"
    tip = run.store.engine.tip(refs.SESSIONS + session.name)
    return "deleted" if tip is not None and refs.made_by(tip) == "delete" else "nothing"
