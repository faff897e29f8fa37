"""snapstore show: one turn."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from snapstore import Snapshot
from snapstore_cli import documents
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import files as rendered_files
from snapstore_cli.render import messages as rendered
from snapstore_cli.render import turns, words
from snapstore_cli.render.style import Look
from snapstore_cli.worktree_paths import in_turn

_SCREENFUL = 24
"""Lines of one message's text that a terminal is given unless all is asked for."""


@click.command(cls=Command)
@click.argument("rev", required=False, metavar="[REV[:PATH]]")
@click.option("--messages", is_flag=True, help="All messages up to this turn, uncut.")
@click.option("--scratchpad", is_flag=True, help="Only the scratchpad.")
@click.option("--files", is_flag=True, help="Only the files.")
@click.pass_obj
def show(run: Invocation, rev: str | None, messages: bool, scratchpad: bool, files: bool) -> None:
    """One turn: when it was saved, the messages it added, the scratchpad.

    Tool results stand below their calls. With --json, `messages` is the whole history. PATH is
    relative to the directory that the files were taken from, else to the working directory (which
    comes first for ./PATH).

    \b
    Examples:
      snapstore show
      snapstore show fix-login@3
      snapstore show fix-login --messages
      snapstore show fix-login@3:src/login.py
      snapstore show fix-login@3 --files
      snapstore show 3f9a0c --json | jq .scratchpad
    """
    found = run.revision(rev)
    snapshot = found.snapshot
    if found.path is not None or files:
        _show_files(run, snapshot, found.path or "")
        return
    if run.out.json:
        run.out.document(documents.whole_turn(snapshot))
        return
    look = run.out.look
    if scratchpad and not messages:
        run.out.lines(turns.scratchpad(snapshot, look), page=True)
        return
    at = documents.names(run.store)
    run.out.lines(_page(snapshot, found.session, at, look, messages, scratchpad), page=True)


def _show_files(run: Invocation, snapshot: Snapshot, path: str) -> None:
    """A file to the byte, or a list of what is in a directory."""
    path = in_turn(snapshot, path)
    held = snapshot.files
    assert held is not None  # or the path would not have been found
    if run.out.json:
        entries = held.entries(path) if not path or held[path].kind == "dir" else ()
        listed = {name: documents.file(entry) for name, entry in entries}
        entry = documents.file(held[path]) if path else None
        run.out.document({"id": snapshot.id, "path": path, "entry": entry, "files": listed})
    elif path and held[path].kind == "file":
        run.out.raw(held.stream(path))
    elif path and held[path].target is not None:
        run.out.raw([os.fsencode(f"{held[path].target}\n")])
    else:
        run.out.lines(rendered_files.listing(held.entries(path), run.out.look), page=True)


def _page(
    snapshot: Snapshot,
    session: str | None,
    at: documents.Names,
    look: Look,
    every: bool,
    with_scratchpad: bool,
) -> Iterator[str]:
    yield from turns.head(snapshot, session, at, look)
    yield ""
    total, added = len(snapshot.history), snapshot.added()
    start = 0 if every else total - added
    if start:
        earlier = words.count(start, "earlier message")
        yield look.style("dim", f"{earlier} (--messages shows all)")
        yield ""
    limit = None if every or not look.terminal else _SCREENFUL
    yield from rendered.page(snapshot.history[start:], start, look, limit)
    if with_scratchpad or not every:
        yield from turns.scratchpad(snapshot, look)
