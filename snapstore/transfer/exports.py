"""Sessions of a store as files of other programs.

The HEAD of a session that is still as it was imported goes out as the very file that it came from.
Any other turn, and any other format, is a new session with a new id: rows that the turn's line was
imported from, as far as the program is the same, and rows made for messages that came after. It
holds nothing of later turns.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from snapstore import refs, values
from snapstore.formats import write_claude, write_codex, write_messages
from snapstore.formats.jsontext import write
from snapstore.formats.losses import Losses
from snapstore.formats.write_claude import Facts
from snapstore.formats.write_markdown import markdown
from snapstore.maintenance.redact import change_strings
from snapstore.model.layout import LAYOUT, Layout
from snapstore.model.snapshot import Record
from snapstore.objects import Objects
from snapstore.snapshot import Snapshot
from snapstore.store import Store
from snapstore.transfer.beside import held_beside
from snapstore.transfer.original import FileRow, original, rows_of
from snapstore.transfer.origins import last_import, origin

FORMATS = ("claude-code", "codex", "messages", "anthropic", "openai", "markdown")
HARNESSES = ("claude-code", "codex")

_COMPACT = 0
"""The style of JSON text that both programs write."""

_SURROGATE = re.compile("[\ud800-\udfff]")

Change = Callable[[Any], Any]
"""Makes a value that is to go out from one that is stored."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How a session is to go out."""

    format: str
    cwd: str | None = None
    """The directory that the session is to go on in; None: the one that it was in."""
    here: str = ""
    """The directory to name where neither the wish nor the session names one."""
    change: Change | None = None
    """What is to be done to every message and row: secrets taken out, say."""
    fresh: bool = False
    """Whether it is to be a new session in any case."""
    beside: bool = False
    """Whether what was kept beside an imported transcript is to come along."""


@dataclass(frozen=True, slots=True)
class Export:
    """A session on its way out."""

    format: str
    data: bytes
    is_original: bool
    """Whether it is the file that was imported, byte for byte."""
    session_id: str = ""
    """What the program that it is for will know it by; of plain formats empty."""
    cwd: str = ""
    time: int = 0
    """When a new session began: microseconds since the epoch."""
    losses: tuple[tuple[str, int], ...] = ()
    """What could not be carried, and how often."""
    beside: Mapping[str, bytes] = field(default_factory=dict)
    """The files that belong to it, by their paths (see transfer.beside)."""


def export(store: Store, snapshot: Snapshot, session: str | None, wish: Wish) -> Export:
    """The session as it stood after a turn, in the wished format.

    Session is the name that the turn was asked for by, if any: only its HEAD can be what was
    imported. Raises ObjectMissing or Corrupt.
    """
    if session is not None and not (wish.cwd or wish.change or wish.fresh):
        unchanged = _unchanged(store, snapshot, session, wish)
        if unchanged is not None:
            return unchanged
    if wish.format in HARNESSES:
        return _new_session(store, snapshot, wish)
    return _plain(store, snapshot, session, wish)


def _unchanged(store: Store, snapshot: Snapshot, session: str, wish: Wish) -> Export | None:
    """The file that a session was imported from, if it stands where the import left it."""
    tip = refs.live(store.engine, refs.SESSIONS + session)
    if tip is None or tip.new != snapshot.raw_id:
        return None
    move = last_import(store.engine, tip)
    if move is None or move.info["source"].get("harness") != wish.format or LAYOUT not in move.info:
        return None
    layout = Layout.decode(store.objects.content(move.info[LAYOUT]), move.info[LAYOUT])
    if layout.heads[0] != snapshot.raw_id:
        return None
    source = move.info["source"]
    return Export(
        wish.format,
        b"".join(original(store.objects, move.info[LAYOUT])),
        True,
        str(source.get("session_id", "")),
        str(source.get("cwd", "")),
        int(source.get("first_time", 0)),
        beside=dict(_beside(store, session, layout)) if wish.beside else {},
    )


def _beside(store: Store, session: str, layout: Layout) -> Iterator[tuple[str, bytes]]:
    """The files that were kept beside a transcript, and those of the agents that it called."""
    held = held_beside(store.objects, layout)
    for path in held or ():
        if held is not None and held[path].kind == "file":
            yield path, held.read(path)
    for tip in store.engine.tips(f"{refs.SESSIONS}{session}/"):
        name = tip.ref.removeprefix(refs.SESSIONS)
        source = origin(store.engine, tip)
        if tip.new is None or "branch" in source or source.get("harness") != "claude-code":
            continue
        told = _unchanged(store, store.snapshot(tip.new), name, Wish("claude-code"))
        if told is not None:
            yield f"subagents/{name.rpartition('/')[2]}.jsonl", told.data


# --- plain formats -------------------------------------------------------------------------------


def _plain(store: Store, snapshot: Snapshot, session: str | None, wish: Wish) -> Export:
    losses = Losses()
    messages = _messages(store.objects, snapshot.record, 0, wish.change)
    if wish.format == "markdown":
        title = session or snapshot.label or snapshot.id[:12]
        text = "\n".join(markdown(messages, title)) + "\n"
        return Export(wish.format, _readable(text).encode(), False)
    if wish.format == "anthropic":
        messages = write_messages.anthropic(messages, losses)
    elif wish.format == "openai":
        messages = write_messages.openai(messages, losses)
    data = write(messages, _COMPACT) + b"\n"
    return Export(wish.format, data, False, losses=tuple(losses.listed()))


def _messages(objects: Objects, record: Record, start: int, change: Change | None) -> list[Any]:
    """The messages of a turn's history from an index on, as plain values."""
    ids = objects.lists.slice(record.history, start, objects.lists.length(record.history))
    messages = list(map(values.decode, objects.contents(ids)))
    return list(map(change, messages)) if change else messages


