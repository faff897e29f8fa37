"""The tree in a Claude Code transcript: which rows follow which, and the lines through them.

A row names its parent; a rewind is nothing but a later row with an earlier parent. So:

1. Chain rows are those with a ``uuid`` and either a ``parentUuid`` or a type of the chain. Of rows
   with the same uuid the first counts: an append onto an unfinished line makes copies.
2. ``logicalParentUuid`` stands in for a null parent: a compaction goes on from what it summed up.
   A later null root without it begins a line of its own.
3. A parent that is not in the file is taken to have stood just before its first child, so the
   child goes on from the row before it in the file. So does a null root that cannot begin a
   conversation: a reply, a tool result, a compaction.
4. A row that is its own ancestor is cut loose: one that names itself goes on from the row before
   it, of a longer circle the first row in the file becomes a root.
5. Rows after a compaction that name the last preserved row as their parent follow the summary:
   preserved rows stand in the file only once, before the compaction.
6. Sidechain rows are a lane of their own; the main lane passes through them.

Parallel calls make forks that are no branches: each result hangs under its own call, and the next
reply under only one of them. A line therefore takes in, beside its path, the other rows of replies
on the path and the results of calls that the path itself leaves without.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from snapstore.formats.jsonl import Damage, Row
from snapstore.formats.turns import is_prompt

CHAIN_TYPES = frozenset({"user", "assistant", "system", "attachment", "progress"})

ROOT = -1


@dataclass(frozen=True, slots=True)
class Tree:
    """The chain rows of a file in file order; a row is spoken of by its position among them."""

    rows: tuple[Row, ...]
    messages: tuple[dict[str, Any] | None, ...]
    """The message that each row carries, if any."""
    positions: dict[str, int]
    """By uuid."""
    parents: Sequence[int]
    """Of each row, or ROOT."""
    places: Sequence[int]
    """Where among all rows of the file each one stands."""
    side: tuple[bool, ...]
    """Which rows are of the sidechain lane; none, when the file holds nothing but a sidechain."""


@dataclass(frozen=True, slots=True)
class Strand:
    """One line through the tree."""

    rows: tuple[int, ...]
    """Its path from the root on, with the rows beside it that belong to it."""
    leaf: int


@dataclass(frozen=True, slots=True)
class Strands:
    """All lines of a file; every message is on at least one."""

    live: Strand | None
    """The line to the last row of the main lane; None when there are no messages."""
    branches: tuple[Strand, ...]
    """In the order in which they were left."""
    sidechains: tuple[Strand, ...]
    """In the order in which they began."""


def grow(rows: Sequence[Row]) -> tuple[Tree, list[Damage]]:
    """The tree of these rows, and what had to be guessed."""
    warnings: list[Damage] = []
    chain: list[Row] = []
    places: list[int] = []
    positions: dict[str, int] = {}
    for place, row in enumerate(rows):
        uuid = _chain_uuid(row.value)
        if uuid is None:
            continue
        if uuid not in positions:
            positions[uuid] = len(chain)
            chain.append(row)
            places.append(place)
        elif chain[positions[uuid]].whole() != row.whole():
            first = chain[positions[uuid]].line
            what = f"uuid {uuid} again, with another content than in line {first}"
            warnings.append(Damage(row.line, row.offset, what, "the first one counts"))
    messages = tuple(message_of(row.value) for row in chain)
    side = tuple(bool(row.value.get("isSidechain")) for row in chain)
    if all(aside for aside, message in zip(side, messages, strict=True) if message is not None):
        side = (False,) * len(chain)
    parents = _parents(chain, positions, side, warnings)
    return Tree(tuple(chain), messages, positions, parents, places, side), warnings


def strands(tree: Tree) -> Strands:
    """All lines through the tree."""
    finder = _Finder(tree)
    leaf = finder.live_leaf()
    live = None if leaf is None else finder.strand(leaf)
    branches = sorted(finder.uncovered(side=False), key=lambda strand: strand.leaf)
    sidechains = sorted(finder.uncovered(side=True), key=lambda strand: strand.rows)
    return Strands(live, tuple(branches), tuple(sidechains))


def message_of(row: dict[str, Any]) -> dict[str, Any] | None:
    """The message of a user or assistant row. One that is a bare text gets the row's role."""
    kind = row.get("type")
    if kind != "user" and kind != "assistant":
        return None
    message = row.get("message")
    if isinstance(message, dict):
        return message
    return {"role": kind, "content": message} if isinstance(message, str) else None


def is_boundary(row: dict[str, Any]) -> bool:
    """Whether a compaction stands here: what comes before is no longer sent to the model."""
    return row.get("subtype") == "compact_boundary"


