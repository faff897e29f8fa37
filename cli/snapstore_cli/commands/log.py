"""snapstore log: the turns of a line, or of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import click

from snapstore import ObjectMissing, Snapshot, SnapstoreError, Store, refs
from snapstore.snapshot import Line
from snapstore.textdiff import text_of
from snapstore_cli import documents
from snapstore_cli.command import Command
from snapstore_cli.documents import Names
from snapstore_cli.invocation import Invocation
from snapstore_cli.limits import MOST
from snapstore_cli.render import graph, turns
from snapstore_cli.render.style import Look
from snapstore_cli.worktree_paths import readings

_DAMAGE = 5
_COLUMN_EVERY = 8
"""A graph gets a column for so many of a terminal's, and so a quarter of it at most."""


@click.command(cls=Command)
@click.argument("rev", required=False)
@click.option("--graph", "as_graph", is_flag=True, help="Draw where lines fork.")
@click.option("--all", "every", is_flag=True, help="The turns of all sessions and tags.")
@click.option("-n", "most", type=MOST, metavar="N", help="At most N turns.")
@click.option("--oneline", is_flag=True, help="Only id and label.")
@click.option("--grep", metavar="TEXT", help="Turns whose label or new messages hold this text.")
@click.option("--touched", metavar="PATH", help="Turns that changed this file or directory.")
@click.pass_obj
def log(
    run: Invocation,
    rev: str | None,
    as_graph: bool,
    every: bool,
    most: int | None,
    oneline: bool,
    grep: str | None,
    touched: str | None,
) -> None:
    """The turns of a session, newest first; all of them unless -n says otherwise.

    REV is a session, or any turn to start from. Each line tells id, turn, time, label, how many
    messages the turn added and how many files it changed, and which sessions and tags stand on it.
    In a graph each side branch stands whole above the turn that it forks from; @ is where the
    current session stands. PATH is relative to the worktree, or to the working directory.

    \b
    Examples:
      snapstore log
      snapstore log fix-login -n 10
      snapstore log --graph --all
      snapstore log --grep "timeout"
    """
    store = run.store
    at = documents.names(store)
    met: list[SnapstoreError] = []
    if every:
        session, found = None, _all(store, at, met)
    else:
        revision = run.revision(rev)
        session, found = revision.session, iter(Line(store.objects, revision.snapshot.raw_id))
    if grep is not None:
        found = (snapshot for snapshot in found if _mentions(snapshot, grep))
    if touched is not None:
        found = (snapshot for snapshot in found if _touches(snapshot, touched))
    found = islice(found, most)
    if run.out.json:
        entries = [documents.turn(snapshot, at) for snapshot in found]
        run.out.document({"session": session, "snapshots": entries})
    elif as_graph:
        run.out.lines(_drawn(found, at, _here(run), run.out.look, oneline), page=True)
    else:
        run.out.lines(turns.log(found, at, run.out.look, one_line=oneline), page=True)
    if met:
        run.tell_of_damage(met[0])
        click.get_current_context().exit(_DAMAGE)


def _all(store: Store, at: Names, met: list[SnapstoreError]) -> Iterator[Snapshot]:
    """Every turn that a session or tag leads to, newest first, children before parents. Where one
    cannot be read, its line ends before the one after it: what that added is not known either."""
    found: dict[str, Snapshot] = {}
    for head in at:
        snapshot = None
        try:
            for snapshot in Line(store.objects, bytes.fromhex(head)):
                if snapshot.id in found:
                    break
                found[snapshot.id] = snapshot
        except (*refs.UNREADABLE, ObjectMissing) as error:
            met.append(error)
            if snapshot is not None:
                del found[snapshot.id]
    return (found[node.id] for node in graph.newest_first(map(_node, found.values())))


def _node(snapshot: Snapshot) -> graph.Node:
    return graph.Node(snapshot.id, snapshot.parent, snapshot.time.timestamp())


def _drawn(
    found: Iterable[Snapshot], at: Names, here: str | None, look: Look, one_line: bool
) -> Iterator[str]:
    listed = {snapshot.id: snapshot for snapshot in found}
    glyphs = graph.UNICODE if look.unicode else graph.ASCII
    most = None if look.width is None else max(1, look.width // _COLUMN_EVERY)
    for row in graph.draw(map(_node, listed.values()), glyphs, here=here, most=most):
        if row.node is None:
            yield turns.strokes(row, look)
        else:
            yield turns.beside(row, listed[row.node.id], at, look, one_line=one_line)


def _here(run: Invocation) -> str | None:
    """The turn that the current session stands on, which a terminal has a mark for."""
    if not run.out.look.terminal or run.chosen_session is None:
        return None
    head = run.store.session(run.chosen_session).head
    return head.id if head else None


def _touches(snapshot: Snapshot, path: str) -> bool:
    """Whether a turn changed a path, or one below it."""
    found = snapshot.files_diff()
    if not found:
        return False
    meant = {*readings(Path(snapshot.worktree), path), path.strip("/")}
    paths = (*found.added, *found.removed, *found.changed)
    return "." in meant or any(p == one or p.startswith(one + "/") for one in meant for p in paths)


def _mentions(snapshot: Snapshot, text: str) -> bool:
    if text in snapshot.label:
        return True
    added, length = snapshot.added(), len(snapshot.history)
    return any(text in text_of(message) for message in snapshot.history[length - added :])
