"""snapstore find: a text anywhere in the turns of all sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import click

from snapstore import InvalidInput, SessionInfo, Snapshot, SnapstoreError, Store
from snapstore.snapshot import Line
from snapstore.textdiff import text_of
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.limits import MOST
from snapstore_cli.render import words
from snapstore_cli.render.style import Look

_EVERYTHING = "`snapstore show NAME --messages` prints all of a session"
_MOST_TEXT = 16 << 20
"""Bytes up to which a file is searched."""


@dataclass(frozen=True, slots=True)
class Match:
    """A line that holds the text, and where it came in first."""

    session: str
    turn: int
    id: str
    where: str
    text: str
    role: str = ""


@click.command(cls=Command)
@click.argument("text")
@click.option("-i", "--ignore-case", is_flag=True, help="Upper and lower case alike.")
@click.option("-n", "--limit", "most", type=MOST, metavar="N", help="At most N lines.")
@click.pass_context
def find(context: click.Context, text: str, ignore_case: bool, most: int | None) -> None:
    """Find TEXT in prompts, answers, tool calls and results, files, labels and the scratchpad.

    Looks through the turns of every session, or of the one named with -s. What forks share is told
    once, where it came in first. Exits with 1 when there is nothing.

    \b
    Examples:
      snapstore find "connection refused"
      snapstore find -n 20 timeout
      snapstore find -i todo -s fix-login --json
    """
    run: Invocation = context.obj
    if not text:
        raise InvalidInput("there is nothing to find: the text is empty", hint=_EVERYTHING)
    pattern = re.compile(re.escape(text), re.IGNORECASE if ignore_case else 0)
    found = islice(_matches(run, pattern), most)
    count = 0
    if run.out.json:
        listed = [asdict(match) for match in found]
        count = len(listed)
        run.out.document({"matches": listed})
    else:
        counted = _Counted(found)
        run.out.lines((_line(match, pattern, run.out.look) for match in counted), page=True)
        count = counted.number
    if not count and most != 0:
        run.out.note(f"nothing holds {text!r}")
        context.exit(1)


class _Counted:
    """Passes matches on and counts them."""

    def __init__(self, matches: Iterator[Match]) -> None:
        self._matches = matches
        self.number = 0

    def __iter__(self) -> Iterator[Match]:
        for match in self._matches:
            self.number += 1
            yield match


def _matches(run: Invocation, pattern: re.Pattern[str]) -> Iterator[Match]:
    store = run.store
    only = run.settings.session
    if only is not None:
        run.existing_session(only)
    search = _Search(store, pattern)
    for info in sorted(store.sessions(), key=lambda info: _fork_turn(store, info)):
        if only in (None, info.name):
            yield from search.session(info)


def _fork_turn(store: Store, info: SessionInfo) -> int:
    """Before a fork comes the session that it was forked from, to which what they share belongs."""
    try:
        return store.snapshot(info.forked_from).turn if info.forked_from else 0
    except SnapstoreError:
        return 0


class _Search:
    """Goes through sessions, oldest turn first, and through what they share only once."""

    def __init__(self, store: Store, pattern: re.Pattern[str]) -> None:
        self._store = store
        self._pattern = pattern
        self._turns: set[str] = set()
        self._messages: set[bytes] = set()
        self._contents: set[str] = set()

    def session(self, info: SessionInfo) -> Iterator[Match]:
        new: list[Snapshot] = []
        for snapshot in Line(self._store.objects, bytes.fromhex(info.head)):
            if snapshot.id in self._turns:
                break
            new.append(snapshot)
        for snapshot in reversed(new):
            self._turns.add(snapshot.id)
            for where, role, text in self._new_texts(snapshot):
                for line in text.split("\n"):
                    if self._pattern.search(line):
                        yield Match(info.name, snapshot.turn, snapshot.id, where, line, role)

    def _new_texts(self, snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
        """(where, role, text) of all that this turn brought in."""
        yield "label", "", snapshot.label
        history = snapshot.history
        start = len(history) - snapshot.added()
        wanted: dict[int, bytes] = {}
        for index, message_id in enumerate(history.ids(start), start):
            if message_id not in self._messages:
                self._messages.add(message_id)
                wanted[index] = message_id
        for index, message_id in wanted.items():
            message = self._store.objects.value(message_id)
            yield f"messages[{index}]", _role(message), text_of(message)
        yield from self._new_entries(snapshot)
        yield from self._new_files(snapshot)

    def _new_files(self, snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
        """The text files that this turn added or changed; each content once, wherever it lies."""
        found, held = snapshot.files_diff(), snapshot.files
        if found is None or held is None:
            return
        changed = {path: new for path, (_, new) in found.changed.items()}
        for path, entry in sorted({**found.added, **changed}.items()):
            if entry.kind == "file" and entry.id and entry.id not in self._contents:
                self._contents.add(entry.id)
                if entry.size <= _MOST_TEXT and b"\0" not in (content := held.read(path)):
                    yield f"files:{path}", "", content.decode("utf-8", "surrogateescape")

    def _new_entries(self, snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
        parent = self._store.snapshot(snapshot.parent) if snapshot.parent else None
        if parent is not None and parent.record.scratchpad == snapshot.record.scratchpad:
            return
        for key, value in snapshot.scratchpad.items():
            if parent is None or key not in parent.scratchpad or parent.scratchpad[key] != value:
                yield f"scratchpad:{key}", "", f"{key}: {text_of(value)}"


def _role(message: Any) -> str:
    if not isinstance(message, dict):
        return ""
    return next((str(message[key]) for key in ("role", "type") if message.get(key)), "")


def _line(match: Match, pattern: re.Pattern[str], look: Look) -> str:
    place, where = f"{match.session}@{match.turn}", words.one_line(match.where)
    head = [look.style("name", place), look.style("dim", where)]
    if match.role:
        head.append(look.style("heading", words.one_line(match.role)))
    used = words.cells(f"{place}  {where}  {match.role}  ")
    text = match.text if look.width is None else _around(match.text, pattern, look.width - used)
    return ("  " if look.terminal else "\t").join([*head, _marked(text, pattern, look)])


def _around(text: str, pattern: re.Pattern[str], width: int) -> str:
    """As much of a line as fits, with its first match in it."""
    text = text.strip()
    width = max(20, width)
    if words.cells(text) <= width:
        return text
    found = pattern.search(text)
    start = max(0, found.start() - width // 3) if found else 0
    return words.cut(("…" if start else "") + text[start:], width)


def _marked(text: str, pattern: re.Pattern[str], look: Look) -> str:
    pieces: list[str] = []
    end = 0
    for found in pattern.finditer(text):
        pieces.append(words.one_line(text[end : found.start()]))
        pieces.append(look.style("match", words.one_line(found[0])))
        end = found.end()
    return "".join([*pieces, words.one_line(text[end:])])