def preserved(row: dict[str, Any]) -> tuple[Any, list[Any], Any, Any]:
    """What a compaction says it keeps verbatim: (anchor, uuids, head, tail).

    Newer rows list the uuids, older ones name the first and the last; what is not told is None or
    empty. The kept rows stand after the anchor: the summary, or the boundary row itself.
    """
    facts = row.get("compactMetadata")
    if not isinstance(facts, dict):
        return None, [], None, None
    listed, segment = facts.get("preservedMessages"), facts.get("preservedSegment")
    if isinstance(listed, dict) and isinstance(listed.get("uuids"), list) and listed["uuids"]:
        uuids = listed["uuids"]
        return listed.get("anchorUuid"), uuids, uuids[0], uuids[-1]
    if isinstance(segment, dict):
        return segment.get("anchorUuid"), [], segment.get("headUuid"), segment.get("tailUuid")
    return None, [], None, None


def call_ids(message: dict[str, Any]) -> list[str]:
    """The ids of the tool calls in a message."""
    return _block_ids(message, "tool_use", "id")


def result_ids(message: dict[str, Any]) -> list[str]:
    """The ids of the calls whose results are in a message."""
    return _block_ids(message, "tool_result", "tool_use_id")


def _block_ids(message: dict[str, Any], kind: str, key: str) -> list[str]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    blocks = [b for b in content if isinstance(b, dict) and b.get("type") == kind]
    return [block[key] for block in blocks if isinstance(block.get(key), str)]


def _chain_uuid(row: Any) -> str | None:
    if not isinstance(row, dict):
        return None
    uuid, kind = row.get("uuid"), row.get("type")
    in_chain = "parentUuid" in row or (isinstance(kind, str) and kind in CHAIN_TYPES)
    return uuid if in_chain and isinstance(uuid, str) and uuid else None


def _parents(
    chain: Sequence[Row], positions: dict[str, int], side: Sequence[bool], warnings: list[Damage]
) -> list[int]:
    """The parent of every row, without circles."""
    parents: list[int] = []
    guessed: dict[int, str] = {}  # rows whose parent is a guess, and why
    stand_ins: dict[str, int] = {}
    after_summary: dict[str, str] = {}  # last preserved row -> anchor of its compaction
    last_of_lane: dict[str, int] = {}
    for place, row in enumerate(chain):
        value = row.value
        lane = str(value.get("agentId")) if side[place] else ""
        before = last_of_lane.get(lane, ROOT)
        last_of_lane[lane] = place
        named = value.get("parentUuid") or value.get("logicalParentUuid") or ""
        if not isinstance(named, str):
            named = str(named)
        if after_summary.get(named) in positions:
            named = after_summary[named]
        parent = positions.get(named, ROOT)
        if parent == place:
            guessed[place] = "it names itself as its parent"
            parent = before
        elif parent == ROOT and named:
            guessed[place] = f"its parent {named} is not in the file"
            parent = stand_ins.setdefault(named, before)
        elif parent == ROOT and _needs_parent(value):
            guessed[place] = "it has no parent"
            parent = before
        if is_boundary(value):
            anchor, _, _, tail = preserved(value)
            if isinstance(tail, str) and isinstance(anchor, str):
                after_summary[tail] = anchor
        parents.append(parent)
    if any(parent > place for place, parent in enumerate(parents)):
        _cut_circles(chain, parents, guessed, warnings)
    for place, why in guessed.items():
        row = chain[place]
        done = "it begins a line" if parents[place] == ROOT else "it goes on from the row before it"
        warnings.append(Damage(row.line, row.offset, why, done))
    return parents


def _needs_parent(row: dict[str, Any]) -> bool:
    """Whether a row cannot be the first of a conversation."""
    message = message_of(row)
    if message is None:
        return is_boundary(row)
    return row["type"] == "assistant" or bool(
        result_ids(message) and not is_prompt(message.get("content"))
    )


def _cut_circles(
    chain: Sequence[Row], parents: list[int], guessed: Container[int], warnings: list[Damage]
) -> None:
    """Make a root of one row of every circle: one whose parent was guessed, or the first."""
    unseen, done = 0, -1
    seen = [unseen] * len(parents)
    for start in range(len(parents)):
        walk, place = start + 1, start
        while place != ROOT and seen[place] == unseen:
            seen[place] = walk
            place = parents[place]
        if place != ROOT and seen[place] == walk:
            circle = [place]
            while parents[circle[-1]] != place:
                circle.append(parents[circle[-1]])
            loose = [member for member in circle if member in guessed]
            cut = min(loose or circle)
            parents[cut] = ROOT
            if not loose:
                what = f"{len(circle)} rows name each other as ancestors"
                warnings.append(Damage(chain[cut].line, chain[cut].offset, what, "cut here"))
        place = start
        while place != ROOT and seen[place] == walk:
            seen[place] = done
            place = parents[place]


