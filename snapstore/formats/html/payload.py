"""What a page holds: an index of turns, which is read at once, and values that are read on demand.

The index is an object

    turns     one row a turn, parents before children, see ROW
    named     [name, row, is tag, row it was forked from or -1]
    behind    rows of last turns that nothing stands on any more
    paths, keys, tools   the texts that rows name by number
    chunks    for each chunk of values the number of its first (see blobs)
    store     {"objects", "bytes"} as kept by the engine, perhaps with what "gc" would let go of:
              {"objects", "bytes"}; or null

A row tells what a turn changed, so that a page grows with what is new and not with turns times
length:

    [parent row, id, milliseconds, title, is label of its own,
     keep, [first, count, ...],             messages: the first ``keep`` of the parent's, then these
     [[key, value or -1], ...],             scratchpad: -1 for what was taken out
     [[path, kind, mode, size, content], ...]   files: [path] alone for what was deleted
     [tool, ...],                           tools that were called
     [messages, scratchpad, files, bookkeeping],   new bytes, before compression
     [messages, scratchpad, files]]         bytes of all that the turn holds

Where the parent is not in the page, which only damage does but for first turns, its place is taken
by the turn's number, negative. A turn that cannot be read has an error for its title and changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from snapstore.errors import SnapstoreError
from snapstore.formats.html.blobs import Blobs, compressed
from snapstore.formats.html.lines import Branches
from snapstore.formats.html.parts import FilesPart, MessagesPart, Names, Redaction, ScratchpadPart
from snapstore.model.snapshot import Record
from snapstore.textdiff import visible

if TYPE_CHECKING:
    from snapstore.store import Store

ID_DIGITS = 16
"""Digits of an id in a page: enough for every command to know the turn by."""


_ALIKE = 40
"""Characters by which a label is known to be the beginning of what was said."""


@dataclass(frozen=True, slots=True)
class _Whole:
    """What a turn holds in all, for its children to be told by."""

    messages: int = 0
    bytes: tuple[int, int, int] = (0, 0, 0)


class Payload:
    """Takes in turns, and gives chunks and an index. Grows: turns can be added at any time."""

    def __init__(self, store: Store, redaction: Redaction | None = None) -> None:
        objects = store.objects
        self._objects = objects
        self._redaction = redaction or Redaction()
        self._blobs = Blobs()
        self._paths, self._keys, self._tools = Names(), Names(), Names()
        self._messages = MessagesPart(objects, self._blobs, self._redaction)
        self._scratchpad = ScratchpadPart(objects, self._blobs, self._redaction, self._keys)
        self._files = FilesPart(objects, self._blobs, self._redaction, self._paths)
        self._numbers: dict[bytes, int] = {}
        self._turns: list[list[Any]] = []
        self._wholes: list[_Whole] = []

    def add(self, heads: Iterable[bytes]) -> Iterator[bytes]:
        """Take in the lines of these turns; the chunks that they fill, the last one closed too."""
        for head in heads:
            for snapshot_id in reversed(self._unknown(head)):
                self._add(snapshot_id)
                if self._blobs.full:
                    yield self._blobs.close()
        if not self._blobs.empty:
            yield self._blobs.close()

    def index(self, shown: Branches, held: dict[str, Any] | None = None) -> bytes:
        """The index of all that was added, compressed; ``held`` is what the whole store holds."""
        named = [
            [one.name, self._numbers[one.head], int(one.is_tag), self._number(one.forked_from)]
            for one in shown.named
            if one.head in self._numbers
        ]
        behind = [self._numbers[head] for head in shown.left_behind if head in self._numbers]
        return compressed(
            {
                "turns": self._turns,
                "named": named,
                "behind": behind,
                "paths": self._paths.listed(),
                "keys": self._keys.listed(),
                "tools": self._tools.listed(),
                "chunks": self._blobs.starts,
                "store": held,
            }
        )

    def _number(self, snapshot_id: bytes | None) -> int:
        return self._numbers.get(snapshot_id, -1) if snapshot_id else -1

    def _unknown(self, head: bytes) -> list[bytes]:
        """The turns of a line that are not in yet, newest first, as far as they can be read."""
        found: list[bytes] = []
        try:
            for snapshot_id, _ in self._objects.snapshots.line(head):
                if snapshot_id in self._numbers:
                    break
                found.append(snapshot_id)
        except SnapstoreError:
            pass  # the line breaks off; what is wrong with it is for verify to say
        return found

    def _add(self, snapshot_id: bytes) -> None:
        record = self._objects.snapshots.record(snapshot_id)
        above = self._number(record.parent)
        parent = None
        before = _Whole()
        if record.parent is not None and above >= 0:
            parent, before = self._objects.snapshots.record(record.parent), self._wholes[above]
        try:
            told, whole = self._told(record, parent, before)
        except SnapstoreError as error:
            title = visible(f"cannot be read: {error}")
            none = [before.messages, [], [], [], [], [0, 0, 0, 0], list(before.bytes)]
            told, whole = [title, 0, *none], before
        self._numbers[snapshot_id] = len(self._turns)
        short = snapshot_id.hex()[:ID_DIGITS]
        self._turns.append([above if parent else -record.turn, short, record.time // 1000, *told])
        self._wholes.append(whole)

    def _told(
        self, record: Record, parent: Record | None, before: _Whole
    ) -> tuple[list[Any], _Whole]:
        messages = self._messages.of(record, parent)
        scratchpad = self._scratchpad.of(record, parent)
        files = self._files.of(record, parent)
        kept = before.bytes[0]
        if messages.keep != before.messages:
            kept = self._messages.size(record, messages.keep)
        whole = _Whole(
            messages.keep + messages.count,
            (
                kept + messages.bytes,
                before.bytes[1] + scratchpad.growth,
                before.bytes[2] + files.growth,
            ),
        )
        label = visible(self._redaction.value(record.label)).strip()
        # Many harnesses and imports make a label of the question, which is then no news.
        is_news = bool(label) and messages.title[:_ALIKE] != label[:_ALIKE]
        told = [
            label or messages.title,
            int(is_news),
            messages.keep,
            messages.runs,
            scratchpad.cells,
            files.cells,
            [self._tools(tool) for tool in messages.tools],
            [messages.new_bytes, scratchpad.new_bytes, files.new_bytes, self._bookkeeping(record)],
            list(whole.bytes),
        ]
        return told, whole

    def _bookkeeping(self, record: Record) -> int:
        """Bytes of the snapshot and of the newest node of its list of messages."""
        node = self._objects.lists.node(record.history).encode() if record.history else b""
        return len(record.encode()) + len(node)
