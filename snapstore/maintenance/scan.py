"""Looking for secrets in what was saved: messages, scratchpad, files, and what else a turn holds.

Every object is looked at once, in the turn where it first appears, however many turns and sessions
share it. A finding never holds the secret: it says where to look, how it begins and how long it is.

    messages[3].content[0].text    in the history
    scratchpad:KEY.path            in a value of the scratchpad
    files:PATH                     in a file
    label, meta.path               in what a save was given
    rows[17].path                  in the transcript that a turn was imported from
    state:KEY                      in what another program keeps beside the turn, in its own form

The last two mostly repeat what stands in messages: there only secrets count that were not met yet.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snapstore import refs, values
from snapstore.errors import Corrupt, ObjectMissing, SnapstoreError
from snapstore.ids import SIZE, object_id
from snapstore.maintenance.secrets import Secret, find, find_given, may_hold
from snapstore.model.layout import LAYOUT, Layout
from snapstore.model.maps import Inline, Link
from snapstore.model.pages import PageRow, Part, decode_page
from snapstore.model.snapshot import Record
from snapstore.scratchpad import key_text
from snapstore.worktree.files import content_of
from snapstore.worktree.tree import FILE, Trees

if TYPE_CHECKING:
    from snapstore.store import Store

LARGEST_FILE = 32 << 20
"""Of a larger file only the beginning is looked at."""

_WINDOW, _OVERLAP = 1 << 20, 20 << 10
_BINARY_WITHIN = 8192
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret, and where it first appears."""

    rule: str
    session: str
    """The session; for what only a tag reaches the tag."""
    turn: int
    where: str
    begins: str
    """Its first few characters."""
    length: int


