"""A session: its history and scratchpad in memory, and the turns that were saved of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from snapstore import pairs, refs, values
from snapstore.engine import Move, Update
from snapstore.errors import InvalidInput, NotFound, Refused, RefMoved
from snapstore.history import History
from snapstore.objects import Stage
from snapstore.scratchpad import Scratchpad
from snapstore.snapshot import Line, Snapshot

if TYPE_CHECKING:
    from snapstore.store import Store


class Session:
    """A name, what it points at, and the changes that the next save will keep.

    An object for one thread at a time. Two objects of the same session, in one process or in
    two, are two writers: the second to save gets RefMoved and loses nothing.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._ref = refs.SESSIONS + name
        self._head: Snapshot | None = None
        self._history = History(store.objects, None)
        self._scratchpad = Scratchpad(store.objects, None)
        self.meta: dict[str, Any] = {}
        """Further facts to keep with each turn: JSON values or bytes."""
        self.reload()

    # --- what it is -------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The session's name; another one after a conflict that was saved as a fork."""
        return self._name

    @property
    def head(self) -> Snapshot | None:
        """The turn that this object stands on; None before the first save."""
        return self._head

    @property
    def turn(self) -> int:
        """The number of that turn; 0 before the first save."""
        return self._head.turn if self._head else 0

    @property
    def history(self) -> History:
        """The messages: a mutable sequence of JSON values."""
        return self._history

    @history.setter
    def history(self, messages: Any) -> None:
        if messages is not self._history:
            self._history[:] = messages

    @property
    def scratchpad(self) -> Scratchpad:
        """Keys and values that live outside the history: JSON values, or bytes at any depth."""
        return self._scratchpad

    @scratchpad.setter
    def scratchpad(self, entries: Mapping[str, Any]) -> None:
        if entries is not self._scratchpad:
            wanted = dict(entries)
            for key in [key for key in self._scratchpad if key not in wanted]:
                del self._scratchpad[key]
            self._scratchpad.update(wanted)

    @property
    def unsaved(self) -> bool:
        """Whether the next save has anything to keep."""
        stage = Stage(self._store.objects)
        try:
            return self._head is None or not self._equals_head(self._content(stage))
        finally:
            stage.drop()

    def __repr__(self) -> str:
        return f"<Session {self._name} at turn {self.turn}>"

    # --- saving -----------------------------------------------------------------------------------

    def save(
        self, label: str | None = None, *, on_conflict: Literal["raise", "fork"] = "raise"
    ) -> Snapshot:
        """Keep the present state as a new turn; durable when it returns.

        A save that would repeat HEAD (same content, and the same or no label) writes nothing and
        returns HEAD. When another writer has moved the session since, RefMoved is raised and
        everything stays as it is in memory; with ``on_conflict="fork"`` the turn is kept in a new
        session ``NAME+1`` (or +2, ...) instead, which this object then stands for.
        """
        if on_conflict not in ("raise", "fork"):
            raise InvalidInput(f"on_conflict is 'raise' or 'fork', not {on_conflict!r}")
        stage = Stage(self._store.objects)
        try:
            content = self._content(stage)
            head = self._head
            if head is not None and self._equals_head(content):
                if label is None or label == head.label:
                    return self._unless_moved(head, on_conflict)
            return self._commit(stage, content, label or "", on_conflict)
        finally:
            stage.drop()

    def _content(self, stage: Stage) -> dict[str, Any]:
        meta = values.encode(self.meta, path="meta", allow_bytes=True) if self.meta else b""
        return {
            "history": self._history.stage(stage),
            "scratchpad": self._scratchpad.stage(stage),
            "meta": meta,
        }

    def _equals_head(self, content: dict[str, Any]) -> bool:
        assert self._head is not None
        record = self._head.record
        return (
            content["history"] == record.history
            and content["scratchpad"] == record.scratchpad
            and content["meta"] == record.meta
        )

    def _unless_moved(self, head: Snapshot, on_conflict: str) -> Snapshot:
        tip = refs.live(self._store.engine, self._ref)
        actual = tip.new if tip else None
        if actual != head.raw_id and on_conflict == "raise":
            raise RefMoved(self._name, head.raw_id, actual)
        return head

    def _commit(
        self, stage: Stage, content: dict[str, Any], label: str, on_conflict: str
    ) -> Snapshot:
        time = self._store.clock()
        parent = self._head.raw_id if self._head else None
        snapshot_id, record = self._store.objects.snapshots.create(
            parent, stage.put_snapshot, time=time, label=label, **content
        )
        update = Update(self._ref, snapshot_id, parent, "save", time)
        try:
            stage.commit(update)
        except RefMoved as moved:
            if on_conflict == "raise":
                raise RefMoved(self._name, moved.expected, moved.actual) from None
            return self._save_beside(label)
        self._stand_on(Snapshot(self._store.objects, snapshot_id, record))
        assert self._head is not None
        return self._head

    def _save_beside(self, label: str) -> Snapshot:
        """Keep this object's turn in a new session beside the one that another writer moved."""
        stage = Stage(self._store.objects)
        content = self._content(stage)
        time = self._store.clock()
        parent = self._head.raw_id if self._head else None
        snapshot_id, record = self._store.objects.snapshots.create(
            parent, stage.put_snapshot, time=time, label=label, **content
        )
        info = {"forked_from": parent} if parent else {}
        staged = list(self._store.objects.staged.values())
        for name in self._store.free_names(self._name):
            update = Update(refs.SESSIONS + name, snapshot_id, None, "fork", time, info)
            try:
                stage.commit(update)
            except RefMoved:  # that name was taken just now: the next one may be free
                stage.extend(staged)
                continue
            self._name, self._ref = name, refs.SESSIONS + name
            break
        self._stand_on(Snapshot(self._store.objects, snapshot_id, record))
        assert self._head is not None
        return self._head

    # --- going back and forth -----------------------------------------------------------------------

    def reload(self) -> None:
        """Stand on the session's HEAD as it is in the store now; unsaved changes are dropped."""
        tip = refs.live(self._store.engine, self._ref)
        head = tip.new if tip else None
        self._stand_on(self._store.snapshot(head) if head else None)

    def _stand_on(self, head: Snapshot | None) -> None:
        self._head = head
        self._history.reset(head.record.history if head else None)
        self._scratchpad.reset(head.record.scratchpad if head else None)
        if head is None or head.record.meta:
            self.meta = dict(head.meta) if head else {}
        elif self.meta:
            self.meta = {}

    def rewind(self, to: int | str | Snapshot, *, force: bool = False) -> Snapshot:
        """Move HEAD to an earlier turn, a snapshot or a revision. Nothing is lost: see undo.

        Raises NotFound; Refused when there are unsaved changes, unless forced.
        """
        target = self.at(to)
        self._refuse_unsaved(force)
        self._move(target.raw_id, "rewind", {"turn": target.turn})
        self._stand_on(target)
        return target

    def at(self, turn: int | str | Snapshot) -> Snapshot:
        """A turn of this session's line, or any turn by revision."""
        if isinstance(turn, Snapshot):
            return turn
        if isinstance(turn, str):
            return self._store.resolve(turn, current=self._name)
        if self._head is None or not 1 <= turn <= self.turn:
            raise NotFound(
                f"{self._name} has no turn {turn}; its line has "
                + (f"turns 1 to {self.turn}" if self.turn else "no turns yet")
            )
        return self._store.snapshot(
            self._store.objects.snapshots.at_turn(self._head.raw_id, turn)
        )

    def _move(self, to: bytes, op: str, info: Mapping[str, Any]) -> Move | None:
        expect = self._head.raw_id if self._head else None
        update = Update(self._ref, to, expect, op, self._store.clock(), info)
        try:
            return self._store.engine.commit([], update)
        except RefMoved as moved:
            raise RefMoved(self._name, moved.expected, moved.actual) from None

    def _refuse_unsaved(self, force: bool) -> None:
        if not force and (self._history.changed or self._scratchpad.changed) and self.unsaved:
            raise Refused(
                f"{self._name} has changes that are not saved",
                hint="save() them first, or pass force=True to drop them",
            )

    def undo(self, steps: int = 1, *, force: bool = False) -> Snapshot | None:
        """Take back the last moves of HEAD: saves, rewinds, forks. Raises NothingToDo."""
        return self._step(self._store.undo, steps, force)

    def redo(self, steps: int = 1, *, force: bool = False) -> Snapshot | None:
        """Go forth again over what undo took back. Raises NothingToDo."""
        return self._step(self._store.redo, steps, force)

    def _step(self, step: Any, steps: int, force: bool) -> Snapshot | None:
        self._refuse_unsaved(force)
        for _ in range(steps):
            step(self._name)
        self.reload()
        return self._head

    def fork(self, name: str, at: int | str | Snapshot | None = None) -> Session:
        """A new session that starts from a turn of this one and shares its history by hash."""
        source = self._head if at is None else self.at(at)
        if source is None:
            raise NotFound(f"{self._name} has no turn to fork from yet", hint="save() it first")
        return self._store.fork(source, name)

    def log(self) -> Line:
        """The turns of this session's line, newest first."""
        return Line(self._store.objects, self._head.raw_id if self._head else None)

    # --- tool pairs ---------------------------------------------------------------------------------

    @property
    def pending_tool_calls(self) -> list[dict[str, Any]]:
        """Calls that have no result yet: id, name, and index of the message."""
        return [asdict(call) for call in pairs.pending(self._history)]

    def repair(self, how: Literal["drop", "answer"]) -> int:
        """Drop the pending calls, or answer them as interrupted; the number there was."""
        waiting = len(pairs.pending(self._history))
        if waiting:
            start, messages = pairs.repair(self._history, how)
            self._history[start:] = messages
        return waiting

    def trim(self, keep: int) -> int:
        """Keep the last messages, and as many more as it takes to cut no tool pair.

        Returns how many were removed. The turns before stay rewindable.
        """
        border = self._border(keep)
        del self._history[:border]
        return border

    def compact(self, summary: str | dict[str, Any], keep: int = 0) -> int:
        """As trim, with a summary message put in front; returns how many messages it replaces."""
        border = self._border(keep)
        message = {"role": "user", "content": summary} if isinstance(summary, str) else summary
        self._history[:border] = [message]
        return border

    def _border(self, keep: int) -> int:
        if keep < 0:
            raise InvalidInput(f"cannot keep {keep} messages")
        length = len(self._history)
        return pairs.border_before(length, self._history.__getitem__, max(0, length - keep))
