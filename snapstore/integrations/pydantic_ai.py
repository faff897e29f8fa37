"""SnapstoreConversationStore: conversations of Pydantic AI in a snapstore store.

Needs the extra ``snapstore[pydantic-ai]``. A conversation is a session, each save a turn of it. The
history holds one value an entry, with the message as Pydantic AI serialises it and, for people, who
spoke and the text; the record stands in the turn's metadata, under ``pydantic_ai``. So ``snapstore
log``, ``show``, ``diff`` and ``rewind`` work on conversations, and a fork made by the command line
is a conversation.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from snapstore import refs, values
from snapstore.engine import Move, Update
from snapstore.errors import ObjectMissing, RefMoved
from snapstore.ids import SIZE
from snapstore.integrations.names import facts, outside_id, session_name
from snapstore.objects import Stage
from snapstore.store import Store, given_store

try:
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"{missing}: install snapstore[pydantic-ai] 2.68 or later", name=missing.name
    ) from missing

T = TypeVar("T")

_META = "pydantic_ai"
_ROLES = {"request": "user", "response": "assistant"}
_RECORDS: TypeAdapter[ConversationRecord] = TypeAdapter(ConversationRecord)


class _Spot(NamedTuple):
    """Where an entry is: the list up to a node, cut off after so many items, ends with it."""

    node: bytes
    length: int
    content: bytes


@dataclass(slots=True)
class _Line:
    """The entries of a conversation, those of branches it left too."""

    head: bytes | None
    entries: dict[str, _Spot] = field(default_factory=dict)
    nodes: set[bytes] = field(default_factory=set)


class SnapstoreConversationStore(ConversationStore):
    """Conversations in a store, which stays the caller's to close.

    ``delete`` ends a conversation: it is not loaded or listed any more, nor are entries read that
    only it held. Its turns are there until they are collected, so that undo can bring it back; use
    ``snapstore gc --grace 0`` to be rid of them at once.
    """

    def __init__(self, store: Store) -> None:
        """A conversation store on a store that is open."""
        self.store = given_store(store)
        self._lines: dict[str, _Line] = {}
        self._asked = refs.SESSIONS
        """The ref of the conversation that was asked for last."""
        self._lock = threading.RLock()

    # --- the primitives ---------------------------------------------------------------------------

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation, or None."""
        return await self._run(lambda: self._record(self._tip(conversation_id), conversation_id))

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """The records of all conversations, or of those of a scope, the last saved first."""

        def read() -> list[ConversationRecord]:
            found = [record for _, record in self._all() if scope in (None, record.scope)]
            return sorted(found, key=lambda record: record.updated_at, reverse=True)[:limit]

        return await self._run(read)

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Keep a record and its new entries, both or none; durable when it returns.

        Raises ConversationConflict when the record is not at that revision, or when nothing has the
        entry that the history ends with.
        """
        await self._run(lambda: self._write(record, list(new_entries), expected_revision))

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """End a conversation. Raises ConversationConflict when it is not at that revision."""

        def delete() -> None:
            tip = self._expected(conversation_id, expected_revision)
            assert tip is not None
            update = Update(tip.ref, None, tip.new, "delete", self.store.clock())
            try:
                self.store.engine.commit([], update)
            except RefMoved:
                raise ConversationConflict(conversation_id) from None

        await self._run(delete)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry of this id. Raises LookupError when no conversation has it."""
        return await self._run(lambda: self._entries([self._known(entry_id).content])[0])

    async def read_history(
        self, head_id: str | None, *, limit: int | None = None
    ) -> list[ConversationEntry]:
        """The entries up to one, oldest first, or the last of them; in one walk."""

        def read() -> list[ConversationEntry]:
            if head_id is None:
                return []
            spot = self._known(head_id)
            start = 0 if limit is None else max(0, spot.length - limit)
            return self._entries(self.store.objects.lists.slice(spot.node, start, spot.length))

        return await self._run(read)

    # --- records ----------------------------------------------------------------------------------

    def _tip(self, conversation_id: str) -> Move | None:
        self._asked = refs.SESSIONS + session_name(conversation_id)
        return refs.live(self.store.engine, self._asked)

    def _record(self, tip: Move | None, conversation_id: str) -> ConversationRecord | None:
        """The record that a session stands on; None when it is no conversation."""
        if tip is None or tip.new is None:
            return None
        kept = self.store.snapshot(tip.new).record.meta
        found = values.decode(kept).get(_META) if kept else None
        if found is None:
            return None
        record = _RECORDS.validate_json(json.dumps(found))
        return replace(record, conversation_id=conversation_id)

    def _all(self) -> Iterator[tuple[Move, ConversationRecord]]:
        for tip in self.store.engine.tips(refs.SESSIONS):
            name = tip.ref.removeprefix(refs.SESSIONS)
            record = self._record(
                tip if tip.new else None, outside_id(self.store.engine, tip, name)
            )
            if record is not None:
                yield tip, record

    def _expected(self, conversation_id: str, revision: str | None) -> Move | None:
        """The last move of a conversation that is at this revision."""
        tip = self._tip(conversation_id)
        stored = self._record(tip, conversation_id)
        if (stored.revision if stored else None) != revision:
            raise ConversationConflict(conversation_id)
        return tip

    def _write(
        self, record: ConversationRecord, new: list[ConversationEntry], revision: str | None
    ) -> None:
        name = session_name(record.conversation_id)
        while True:
            tip = self._expected(record.conversation_id, revision)
            with Stage(self.store.objects) as stage, contextlib.suppress(RefMoved):
                history, grown_from = self._history(record, new, stage)
                head = tip.new if tip else None
                parent = head if head is not None else self._turn_before(record, grown_from)
                time = self.store.clock()
                turn, _ = self.store.objects.snapshots.create(
                    parent,
                    stage.put_snapshot,
                    time=time,
                    history=history,
                    label=_label(new),
                    meta=values.encode({_META: json.loads(_RECORDS.dump_json(record))}),
                )
                info = dict(facts(record.conversation_id, name)) if head is None else {}
                if head is None and parent is not None:
                    info["forked_from"] = parent
                op = "fork" if "forked_from" in info else "save"
                stage.commit(Update(refs.SESSIONS + name, turn, head, op, time, info))
                return

    def _history(
        self, record: ConversationRecord, new: list[ConversationEntry], stage: Stage
    ) -> tuple[bytes | None, bytes | None]:
        """Stage the history of a record: its tip, and that of the history it goes on from."""
        lists = self.store.objects.lists
        last = new[0].parent_id if new else record.head_id
        before: bytes | None = None
        if last is not None:
            try:
                spot = self._known(last)
            except LookupError:
                raise ConversationConflict(record.conversation_id) from None
            before = lists.replace(spot.node, spot.length, [], stage.put_node)
        ids = [stage.put_content(values.encode(_item(entry), path="entry")) for entry in new]
        return lists.append(before, ids, stage.put_node), before

    def _turn_before(self, record: ConversationRecord, history: bytes | None) -> bytes | None:
        """The turn of the conversation this one was forked from that held just this history."""
        source = self._tip(record.forked_from) if record.forked_from else None
        for turn, held in self.store.objects.snapshots.line(source.new if source else None):
            if held.history == history:
                return turn
        return None

    # --- entries ----------------------------------------------------------------------------------

    def _known(self, entry_id: str) -> _Spot:
        """Where an entry is. It is looked for in the conversation that was asked for last and where
        it has been before; in all the others, of which there may be many, only then."""
        likely = [ref for ref, line in self._lines.items() if entry_id in line.entries]
        for ref in [self._asked, *likely]:
            tip = refs.live(self.store.engine, ref)
            spot = self._followed(ref, tip.new if tip else None).get(entry_id)
            if spot is not None:
                return spot
        heads = {tip.ref: tip.new for tip in self.store.engine.tips(refs.SESSIONS)}
        for ref in [*heads, *(self._lines.keys() - heads.keys())]:
            spot = self._followed(ref, heads.get(ref)).get(entry_id)
            if spot is not None:
                return spot
        raise LookupError(f"no conversation has an entry {entry_id}")

    def _followed(self, ref: str, head: bytes | None) -> Mapping[str, _Spot]:
        """The entries of a conversation as it is now, none when it has ended.

        Those that are known from before are not read again.
        """
        if head is None:
            self._lines.pop(ref, None)
            return {}
        line = self._lines.get(ref)
        if line is None or not self._goes_on(line.head, head):
            line = self._lines[ref] = _Line(None)
        self._read_line(line, head)
        return line.entries

    def _goes_on(self, old: bytes | None, new: bytes) -> bool:
        try:
            return self.store.objects.snapshots.common_ancestor(old, new) == old
        except ObjectMissing:  # what the line was is gone
            return False

    def _read_line(self, line: _Line, head: bytes) -> None:
        objects = self.store.objects
        for turn, record in objects.snapshots.line(head):
            if turn == line.head:
                break
            if not record.meta or _META not in values.decode(record.meta):
                continue
            for node_id, node in objects.lists.reachable(record.history, line.nodes):
                line.nodes.add(node_id)
                ids = [node.ids[at : at + SIZE] for at in range(0, len(node.ids), SIZE)]
                for at, (content, item) in enumerate(zip(ids, objects.values(ids), strict=True), 1):
                    line.entries[item["entry"]] = _Spot(node_id, node.start + at, content)
        line.head = head

    def _entries(self, contents: Sequence[bytes]) -> list[ConversationEntry]:
        items = self.store.objects.values(contents)
        packed = json.dumps([item["message"] for item in items])
        messages: list[ModelMessage] = ModelMessagesTypeAdapter.validate_json(packed)
        return [
            ConversationEntry(id=item["entry"], parent_id=item["parent"], message=message)
            for item, message in zip(items, messages, strict=True)
        ]

    async def _run(self, work: Callable[[], T]) -> T:
        def locked() -> T:
            with self._lock:
                return work()

        return await asyncio.to_thread(locked)


def _item(entry: ConversationEntry) -> dict[str, Any]:
    """An entry as the history holds it."""
    message = json.loads(ModelMessagesTypeAdapter.dump_json([entry.message]))[0]
    return {
        "role": _ROLES.get(message["kind"], message["kind"]),
        "content": _text(message),
        "entry": entry.id,
        "parent": entry.parent_id,
        "message": message,
    }


def _text(message: dict[str, Any]) -> str:
    """What was said, for people."""
    parts = message.get("parts", [])
    said = [part["content"] for part in parts if isinstance(part.get("content"), str)]
    return "\n".join(said)


def _label(entries: Sequence[ConversationEntry]) -> str:
    """The first words of the first new message."""
    for entry in entries:
        text = _text(_item(entry)["message"])
        if text:
            return " ".join(text.split())[:60]
    return ""