# --- for a harness to go on from -----------------------------------------------------------------


def _new_session(store: Store, snapshot: Snapshot, wish: Wish) -> Export:
    objects = store.objects
    base = _Base.below(objects, snapshot, wish.format)
    facts = _facts(store, snapshot, wish)
    losses = Losses()
    rest = _messages(objects, snapshot.record, base.messages, None)
    write_rows = _claude_rows if wish.format == "claude-code" else _codex_rows
    rows = list(write_rows(base, rest, facts, _mover(base, facts), losses))
    if wish.change is not None:
        rows = list(map(wish.change, rows))
    data = b"".join(write(row, _COMPACT) + b"\n" for row in rows)
    started = store.clock()
    lost = tuple(losses.listed())
    return Export(wish.format, data, False, facts.session_id, facts.cwd, started, lost)


@dataclass(frozen=True, slots=True)
class _Base:
    """What of a turn's line was imported from the harness that it is to go to."""

    pages: tuple[tuple[FileRow, ...], ...] = ()
    """The rows of each turn."""
    messages: int = 0
    """How many messages of the history they tell."""
    cwd: str = ""
    """Where the session was begun."""

    @classmethod
    def below(cls, objects: Objects, snapshot: Snapshot, harness: str) -> _Base:
        """Of the last turn that has rows and whose history the turn's own begins with."""
        line = [record for _, record in objects.snapshots.line(snapshot.raw_id)]
        told = next((n for n, record in enumerate(line) if record.rows), None)
        start = values.decode(line[-1].meta) if line[-1].meta else {}
        if told is None or start.get("harness") != harness or _has_gaps(line[told:]):
            return cls()
        length = objects.lists.length(line[told].history)
        if objects.lists.common_prefix(line[told].history, snapshot.record.history) < length:
            return cls()
        pages = [record.rows for record in reversed(line[told:]) if record.rows]
        rows = (tuple(rows_of(objects, [page])) for page in pages)
        return cls(tuple(rows), length, str(start.get("cwd", "")))


def _has_gaps(line: Sequence[Record]) -> bool:
    """Whether some turn of a line, newest first, has messages but no rows that tell them."""
    before = (*line[1:], None)
    return any(
        record.rows is None and record.history != (parent.history if parent else None)
        for record, parent in zip(line, before, strict=True)
    )


def _facts(store: Store, snapshot: Snapshot, wish: Wish) -> Facts:
    """What is known of a session at a turn, for a new one that goes on from there."""
    objects, record = store.objects, snapshot.record
    first = objects.snapshots.record(objects.snapshots.at_turn(snapshot.raw_id, 1))
    start = values.decode(first.meta) if first.meta else {}
    here = values.decode(record.meta) if record.meta else {}
    same = start.get("harness") == wish.format
    told = {key: start.get(key) for key in ("cwd", "git_branch", "version")}
    known = {key: value if isinstance(value, str) else "" for key, value in told.items()}
    model = here.get("model")
    new_id = uuid4() if wish.format == "claude-code" else uuid7(store.clock() // 1000)
    return Facts(
        str(new_id),
        cwd=wish.cwd or known["cwd"] or record.worktree or wish.here,
        git_branch=known["git_branch"] if same else "",
        version=known["version"] if same else "",
        model=model if isinstance(model, str) else "",
        time=record.time,
    )


def _mover(base: _Base, facts: Facts) -> Callable[[str], str]:
    """What makes a path below the directory of the old session one below that of the new."""
    old, new = base.cwd.rstrip("/"), facts.cwd.rstrip("/")

    def move(path: str) -> str:
        if old and (path == old or path.startswith(old + "/")):
            return new + path[len(old) :]
        return path

    return move


def _claude_rows(
    base: _Base, rest: list[Any], facts: Facts, move: Callable[[str], str], losses: Losses
) -> Iterator[dict[str, Any]]:
    own = [
        row.value
        for rows in base.pages
        for row in rows
        if not row.beside and isinstance(row.value, dict) and row.value.get("uuid")
    ]
    rows = write_claude.moved_rows(own, facts.session_id, move)
    yield from rows
    last = rows[-1]["uuid"] if rows else None
    yield from write_claude.rows_for(rest, facts, last, losses)


def _codex_rows(
    base: _Base, rest: list[Any], facts: Facts, move: Callable[[str], str], losses: Losses
) -> Iterator[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    for page in base.pages:
        rows = [row for row in page if isinstance(row.value, dict)]
        beside = [row.beside for row in rows]
        told += write_codex.without_rolled_back([row.value for row in rows], beside)
    yield from write_codex.moved_rows(told, facts, move)
    yield from write_codex.rows_for(rest, facts, losses)


def uuid7(milliseconds: int) -> UUID:
    """A new id of the kind that Codex gives its threads: RFC 9562, version 7."""
    random = int.from_bytes(os.urandom(10), "big")
    high = (milliseconds & (1 << 48) - 1) << 80
    return UUID(int=high | 7 << 76 | (random >> 68) << 64 | 2 << 62 | random & (1 << 62) - 1)


# --- texts that every reader takes ---------------------------------------------------------------


def sanitized(value: Any) -> Any:
    """A JSON value with U+FFFD in place of lone surrogates, which not every program can read."""

    def change(_: bytes, text: bytes) -> bytes:
        if b"\xed" not in text:  # how surrogates begin in UTF-8, and few other characters
            return text
        return _readable(text.decode("utf-8", "surrogatepass")).encode()

    return change_strings(value, change, keys=True)


def _readable(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)