class _Finder:
    """Finds the strands of a tree one by one and remembers which rows they cover."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.covered = bytearray(len(tree.rows))
        self.children: list[list[int]] = [[] for _ in tree.rows]
        for place, parent in enumerate(tree.parents):
            if parent != ROOT:
                self.children[parent].append(place)
        self.order = self._parents_first()

    def live_leaf(self) -> int | None:
        """The last row of the main lane that has a message at or above it, or a leaf below that."""
        tree = self.tree
        spoken = bytearray(len(tree.rows))
        last = ROOT
        for place in self.order:
            parent = tree.parents[place]
            said = tree.messages[place] is not None and not tree.side[place]
            spoken[place] = said or (parent != ROOT and spoken[parent])
            if spoken[place] and not tree.side[place] and place > last:
                last = place
        if last == ROOT:
            return None
        below = [place for place in self._below(last) if not tree.side[place]]
        return max((place for place in below if not self._goes_on(place)), default=last)

    def strand(self, leaf: int) -> Strand:
        """The line that ends in leaf; its rows are covered from now on."""
        lane = self.tree.side[leaf]
        path = [place for place in self._path(leaf, lane) if self.tree.side[place] == lane]
        rows = tuple(self._with_siblings(path))
        for place in rows:
            self.covered[place] = 1
        return Strand(rows, leaf)

    def uncovered(self, *, side: bool) -> Iterator[Strand]:
        """Strands of a lane until it has no message that is on none."""
        messages, lanes = self.tree.messages, self.tree.side
        for place in reversed(self.order):  # children first: what is met uncovered is a leaf
            if not self.covered[place] and messages[place] is not None and lanes[place] == side:
                yield self.strand(place)

    def _path(self, leaf: int, lane: bool) -> list[int]:
        path = []
        place = leaf
        while place != ROOT and (self.tree.side[place] == lane or not lane):
            path.append(place)
            place = self.tree.parents[place]
        path.reverse()
        return path

    def _with_siblings(self, path: list[int]) -> Iterator[int]:
        """The path and, after the row they hang under, the rows beside it that belong to it."""
        on_path = set(path)
        replies: _Replies | None = None
        for place in path:
            yield place
            for child in self.children[place]:
                if child not in on_path and self.tree.side[child] == self.tree.side[place]:
                    replies = replies or _Replies(self.tree, path)
                    yield from self._belonging(child, replies)

    def _belonging(self, top: int, replies: _Replies) -> Iterator[int]:
        """Rows from top downwards that belong to the replies, until one does not."""
        stack = [top]
        while stack:
            place = stack.pop()
            message = self.tree.messages[place]
            if message is not None:
                if not replies.take(self.tree.rows[place].value["type"], message):
                    continue
                yield place
            stack.extend(reversed(self.children[place]))

    def _below(self, top: int) -> Iterator[int]:
        stack = [top]
        while stack:
            place = stack.pop()
            yield place
            stack.extend(self.children[place])

    def _goes_on(self, place: int) -> bool:
        return any(not self.tree.side[child] for child in self.children[place])

    def _parents_first(self) -> Sequence[int]:
        parents = self.tree.parents
        if all(parent < place for place, parent in enumerate(parents)):
            return range(len(parents))
        order = [place for place, parent in enumerate(parents) if parent == ROOT]
        for place in order:
            order.extend(self.children[place])
        return order


class _Replies:
    """The replies on a path: what their other rows and the results of their calls are known by."""

    def __init__(self, tree: Tree, path: list[int]) -> None:
        self.ids: set[str] = set()
        self.calls: set[str] = set()
        self.answered: set[str] = set()
        for place in path:
            message = tree.messages[place]
            if message is None:
                continue
            if tree.rows[place].value["type"] == "user":
                self.answered.update(result_ids(message))
            else:
                self.calls.update(call_ids(message))
                if isinstance(message.get("id"), str):
                    self.ids.add(message["id"])

    def take(self, kind: str, message: dict[str, Any]) -> bool:
        """Whether a row beside the path belongs to it; if so it counts as on it from now on."""
        if kind == "assistant":
            calls = call_ids(message)
            identity = message.get("id")
            if not isinstance(identity, str) or identity not in self.ids:
                return False
            if not self.calls.isdisjoint(calls):
                return False
            self.calls.update(calls)
            return True
        results = result_ids(message)
        if not results or not self.calls.issuperset(results):
            return False
        if not self.answered.isdisjoint(results):
            return False
        self.answered.update(results)
        return True
