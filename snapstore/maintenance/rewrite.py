"""Turns written again without a text, and with them all that refers to them.

Whatever does not hold the text, and refers to nothing that does, stays the very object that it is:
lines keep their unchanged beginnings, and sessions share what they shared. Turn numbers, labels and
times stay; ids become others, since an id is the hash of the content.

The text is taken out of messages, values of the scratchpad (and keys), files (and names, and where
links lead), labels, metadata, and the rows of imported transcripts. What another program keeps
beside a turn is bytes in a form of its own: there as many other bytes take its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator
from typing import Any

from snapstore import values
from snapstore.ids import SIZE
from snapstore.maintenance.redact import change_strings, change_text, signed_thinking
from snapstore.maintenance.unwanted import Unwanted
from snapstore.model.layout import Layout
from snapstore.model.maps import INLINE, Inline, Leaf, Link, Value
from snapstore.model.pages import RAW, PageRow, Part, decode_page, encode_page
from snapstore.model.snapshot import Record
from snapstore.objects import Objects, Stage
from snapstore.worktree.files import content_of
from snapstore.worktree.tree import (
    DIR,
    FILE,
    SYMLINK,
    Entry,
    Root,
    Trees,
    decode_entry,
    put_root,
)


class Rewriter:
    """Old objects and the new ones that stand for them; new ones are put into a stage.

    ``changed`` counts what the text was taken out of: turns, messages, values, files, rows, and
    messages with signed thinking in which it stood.
    """

    def __init__(self, objects: Objects, unwanted: Unwanted, stage: Stage) -> None:
        """What is made is put into the stage. It has to be in the store before the stage is
        dropped, or this rewriter be done with."""
        self._objects = objects
        self._trees = Trees(objects)
        self._unwanted = unwanted
        self._stage = stage
        self._new: dict[bytes, bytes] = {}
        """What turns, nodes, trees, pages and layouts have become; mostly what they were."""
        self._new_values: dict[bytes, bytes] = {}
        self._new_bytes: dict[bytes, bytes] = {}
        self._new_masked: dict[bytes, bytes] = {}
        self._clean_nodes: set[bytes] = set()
        self.changed: Counter[str] = Counter()

    def trial(self, stage: Stage) -> Rewriter:
        """One that knows what this one knows and goes its own way from there, with another stage:
        for new objects that may never be stored, which this one must not take for there."""
        other = Rewriter(self._objects, self._unwanted, stage)
        other._new = self._new.copy()
        other._new_values = self._new_values.copy()
        other._new_bytes = self._new_bytes.copy()
        other._new_masked = self._new_masked.copy()
        other._clean_nodes = self._clean_nodes.copy()
        return other

    def replaced(self) -> Iterator[bytes]:
        """Every object that another one stands for now."""
        for known in (self._new, self._new_values, self._new_bytes, self._new_masked):
            yield from (old for old, new in known.items() if old != new)

    # --- turns ------------------------------------------------------------------------------------

    def turn(self, head: bytes) -> bytes:
        """What a turn has become, and with it the turns before it."""
        waiting: list[tuple[bytes, Record]] = []
        here: bytes | None = head
        while here is not None and here not in self._new:
            record = self._objects.snapshots.record(here)
            waiting.append((here, record))
            here = record.parent
        for old, record in reversed(waiting):
            new = self._new[old] = self._turn(old, record)
            self._new[new] = new
        return self._new[head]

    def _turn(self, old: bytes, record: Record) -> bytes:
        new = record._replace(
            parent=self._new[record.parent] if record.parent else None,
            history=self._history(record.history),
            scratchpad=self._map(record.scratchpad, self._scratchpad_changes),
            state=self._map(record.state, self._state_changes),
            files=self.tree(record.files) if record.files else None,
            rows=self._page(record.rows) if record.rows else None,
            label=self.text(record.label),
            worktree=self.text(record.worktree),
            meta=self._encoded(record.meta) if record.meta else b"",
        )
        if new == record:
            return old
        self.changed["turns"] += 1
        made, _ = self._objects.snapshots.create(
            new.parent,
            self._stage.put_snapshot,
            time=new.time,
            history=new.history,
            scratchpad=new.scratchpad,
            files=new.files,
            label=new.label,
            meta=new.meta,
            worktree=new.worktree,
            partial=new.partial,
            rows=new.rows,
            state=new.state,
        )
        return made

    def text(self, text: str) -> str:
        """A text without the unwanted one."""
        return change_text(text, "", self._change)

    def value(self, value: Any, *, keys: bool = True) -> Any:
        """A value without the text, in its keys too unless told not to."""
        return change_strings(value, self._change, keys=keys)

    def _change(self, name: bytes, content: bytes) -> bytes:
        return self._unwanted.without(content)

    # --- histories --------------------------------------------------------------------------------

    def _history(self, tip: bytes | None) -> bytes | None:
        if tip is None:
            return None
        lists = self._objects.lists
        nodes = list(lists.reachable(tip, self._new))
        for node_id, node in reversed(nodes):
            ids = [node.ids[at : at + SIZE] for at in range(0, len(node.ids), SIZE)]
            new = [self._content(message, "messages") for message in ids]
            prev = self._new[node.prev] if node.prev is not None else None
            made: bytes | None = node_id
            if prev != node.prev or new != ids:
                made = lists.append(prev, new, self._stage.put_node)
            assert made is not None  # a node holds items
            self._new[node_id] = made
        return self._new[tip]

    def _content(self, content_id: bytes, kind: str) -> bytes:
        """What an object that holds an encoded value has become."""
        known = self._new_values.get(content_id)
        if known is None:
            content = self._objects.content(content_id)
            changed = self._encoded(content)
            known = content_id
            if changed != content:
                known = self._stage.put_content(changed)
                self.changed[kind] += 1
                if kind == "messages" and signed_thinking(
                    values.decode(content), values.decode(changed)
                ):
                    self.changed["signed_thinking"] += 1
            self._new_values[content_id] = known
        return known

    def _encoded(self, encoded: bytes) -> bytes:
        if not self._unwanted.is_in(encoded):
            return encoded
        # Compared as they are encoded: what is nested deeply cannot be compared in Python.
        return values.encode(self.value(values.decode(encoded)), allow_bytes=True)

    # --- maps -------------------------------------------------------------------------------------

    def _map(
        self, root: bytes | None, changes_in: Callable[[Leaf], dict[bytes, Value | None]]
    ) -> bytes | None:
        """What a map has become. Parts that hold nothing of the text are looked at once."""
        if root is None or root in self._clean_nodes:
            return root
        if root in self._new:
            return self._new[root]
        changes: dict[bytes, Value | None] = {}
        branches: list[bytes] = []
        for node_id, node in self._objects.maps.reachable(root, self._clean_nodes):
            if not isinstance(node, Leaf):
                branches.append(node_id)
                continue
            found = changes_in(node)
            changes |= found
            if not found:
                self._clean_nodes.add(node_id)
        if not changes:
            self._clean_nodes.update(branches)
            return root
        made = self._objects.maps.update(root, changes, self._stage.put_node)
        assert made is not None  # entries are changed, not taken out
        self._new[root] = made
        return made

    def _scratchpad_changes(self, leaf: Leaf) -> dict[bytes, Value | None]:
        changes: dict[bytes, Value | None] = {}
        for key, value in leaf.entries.items():
            new_key, new = self._unwanted.without(key), self._stored(value)
            if new_key != key:
                changes[key] = None
                new_key = _free(new_key, leaf.entries, changes)
            if (new_key, new) != (key, value):
                changes[new_key] = new
                self.changed["values"] += 1
        return changes

    def _stored(self, value: Value) -> Value:
        if isinstance(value, Link):
            return Link(self._content(value.id, "linked values"))
        changed = self._encoded(value.content)
        if len(changed) <= INLINE or changed == value.content:
            return Inline(changed)
        return Link(self._stage.put_content(changed))

    def _state_changes(self, leaf: Leaf) -> dict[bytes, Value | None]:
        changes: dict[bytes, Value | None] = {}
        for key, value in leaf.entries.items():
            new = self._masked(value)
            if new != value:
                changes[key] = new
                self.changed["values"] += 1
        return changes

    def _masked(self, value: Value) -> Value:
        if isinstance(value, Inline):
            return Inline(self._unwanted.masked(value.content))
        known = self._new_masked.get(value.id)
        if known is None:
            known = value.id
            if self._is_in_bytes(value.id):
                masked = self._unwanted.masked(self._objects.content(value.id))
                known = self._stage.put_content(masked)
            self._new_masked[value.id] = known
        return Link(known)

    # --- files ------------------------------------------------------------------------------------

    def tree(self, root_id: bytes) -> bytes:
        """What a file tree has become."""
        if root_id not in self._new:
            root = self._trees.root(root_id)
            entries = self._directories(root.entries)
            made = root_id
            if entries != root.entries:
                made = put_root(Root(root.mode, entries), self._stage.put_node)
            self._new[root_id] = made
        return self._new[root_id]

    def _directories(self, entries: bytes | None) -> bytes | None:
        """What a directory has become, those below it first: without recursion, for trees may be
        deep."""
        todo = [] if entries is None else [entries]
        while todo:
            below = list(self._unknown_below(todo[-1]))
            todo += below
            if not below:
                here = todo.pop()
                made = self._map(here, self._directory_changes)
                assert made is not None  # a directory that is not empty stays so
                self._new[here] = made
        return None if entries is None else self._new[entries]

    def _unknown_below(self, entries: bytes) -> Iterator[bytes]:
        if entries in self._new:
            return
        for _, node in self._objects.maps.reachable(entries, self._clean_nodes):
            for name, value in node.entries.items() if isinstance(node, Leaf) else ():
                children = decode_entry(value, name).children
                if children is not None and children not in self._new:
                    yield children

    def _directory_changes(self, leaf: Leaf) -> dict[bytes, Value | None]:
        changes: dict[bytes, Value | None] = {}
        for name, value in leaf.entries.items():
            entry = decode_entry(value, name)
            new_name, new = self._unwanted.without(name), self._entry(entry)
            if new_name != name:
                changes[name] = None
                new_name = _free(new_name, leaf.entries, changes)
            if (new_name, new) != (name, entry):
                changes[new_name] = Inline(new.packed())
        return changes

    def _entry(self, entry: Entry) -> Entry:
        target = entry.target
        if target is None:
            return entry
        if entry.kind == DIR:
            return entry._replace(target=self._new[target])
        if entry.kind == SYMLINK:
            return entry._replace(target=self._unwanted.without(target))
        if entry.kind != FILE or self._bytes(target) == target:
            return entry
        changed = self._bytes(target)
        return entry._replace(target=changed, size=len(self._objects.content(changed)))

    def _bytes(self, content_id: bytes) -> bytes:
        """What an object that holds bytes as they are has become."""
        known = self._new_bytes.get(content_id)
        if known is None:
            known = content_id
            if self._is_in_bytes(content_id):
                whole = self._objects.content(content_id)
                known = self._stage.put_content(self._unwanted.without(whole))
                self.changed["files"] += 1
            self._new_bytes[content_id] = known
        return known

    def _is_in_bytes(self, content_id: bytes) -> bool:
        before = b""
        for piece in content_of(self._objects, content_id):
            window = before + piece
            if self._unwanted.is_in(window):
                return True
            before = window[-self._unwanted.longest :]
        return False

    # --- imported transcripts ---------------------------------------------------------------------

    def layout(self, layout_id: bytes) -> bytes:
        """What the layout of an imported file has become."""
        if layout_id not in self._new:
            old = Layout.decode(self._objects.content(layout_id), layout_id)
            new = Layout(
                tuple(map(self.turn, old.heads)),
                self._page(old.rest) if old.rest is not None else None,
                self._bytes(old.end) if old.end is not None else None,
            )
            made = layout_id if new == old else self._stage.put_content(new.encode())
            self._new[layout_id] = made
        return self._new[layout_id]

    def _page(self, page_id: bytes) -> bytes:
        if page_id not in self._new:
            old = decode_page(self._objects.content(page_id), page_id)
            new = [self._row(row) for row in old]
            made = page_id
            if new != old:
                made = self._stage.put_content(encode_page(new))
                self.changed["pages"] += 1
            self._new[page_id] = made
        return self._new[page_id]

    def _row(self, row: PageRow) -> PageRow:
        value = self._in_row(row.value, raw=row.style == RAW)
        return row._replace(gap=self._unwanted.without(row.gap), value=value)

    def _in_row(self, value: Any, *, raw: bool) -> Any:
        """A value of a row, which is not deep: what is large in it is a part."""
        kind = type(value)
        if kind is Part:
            return Part(self._bytes(value.id) if raw else self._content(value.id, "row parts"))
        if kind is bytes:
            return self._unwanted.without(value)
        if kind is list:
            return [self._in_row(member, raw=raw) for member in value]
        if kind is dict:
            return {self.text(k): self._in_row(member, raw=raw) for k, member in value.items()}
        return self.text(value) if kind is str else value


def _free(key: bytes, *taken: Container[bytes]) -> bytes:
    """A key that stands in none of these: two that held the text must not become one."""
    while any(key in others for others in taken):
        key += b"+"
    return key
