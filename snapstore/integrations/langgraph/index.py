"""Where in a thread's line each checkpoint is, and each turn that holds writes to it.

It is made by walking the line, and kept in memory; what another process added is walked when it is
met. So that a long thread opens quickly, every 64th turn or so holds a page of those before it, and
the page the id of the one before that. A page is a msgpack array

    [page before, [[key, [key, ...]], ...]]

with the key of the checkpoint, or nil, and the keys that there are writes to, for each turn. Pages
name no snapshots, so they hold for whoever has these turns in his line, under whatever name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgpack

from snapstore.errors import ObjectMissing
from snapstore.ids import SIZE
from snapstore.integrations.langgraph.turns import (
    INDEX,
    Checkpoint,
    Entries,
    Key,
    Place,
    Write,
    checkpoint_of,
    keys_of,
    writes_of,
)
from snapstore.model.maps import Link
from snapstore.model.snapshot import Record
from snapstore.model.wire import damaged
from snapstore.objects import Objects, Stage

PAGE_TURNS = 64


@dataclass(frozen=True, slots=True)
class Held:
    """What one turn holds."""

    checkpoint: Key | None
    writes: frozenset[Key]


@dataclass(slots=True)
class Index:
    """The turns of a line up to its head. Not for two threads at once."""

    objects: Objects
    head: bytes | None = None
    turns: list[Held] = field(default_factory=list)
    checkpoints: dict[Key, int] = field(default_factory=dict)
    """The turn that holds a checkpoint; the last, when it was put again."""
    writes: dict[Key, list[int]] = field(default_factory=dict)
    """The turns that hold writes to a checkpoint, in order."""
    latest: dict[str, str] = field(default_factory=dict)
    """The greatest id of each namespace."""
    paged: int = 0
    """How many turns are in pages."""
    page: bytes | None = None
    """The last page."""

    def follow(self, head: bytes | None) -> None:
        """Be the index of the line that ends with head. Raises ObjectMissing or Corrupt."""
        if head == self.head:
            return
        common = self._common(head)
        if common < self.paged:
            self.paged, self.page, common = 0, None, 0
        if common < len(self.turns):
            self._forget(common)
        found: list[Held] = []
        for _, record in self.objects.snapshots.line(head):
            if record.turn <= common:
                break
            entries = self.entries(record)
            found.append(Held(*keys_of(entries, self.objects.content)))
            link = entries.get(INDEX)
            if common == 0 and isinstance(link, Link):
                self._take_pages(link.id, record.turn - 1)
                break
        for held in reversed(found):
            self._add(held)
        self.head = head

    def _common(self, head: bytes | None) -> int:
        """How many turns another line has in common with this one."""
        try:
            shared = self.objects.snapshots.common_ancestor(self.head, head)
        except ObjectMissing:  # what this line was is gone
            return 0
        return self.objects.snapshots.record(shared).turn if shared else 0

    def added(self, head: bytes, held: Held) -> None:
        """A turn was put on the line, which ends with head now."""
        self._add(held)
        self.head = head

    def amended(self, head: bytes, held: Held) -> None:
        """The last turn holds more now."""
        turn = len(self.turns)
        for key in held.writes - self.turns[-1].writes:
            self.writes.setdefault(key, []).append(turn)
        self.turns[-1] = held
        self.head = head

    # --- what the line holds ----------------------------------------------------------------------

    def record(self, turn: int) -> Record:
        """A turn of the line, as it is stored."""
        assert self.head is not None
        snapshots = self.objects.snapshots
        return snapshots.record(snapshots.at_turn(self.head, turn))

    def last(self) -> Record | None:
        """The last turn of the line; None when it is empty."""
        return self.objects.snapshots.record(self.head) if self.head is not None else None

    def at(self, key: Key) -> Record | None:
        """The turn that holds a checkpoint."""
        turn = self.checkpoints.get(key)
        return self.record(turn) if turn is not None else None

    def entries(self, record: Record) -> Entries:
        """What the map of a turn holds; nothing for one that was saved by other means."""
        return dict(self.objects.maps.items(record.state))

    def checkpoint(self, key: Key) -> Checkpoint | None:
        """A checkpoint."""
        record = self.at(key)
        return checkpoint_of(self.entries(record), self.objects.content) if record else None

    def writes_to(self, key: Key) -> dict[Place, Write]:
        """The writes to a checkpoint."""
        found: dict[Place, Write] = {}
        for turn in self.writes.get(key, ()):
            entries = self.entries(self.record(turn))
            for _, place, write in writes_of(entries, self.objects.content, key.__eq__):
                if place.at < 0 or place not in found:
                    found[place] = write
        return found

    # --- pages ------------------------------------------------------------------------------------

    def page_due(self) -> bool:
        """Whether the next turn should hold a page."""
        return len(self.turns) - self.paged >= PAGE_TURNS

    def put_page(self, stage: Stage) -> bytes:
        """Stage a page of the turns that are in none."""
        held = [[held.checkpoint, sorted(held.writes)] for held in self.turns[self.paged :]]
        return stage.put_content(msgpack.packb([self.page, held], unicode_errors="surrogatepass"))

    def page_kept(self, page: bytes, turns: int) -> None:
        """A page of the first so many turns is in the line now."""
        self.page, self.paged = page, turns

    def _take_pages(self, last: bytes, turns: int) -> None:
        pages: list[list[Held]] = []
        here: bytes | None = last
        while here is not None:
            here, held = _page(self.objects.content(here), here)
            pages.append(held)
        for page in reversed(pages):
            for held_there in page:
                self._add(held_there)
        if len(self.turns) != turns:
            raise damaged(last, f"its pages hold {len(self.turns)} turns, not {turns}")
        self.page, self.paged = last, turns

    def _add(self, held: Held) -> None:
        self.turns.append(held)
        turn = len(self.turns)
        if held.checkpoint is not None:
            namespace, name = held.checkpoint
            self.checkpoints[held.checkpoint] = turn
            if name > self.latest.get(namespace, ""):
                self.latest[namespace] = name
        for key in held.writes:
            self.writes.setdefault(key, []).append(turn)

    def _forget(self, keep: int) -> None:
        """Keep the first so many turns."""
        kept = self.turns[:keep]
        self.turns, self.checkpoints, self.writes, self.latest = [], {}, {}, {}
        for held in kept:
            self._add(held)


def _page(content: bytes, page_id: bytes) -> tuple[bytes | None, list[Held]]:
    try:
        before, turns = msgpack.unpackb(content, unicode_errors="surrogatepass")
        held = [
            Held(Key(*own) if own else None, frozenset(Key(*key) for key in keys))
            for own, keys in turns
        ]
    except (ValueError, TypeError) as error:
        raise damaged(page_id, f"no page of turns ({error})") from error
    if before is not None and (type(before) is not bytes or len(before) != SIZE):
        raise damaged(page_id, "the page before it is no id")
    return before, held
