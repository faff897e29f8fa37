"""snapstore sessions: what there is."""

from __future__ import annotations

import re

import click

from snapstore import SessionInfo, SnapstoreError, Store
from snapstore.latest import saved_at
from snapstore_cli import documents
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import columns, words
from snapstore_cli.render.columns import Cell
from snapstore_cli.render.forest import Branch, forest
from snapstore_cli.render.style import Look


@click.command(cls=Command)
@click.pass_obj
def sessions(run: Invocation) -> None:
    """List every session, newest first; none is hidden.

    On a terminal a fork stands below the session that it was forked from, and * marks the current
    one. Elsewhere it is a line a session: name, turn, id, time, messages, fork point, * .

    \b
    Examples:
      snapstore sessions
      snapstore sessions --json | jq -r '.sessions[].name'
    """
    store = run.store
    found, current = store.sessions(), run.chosen_session
    if run.out.json:
        run.out.document({"sessions": [_document(info, current) for info in found]})
        return
    if not found:
        run.out.note("no sessions yet; `snapstore save` makes one")
    look = run.out.look
    found.sort(key=_newest_first)
    if look.terminal:
        tree = _tree(store, found, look)
        rows = [_tree_cells(store, prefix, info, current, look) for prefix, info in tree]
    else:
        rows = [_cells(info, current, look) for info in found]
    run.out.lines(columns.lines(rows, look, whole=1 if look.terminal else None), page=True)
    for info in found:
        if info.problem:
            run.out.warn(f"{info.name}: {info.problem}")


def _newest_first(info: SessionInfo) -> tuple[float, list[tuple[int, str]]]:
    """Orders sessions by time, and those of one time so that agent-2 comes before agent-10."""
    parts = re.split(r"(\d+)", info.name)
    return -saved_at(info), [(int(p) if p.isdecimal() else -1, p) for p in parts]


def _document(info: SessionInfo, current: str | None) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": info.name,
        "head": info.head,
        "turn": info.turn,
        "time": documents.time(info.time),
        "forked_from": info.forked_from,
        "current": info.name == current,
        "messages": info.messages,
    }
    return {**fields, "problem": info.problem} if info.problem else fields


def _cells(info: SessionInfo, current: str | None, look: Look) -> list[Cell]:
    origin = f"forked from {words.short(info.forked_from)}" if info.forked_from else ""
    return [
        ("name", info.name),
        ("heading", f"turn {info.turn}"),
        ("id", words.short(info.head)),
        ("dim", look.time(info.time)),
        ("", words.count(info.messages, "message")),
        ("dim", origin),
        ("added", "*" if info.name == current else ""),
    ]


def _tree_cells(
    store: Store, prefix: str, info: SessionInfo, current: str | None, look: Look
) -> list[Cell]:
    star = "*" if info.name == current else " "
    broken = "cannot be read" if info.problem else words.count(info.messages, "message")
    return [
        ("added", star),
        ("name", prefix + info.name),
        ("heading", f"turn {info.turn}"),
        ("dim", look.time(info.time)),
        ("error" if info.problem else "", broken),
        ("", "" if info.problem else words.one_line(store.snapshot(info.head).label)),
    ]


def _tree(store: Store, found: list[SessionInfo], look: Look) -> list[tuple[str, SessionInfo]]:
    by_name = {info.name: info for info in found}
    branches = [_branch(store, info) for info in found]
    drawn = forest(branches, lambda head, turn: _at_turn(store, head, turn), unicode=look.unicode)
    return [(prefix, by_name[name]) for prefix, name in drawn]


def _branch(store: Store, info: SessionInfo) -> Branch:
    if info.forked_from is None or info.problem:
        return Branch(info.name, info.head, info.turn, None, 0)
    try:
        turn = store.snapshot(info.forked_from).turn
    except SnapstoreError:  # the fork point may be gone; the session stands by itself then
        return Branch(info.name, info.head, info.turn, None, 0)
    return Branch(info.name, info.head, info.turn, info.forked_from, turn)


def _at_turn(store: Store, head: str, turn: int) -> str:
    return store.objects.snapshots.at_turn(bytes.fromhex(head), turn).hex()
