"""What a turn changed, part by part: messages, scratchpad, files, as the rows of an index tell it.

Each part takes a value in once, however many turns hold it, and tells the sizes that the storage
view shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from snapstore import values
from snapstore.errors import SnapstoreError
from snapstore.formats.html import blocks
from snapstore.formats.html.blobs import Blobs
from snapstore.formats.html.filetexts import FileTexts
from snapstore.ids import object_id
from snapstore.model.maps import Inline, Value
from snapstore.model.snapshot import Record
from snapstore.objects import Objects
from snapstore.scratchpad import key_text
from snapstore.textdiff import visible
from snapstore.worktree import tree
from snapstore.worktree.tree import Entry, Trees

GONE = -1
"""In place of a value's number: the key was taken out."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """How values and the contents of files are changed on their way out; as default not at all."""

    value: Callable[[Any], Any] = lambda value: value
    content: Callable[[bytes], bytes] = lambda content: content


class Names:
    """Texts, numbered in the order in which they were first asked for."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def listed(self) -> list[str]:
        """All of them, in the order of their numbers."""
        return list(self._numbers)


# --- messages --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a turn: the first ``keep`` of its parent's, then new ones."""

    keep: int
    count: int
    runs: list[int]
    """Numbers of the new ones as first, count, first, count, ..."""
    bytes: int
    """Of those that are not of the parent's, as encoded."""
    new_bytes: int
    """Of those that no turn before had."""
    title: str
    tools: list[str]


@dataclass(frozen=True, slots=True)
class _Message:
    number: int
    size: int
    title: str
    is_asked: bool
    tools: tuple[str, ...]


class MessagesPart:
    """Takes in messages."""

    def __init__(self, objects: Objects, blobs: Blobs, redaction: Redaction) -> None:
        self._objects = objects
        self._blobs = blobs
        self._redaction = redaction
        self._known: dict[bytes, _Message] = {}

    def of(self, record: Record, parent: Record | None) -> Messages:
        """What a turn says. Raises ObjectMissing or Corrupt."""
        lists = self._objects.lists
        before = parent.history if parent else None
        keep = lists.common_prefix(record.history, before)
        ids = lists.slice(record.history, keep, lists.length(record.history))
        fresh = [one for one in dict.fromkeys(ids) if one not in self._known]
        new_bytes = sum(self._take(one).size for one in fresh)
        said = [self._known[one] for one in ids]
        return Messages(
            keep,
            len(said),
            _runs([one.number for one in said]),
            sum(one.size for one in said),
            new_bytes,
            _title(said),
            list(dict.fromkeys(tool for one in said for tool in one.tools)),
        )

    def size(self, record: Record, count: int) -> int:
        """Bytes of the first messages of a turn, as far as they were taken in."""
        ids = self._objects.lists.slice(record.history, 0, count)
        return sum(self._known[one].size for one in ids if one in self._known)

    def _take(self, message_id: bytes) -> _Message:
        content = b""
        try:
            content = self._objects.content(message_id)
            shown = blocks.message(self._redaction.value(values.decode(content)))
        except SnapstoreError as error:
            shown = blocks.unreadable(error)
        taken = _Message(
            self._blobs.add(shown),
            len(content),
            blocks.title(shown),
            shown[0] == "user",
            tuple(blocks.tools(shown)),
        )
        self._known[message_id] = taken
        return taken


def _title(said: list[_Message]) -> str:
    """What was asked first, else what was said first."""
    titled = [one for one in said if one.title]
    return next((one.title for one in titled if one.is_asked), titled[0].title if titled else "")


def _runs(numbers: list[int]) -> list[int]:
    runs: list[int] = []
    for number in numbers:
        if runs and runs[-2] + runs[-1] == number:
            runs[-1] += 1
        else:
            runs += [number, 1]
    return runs


# --- scratchpad and files --------------------------------------------------------------------


@dataclass(slots=True)
class Changes:
    """The keys or paths of a turn that are not as in its parent."""

    cells: list[list[int]] = field(default_factory=list)
    growth: int = 0
    """Bytes that the turn holds more than its parent."""
    new_bytes: int = 0
    """Of values that no turn before had."""


class ScratchpadPart:
    """Takes in values of scratchpads."""

    def __init__(self, objects: Objects, blobs: Blobs, redaction: Redaction, keys: Names) -> None:
        self._objects = objects
        self._blobs = blobs
        self._redaction = redaction
        self._keys = keys
        self._known: dict[tuple[bytes, bytes], int] = {}

    def of(self, record: Record, parent: Record | None) -> Changes:
        """What a turn notes. Raises ObjectMissing or Corrupt."""
        found = Changes()
        before = parent.scratchpad if parent else None
        for key, old, new in self._objects.maps.diff(before, record.scratchpad):
            found.growth -= len(self._content(old)) if old else 0
            number = GONE if new is None else self._number(key, self._content(new), found)
            found.cells.append([self._keys(visible(key_text(key))), number])
        return found

    def _content(self, value: Value) -> bytes:
        return value.content if isinstance(value, Inline) else self._objects.content(value.id)

    def _number(self, key: bytes, content: bytes, found: Changes) -> int:
        found.growth += len(content)
        known = key, object_id(content)
        if known not in self._known:
            name = key_text(key)
            # A secret is often known as one by the name that it stands under.
            shown = self._redaction.value({name: values.decode(content)})[name]
            self._known[known] = self._blobs.add(blocks.text_of(shown))
            found.new_bytes += len(content)
        return self._known[known]


class FilesPart:
    """Takes in files."""

    def __init__(self, objects: Objects, blobs: Blobs, redaction: Redaction, paths: Names) -> None:
        self._trees = Trees(objects)
        self._texts = FileTexts(objects, blobs, redaction.content)
        self._paths = paths
        self._contents: set[bytes] = set()

    def of(self, record: Record, parent: Record | None) -> Changes:
        """What a turn did to files. Raises ObjectMissing or Corrupt."""
        found = Changes()
        before = parent.files if parent else None
        if before == record.files:
            return found
        for path, old, new in self._trees.changes(before, record.files):
            if not path:
                continue
            found.growth += (new.size if new else 0) - (old.size if old else 0)
            number = self._paths(visible(path.decode("utf-8", "surrogateescape")))
            entry = [] if new is None else self._entry(path, new, found)
            found.cells.append([number, *entry])
        return found

    def _entry(self, path: bytes, entry: Entry, found: Changes) -> list[int]:
        if entry.kind != tree.FILE or entry.target is None:
            return [entry.kind, entry.mode, 0, GONE]
        if entry.target not in self._contents:
            self._contents.add(entry.target)
            found.new_bytes += entry.size
        return [entry.kind, entry.mode, entry.size, self._texts.number(path, entry)]
