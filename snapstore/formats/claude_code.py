"""Claude Code transcripts (``<sessionId>.jsonl``): the tree of rows as lines of turns.

A line's history is what the model was sent and answered: one message for each reply, its blocks
put together again from the rows that hold one block each, and one for each user row. Blocks are as
they are in the file, thinking and signatures too. Rows of other kinds are not messages.

After a compaction the history is what Claude Code would send: the summary and the rows that the
compaction says it preserved, then what follows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from pathlib import PurePath
from typing import Any

from snapstore import names
from snapstore.formats.claude_queue import undelivered
from snapstore.formats.claude_tree import (
    ROOT,
    Strand,
    Tree,
    grow,
    is_boundary,
    message_of,
    preserved,
    strands,
)
from snapstore.formats.jsonl import Row, Rows
from snapstore.formats.recall import Recall
from snapstore.formats.transcript import Line, Session, Transcript, Turn
from snapstore.formats.turns import TurnBuilder, is_prompt, label_of, prompt_text, time_of

_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
_LINE_FACTS = (
    ("sessionId", "session_id"),
    ("cwd", "cwd"),
    ("gitBranch", "git_branch"),
    ("version", "version"),
)


_UNSAFE = sys.maxsize


def read(rows: Rows, name: str = "") -> Transcript:
    """Read the rows of a transcript; name is the file's, for a session that has no better name.

    One session: its live line, the branches that were rewound away (``branch-1``, ...) and the
    conversations of subagents (``sidechain-1``, ...). Turns that a branch has in common with the
    live line, or with the branch before it, are the same objects. Never raises.
    """
    tree, warnings = grow(rows.rows)
    found = strands(tree)
    title = _title(rows.rows, tree)
    teller = _Teller(tree)
    live = teller.line(found.live, "", title)
    label = next((turn.label for turn in live.turns if turn.label), "")
    candidates = (title, label, live.meta.get("session_id") or "", PurePath(name).stem)
    hint = next(filter(None, map(names.slug, candidates)), "session")
    numbered = [
        *((f"branch-{n}", strand) for n, strand in enumerate(found.branches, 1)),
        *((f"sidechain-{n}", strand) for n, strand in enumerate(found.sidechains, 1)),
    ]
    branches = tuple(teller.line(strand, branch) for branch, strand in numbered)
    session = Session(replace(live, name=hint), branches)
    labels = (turn.label for line in session.lines() for turn in line.turns)
    warnings += undelivered(rows.rows, labels)
    notes = sorted((*rows.warnings, *warnings), key=lambda warning: warning.offset)
    spoken = bytearray(len(rows.rows))
    for place, message in zip(tree.places, tree.messages, strict=True):
        spoken[place] = message is not None
    return Transcript("claude-code", (session,), len(rows.rows), tuple(notes), rows, bytes(spoken))


def _title(rows: Iterable[Row], tree: Tree) -> str:
    """What the session is called: the last title given, by hand before one made up.

    Old summaries stand in the files of other sessions too; one counts where its leaf is here.
    """
    last: dict[str, str] = {}
    for row in rows:
        kind = row.value.get("type") if isinstance(row.value, dict) else None
        if not isinstance(kind, str) or kind not in _TITLES:
            continue
        title, leaf = row.value.get(_TITLES[kind]), row.value.get("leafUuid")
        here = isinstance(leaf, str) and leaf in tree.positions
        if isinstance(title, str) and title and (here or kind != "summary"):
            last[kind] = title
    return next((last[kind] for kind in _TITLES if kind in last), "")


@dataclass(frozen=True, slots=True)
class _Told:
    """A line that has been told, for another one to share its first turns."""

    rows: tuple[int, ...]
    turns: tuple[Turn, ...]
    starts: tuple[int, ...]
    """Where in rows each turn begins; _UNSAFE where rows of the turn before stand behind that."""

    def shared_with(self, rows: Sequence[int]) -> int:
        """How many of the first turns are whole, and the same, on a line of these rows.

        That a turn is whole shows only with the prompt of the next, so the next one is told again.
        """
        pairs = enumerate(zip(self.rows, rows, strict=False))
        both = min(len(self.rows), len(rows))
        parts = next((i for i, (mine, theirs) in pairs if mine != theirs), both)
        for n in range(len(self.starts) - 2, 0, -1):
            if self.starts[n + 1] < parts and self.starts[n] != _UNSAFE:
                return n
        return 0


class _Teller:
    """Tells strands as lines. Lines that begin alike have their first turns in common."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._told: list[_Told] = []  # the live line and the one told last

    def line(self, strand: Strand | None, name: str, title: str = "") -> Line:
        rows = strand.rows if strand else ()
        meta = _facts(self._tree, rows)
        if title:
            meta["title"] = title
        told = self._tell(rows)
        self._told = [*self._told[:1], told]
        return Line(name, told.turns, meta, _told_by(self._tree, rows[:1]))

    def _tell(self, rows: tuple[int, ...]) -> _Told:
        shared, like = max(
            ((told.shared_with(rows), told) for told in self._told),
            key=lambda pair: pair[0],
            default=(0, _Told((), (), ())),
        )
        first = like.starts[shared] if shared else 0
        groups = _groups(self._tree, rows[first:])
        turns, produced = _turns(self._tree, groups, _leads(self._tree, rows, first))
        places = {row: place for place, row in enumerate(rows[first:], first)}
        spans = [[places[row] for row in group] for group in groups]
        starts = _starts(turns, produced, spans)
        return _Told(rows, like.turns[:shared] + turns, like.starts[:shared] + starts)


