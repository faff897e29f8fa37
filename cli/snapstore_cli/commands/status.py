"""snapstore status: where you stand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from snapstore import Session, Snapshot, Store, refs, revisions
from snapstore.worktree.interrupted import interrupted
from snapstore_cli import documents, pushing
from snapstore_cli.command import Command
from snapstore_cli.documents import Names
from snapstore_cli.invocation import DEFAULT_SESSION, Invocation
from snapstore_cli.render import files as difference
from snapstore_cli.render import moves, words
from snapstore_cli.render.style import Look

_INDENT = 12
"""Columns before what a row tells."""


@click.command(cls=Command)
@click.pass_obj
def status(run: Invocation) -> None:
    """Where you stand: the store, the session and its turn, calls without a result, the last move.

    \b
    Examples:
      snapstore status
      snapstore status -s fix-login --json
    """
    store = run.store
    name = run.session_name_or_none
    if run.settings.session is not None and store.last_saved() is not None:
        session = run.existing_session(name)
    else:
        session = store.session(name or DEFAULT_SESSION)
    head = session.head
    waiting = documents.pending(head)
    files = session.files_diff()
    if head is not None and head.worktree and not Path(head.worktree).is_dir():
        run.out.warn(difference.gone(head.worktree, session.name))
    if run.out.json:
        fields = {
            "store": run.place,
            "session": session.name,
            "turn": session.turn,
            "head": head.id if head else None,
            "dirty": None if files is None else bool(files),
            "pending_tool_calls": waiting,
            "failed_pushes": [
                {"remote": name, "error": last.error} for name, last in pushing.failed(store)
            ],
            "interrupted_restores": [
                {"worktree": str(one.worktree), "finishes": one.finishes, "at_work": one.at_work}
                for one in interrupted(store.here, store.engine)
            ],
        }
        run.out.document(fields)
        return
    run.out.lines(_lines(run, session, documents.names(store), waiting))
    if files is not None:
        run.out.lines(difference.worktree(files, session, run.out.look))


def _lines(
    run: Invocation, session: Session, at: Names, waiting: list[dict[str, object]]
) -> Iterator[str]:
    look, head = run.out.look, session.head
    rows = {"store": look.cut_middle(run.place, _INDENT), "session": _session(run, session)}
    if head is None:
        rows["turn"] = _no_turn(run, session)
    else:
        rows["turn"] = _turn(head, look)
        others = [name for name in at.get(head.id, ()) if name != session.name]
        rows["also here"] = look.cut(", ".join(others), _INDENT)
        rows["messages"] = f"{len(head.history):,}"
        rows["scratchpad"] = words.count(len(head.scratchpad), "key") if head.scratchpad else ""
    names = ", ".join(words.one_line(f"{c['name']} ({c['id']})") for c in waiting)
    rows["pending"] = look.style("warning", f"no result yet for {names}") if waiting else ""
    by_itself = (refs.CURRENT, refs.CAPTURES)
    moved = refs.moves_before_damage(run.store.engine)
    last = next((move for move in moved if not move.ref.startswith(by_itself)), None)
    rows["last move"] = moves.sentence(last, look, _INDENT) if last else ""
    failed = "; ".join(pushing.told(*one) for one in pushing.failed(run.store))
    rows["push"] = look.style("warning", words.one_line(failed)) if failed else ""
    restores = "; ".join(map(words.one_line, _restores(run.store)))
    rows["restore"] = look.style("warning", restores) if restores else ""
    for name, text in rows.items():
        if text:
            yield f"{look.style('dim', f'{name:<10}')}  {text}"


def _restores(store: Store) -> Iterator[str]:
    """The restores that did not come to their end, and what ends them."""
    for one in interrupted(store.here, store.engine):
        yield f"{one}; {one.advice}"
    if store.here is not None and store.here.journals():
        from snapstore.maintenance.stranded import stranded

        for lost in stranded(store):
            yield f"{lost}; `snapstore repair --apply` puts the files where they are seen"


def _turn(head: Snapshot, look: Look) -> str:
    number, when = words.short(head.id), look.time(head.time)
    label = f"  {words.one_line(head.label)}" if head.label else ""
    label = look.cut(label, _INDENT + words.cells(f"{head.turn}  {number}  {when}"))
    return f"{head.turn}  {look.style('id', number)}{label}  {look.style('dim', when)}"


def _session(run: Invocation, session: Session) -> str:
    look, is_chosen = run.out.look, run.chosen_session is not None or session.head is None
    before = "" if is_chosen else "none chosen; last saved: "
    return before + look.style("name", look.cut_middle(session.name, _INDENT + len(before)))


def _no_turn(run: Invocation, session: Session) -> str:
    """Why a session has no turn: it is new, or its name was taken away."""
    if run.store.engine.tip(refs.SESSIONS + session.name) is None:
        return "none yet"
    gone = revisions.unknown(run.store, session.name)
    return f"none: {gone}; {gone.hint}, or `snapstore switch` to another session"