class Scan:
    """One look through a store. ``unread`` counts what could not be read and so was not looked at;
    verify says more about it."""

    def __init__(self, store: Store) -> None:
        self._objects = store.objects
        self._engine = store.engine
        self._trees = Trees(store.objects)
        self._seen: set[bytes] = set()
        self._seen_files: set[bytes] = set()
        self._told: set[bytes] = set()
        self._told_meta: set[bytes] = set()
        self.unread = 0

    def findings(self, progress: Callable[[int, int], None] | None = None) -> Iterator[Finding]:
        """Everything that is found, session by session, each from its first turn on.

        Progress is called with (done, total) in lines of turns.
        """
        lines = list(dict.fromkeys(self._lines()))
        for done, (name, head) in enumerate(lines):
            if progress is not None:
                progress(done, len(lines))
            yield from self._line(name, head)

    def _lines(self) -> Iterator[tuple[str, bytes]]:
        """Where refs are and were; live sessions first, for a finding is named after them."""
        for prefix in refs.OF_SNAPSHOTS:
            for tip in self._engine.tips(prefix):
                if tip.new:
                    yield tip.ref.removeprefix(prefix), tip.new
        for move in refs.moves_around_damage(self._engine, self._missed):
            kind = next(filter(move.ref.startswith, refs.OF_SNAPSHOTS), None)
            if kind is None:
                continue
            name = move.ref.removeprefix(kind)
            if move.new:
                yield name, move.new
            layout = move.info.get(LAYOUT)
            if layout:
                for head in self._heads(layout):
                    yield name, head

    def _missed(self, error: SnapstoreError) -> None:
        self.unread += 1

    def _heads(self, layout_id: bytes) -> tuple[bytes, ...]:
        try:
            return Layout.decode(self._objects.content(layout_id), layout_id).heads
        except (ObjectMissing, Corrupt):
            self.unread += 1
            return ()

    def _line(self, name: str, head: bytes) -> Iterator[Finding]:
        turns: list[tuple[Record, Record | None]] = []
        here: bytes | None = head
        while here is not None and here not in self._seen:
            self._seen.add(here)
            try:
                record = self._objects.snapshots.record(here)
                before = self._objects.snapshots.record(record.parent) if record.parent else None
            except (ObjectMissing, Corrupt):
                self.unread += 1
                break
            turns.append((record, before))
            here = record.parent
        for record, before in reversed(turns):
            for where, text, secret in self._turn(record, before):
                found = text[secret.start : secret.end]
                self._told.add(object_id(found))
                shown = found[:_SHOWN].decode("utf-8", "replace")
                yield Finding(secret.rule, name, record.turn, where, shown, len(found))

    def _turn(self, record: Record, before: Record | None) -> Iterator[tuple[str, bytes, Secret]]:
        parts = (
            self._history(record.history),
            self._scratchpad(before.scratchpad if before else None, record.scratchpad),
            self._files(before.files if before else None, record.files),
            _in_value("label", record.label),
            self._meta(record.meta),
            self._rows(record.rows),
            self._state(before.state if before else None, record.state),
        )
        for part in parts:
            try:
                yield from part
            except (ObjectMissing, Corrupt):
                self.unread += 1

    # --- the parts of a turn ----------------------------------------------------------------------

    def _history(self, tip: bytes | None) -> Iterator[tuple[str, bytes, Secret]]:
        nodes = list(self._objects.lists.reachable(tip, self._seen))
        for node_id, node in reversed(nodes):
            self._seen.add(node_id)
            for at in range(0, len(node.ids), SIZE):
                message = node.ids[at : at + SIZE]
                if message not in self._seen:
                    self._seen.add(message)
                    where = f"messages[{node.start + at // SIZE}]"
                    yield from self._encoded(where, self._objects.content(message))

    def _scratchpad(
        self, old: bytes | None, new: bytes | None
    ) -> Iterator[tuple[str, bytes, Secret]]:
        for change in self._objects.maps.diff(old, new):
            value = change.new
            if value is None:
                continue
            if isinstance(value, Inline):
                encoded = value.content
            else:
                encoded = self._objects.content(value.id)
            key = key_text(change.key)
            yield from self._encoded(f"scratchpad:{key}", encoded, key)

    def _files(self, old: bytes | None, new: bytes | None) -> Iterator[tuple[str, bytes, Secret]]:
        for change in self._trees.changes(old, new) if new else ():
            entry = change.new
            if entry is None or entry.kind != FILE or entry.target is None:
                continue
            if entry.target not in self._seen_files:
                self._seen_files.add(entry.target)
                where = f"files:{os.fsdecode(change.path)}"
                for text, secret in self._in_file(entry.target):
                    yield where, text, secret

    def _in_file(self, content_id: bytes) -> Iterator[tuple[bytes, Secret]]:
        """The secrets in a file, which is read window by window and never whole."""
        window, taken = b"", 0
        for piece in content_of(self._objects, content_id):
            if not taken and b"\0" in piece[:_BINARY_WITHIN]:
                return
            window += piece
            taken += len(piece)
            if len(window) >= _WINDOW:
                # What begins near the end may be cut there: the next window has it whole.
                border = len(window) - _OVERLAP
                yield from ((window, found) for found in find(window) if found.start < border)
                window = window[border:]
            if taken >= LARGEST_FILE:
                break
        yield from ((window, found) for found in find(window))

    def _meta(self, encoded: bytes) -> Iterator[tuple[str, bytes, Secret]]:
        if encoded and encoded not in self._told_meta:
            self._told_meta.add(encoded)
            yield from self._encoded("meta", encoded)

    def _rows(self, page: bytes | None) -> Iterator[tuple[str, bytes, Secret]]:
        if page is None or page in self._seen:
            return
        self._seen.add(page)
        for row in decode_page(self._objects.content(page), page):
            for where, text, secret in self._row(row):
                if object_id(text[secret.start : secret.end]) not in self._told:
                    yield where, text, secret

    def _row(self, row: PageRow) -> Iterator[tuple[str, bytes, Secret]]:
        where = f"rows[{row.place}]"
        yield from _in_value(where, row.value)
        for part in _parts(row.value):
            if part not in self._seen:
                self._seen.add(part)
                content = self._objects.content(part)
                if row.value == Part(part):
                    yield from ((where, content, secret) for secret in find(content))
                else:
                    yield from self._encoded(where, content)

    def _state(self, old: bytes | None, new: bytes | None) -> Iterator[tuple[str, bytes, Secret]]:
        for change in self._objects.maps.diff(old, new):
            value = change.new
            if isinstance(value, Link) and value.id in self._seen:
                continue
            if isinstance(value, Link):
                self._seen.add(value.id)
                text = self._objects.content(value.id)
            else:
                text = value.content if value is not None else b""
            where = f"state:{key_text(change.key)}"
            for secret in find(text):
                if object_id(text[secret.start : secret.end]) not in self._told:
                    yield where, text, secret

    def _encoded(
        self, where: str, encoded: bytes, name: str = ""
    ) -> Iterator[tuple[str, bytes, Secret]]:
        """The secrets in an encoded value; decoded only when there may be some."""
        if may_hold(encoded) or may_hold(name.encode("utf-8", "surrogatepass")):
            yield from _in_value(where, values.decode(encoded), name)


def _parts(value: Any) -> Iterator[bytes]:
    todo = [value]
    while todo:
        here = todo.pop()
        if type(here) is Part:
            yield here.id
        elif type(here) is dict:
            todo += reversed(here.values())
        elif type(here) is list:
            todo += reversed(here)


def _in_value(where: str, value: Any, name: str = "") -> Iterator[tuple[str, bytes, Secret]]:
    """The secrets in the strings of a value, each with its path; bytes are looked at as text."""
    todo = [(where, name, value)]
    while todo:
        path, key, here = todo.pop()
        if isinstance(here, dict):
            todo += reversed([(path + _step(k), k, v) for k, v in here.items()])
        elif type(here) is list:
            todo += reversed([(f"{path}[{at}]", key, v) for at, v in enumerate(here)])
        elif isinstance(here, str | bytes):
            text = here.encode("utf-8", "surrogatepass") if isinstance(here, str) else here
            for secret in find_given(key.encode("utf-8", "surrogatepass"), text):
                yield path, text, secret


def _step(key: str) -> str:
    return f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