_Leads = Mapping[int, list[int]]
"""Of a row that speaks: where in the file it stands, and the silent rows that lead to it."""


def _leads(tree: Tree, rows: Sequence[int], first: int) -> _Leads:
    """The leads of the rows of a line from the first on, and of those just before it."""
    while first and not _speaks(tree, rows[first - 1]):
        first -= 1
    leads: dict[int, list[int]] = {}
    waiting: list[int] = []
    for row in rows[first:]:
        waiting.append(tree.places[row])
        if _speaks(tree, row):
            leads[row] = waiting
            waiting = []
    return leads


def _speaks(tree: Tree, row: int) -> bool:
    return tree.messages[row] is not None or is_boundary(tree.rows[row].value)


def _turns(
    tree: Tree, groups: Iterable[list[int]], leads: _Leads
) -> tuple[tuple[Turn, ...], list[int]]:
    """The turns that the groups make, and how many messages came of each group."""
    builder = TurnBuilder()
    produced = []
    compaction: dict[str, Any] | None = None
    waiting: list[int] = []
    for group in groups:
        row = tree.rows[group[0]].value
        told = [*waiting, *chain.from_iterable(leads[row] for row in group)]
        waiting = []
        if tree.messages[group[0]] is None:
            compaction, waiting = row, told
            produced.append(0)
        elif compaction is not None or row.get("isCompactSummary"):
            produced.append(_compact(builder, tree, compaction or {}, group, told))
            compaction = None
        else:
            _tell(builder, tree, group, told)
            produced.append(1)
    return builder.turns(), produced


def _starts(
    turns: Iterable[Turn], produced: Sequence[int], spans: Sequence[list[int]]
) -> tuple[int, ...]:
    """Where each turn begins, given the places of each group's rows. Messages keep their order."""
    starts = []
    told = due = group = 0
    last = -1
    for turn in turns:
        while told < due:
            told += produced[group]
            last = max(last, *spans[group])
            group += 1
        begins = spans[group][0] if group < len(spans) else _UNSAFE
        starts.append(begins if begins > last else _UNSAFE)
        due += len(turn.messages)
    return tuple(starts)


def _compact(
    builder: TurnBuilder,
    tree: Tree,
    boundary: dict[str, Any],
    first: list[int],
    told: Sequence[int],
) -> int:
    """The history starts anew: the first message after the boundary and what was preserved.

    Returns how many messages that makes.
    """
    kept = [_told_message(tree, group) for group in _groups(tree, _preserved_rows(tree, boundary))]
    anchor, *_ = preserved(boundary)
    before = anchor is not None and anchor == boundary.get("uuid")
    builder.compact(kept if before else [])
    _tell(builder, tree, first, told)
    for message in [] if before else kept:
        builder.inject(message)
    return 1 + len(kept)


def _preserved_rows(tree: Tree, boundary: dict[str, Any]) -> list[int]:
    _, uuids, head, tail = preserved(boundary)
    if uuids:
        return [tree.positions[u] for u in uuids if isinstance(u, str) and u in tree.positions]
    if not (isinstance(head, str) and isinstance(tail, str) and head in tree.positions):
        return []
    path = []
    place = tree.positions.get(tail, ROOT)
    while place != ROOT:
        path.append(place)
        if place == tree.positions[head]:
            return path[::-1]
        place = tree.parents[place]
    return []


def _groups(tree: Tree, rows: Iterable[int]) -> list[list[int]]:
    """Rows that make one message together; a compaction's boundary is a group of its own.

    The rows of a reply share its ``message.id``; results of its first calls may stand between.
    """
    groups: list[list[int]] = []
    reply: list[int] = []
    reply_id: Any = None
    for place in rows:
        message, value = tree.messages[place], tree.rows[place].value
        if message is None:
            if is_boundary(value):
                groups.append([place])
                reply_id = None
        elif value["type"] == "assistant":
            identity = message.get("id")
            if identity and identity == reply_id:
                reply.append(place)
            else:
                reply, reply_id = [place], identity
                groups.append(reply)
        else:
            groups.append([place])
            if _starts_turn(value, message):
                reply_id = None
    return groups


def _starts_turn(row: dict[str, Any], message: dict[str, Any]) -> bool:
    return (
        row["type"] == "user"
        and not row.get("isMeta")
        and not row.get("isCompactSummary")
        and is_prompt(message.get("content"))
    )


def _tell(builder: TurnBuilder, tree: Tree, group: list[int], told: Sequence[int]) -> None:
    """Add the message of a group, as a prompt where it is one."""
    row = tree.rows[group[0]].value
    message = _told_message(tree, group)
    said = message if isinstance(message, dict) else _merged(tree, group)
    if _starts_turn(row, said):
        builder.prompt(label_of(prompt_text(said.get("content"))))
    time = time_of(tree.rows[group[-1]].value.get("timestamp"))
    if row.get("isMeta") or row.get("isCompactSummary"):
        builder.inject(message, time, told)
    else:
        builder.add(message, time, told)
    if row["type"] == "assistant":
        model, usage = said.get("model"), said.get("usage")
        if isinstance(model, str) and model != "<synthetic>":
            builder.note("model", model)
        if isinstance(usage, dict):
            builder.count("usage", usage)


def _told_message(tree: Tree, group: Sequence[int]) -> dict[str, Any] | Recall:
    """The message of a group; how to recall it, where its rows are not all in memory."""
    rows = [tree.rows[place] for place in group]
    if any(row.is_cut for row in rows):
        return Recall(rows, _merge)
    return _merged(tree, group)


def _merged(tree: Tree, group: Sequence[int]) -> dict[str, Any]:
    if len(group) == 1:
        return tree.messages[group[0]] or {}
    return _merge([tree.rows[place].value for place in group])


def _merge(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One message of the rows of a reply: the last row's facts, the blocks of all.

    Every row repeats the facts; while the reply streams, only the last has them complete.
    """
    message = message_of(rows[-1]) or {}
    if len(rows) == 1:
        return message
    if all(type(row.get("apiBlockIndex")) is int for row in rows):
        rows = sorted(rows, key=itemgetter("apiBlockIndex"))
    blocks: list[Any] = []
    for row in rows:
        content = (message_of(row) or {}).get("content")
        if isinstance(content, list):
            blocks.extend(content)
        elif content:
            is_text = isinstance(content, str)
            blocks.append({"type": "text", "text": content} if is_text else content)
    return {**message, "content": blocks}


def _facts(tree: Tree, rows: Sequence[int]) -> dict[str, Any]:
    """What the rows of a line say of it as a whole: the last value of each fact counts."""
    facts = _told_by(tree, rows)
    for name, order in (("first_time", rows), ("last_time", rows[::-1])):
        times = (time_of(tree.rows[place].value.get("timestamp")) for place in order)
        time = next((time for time in times if time is not None), None)
        if time is not None:
            facts[name] = time
    return facts


def _told_by(tree: Tree, rows: Sequence[int]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for key, name in _LINE_FACTS:
        for place in reversed(rows):
            value = tree.rows[place].value.get(key)
            if isinstance(value, str) and value:
                facts[name] = value
                break
    return facts
