"""A session: its history and scratchpad in memory, and the turns that were saved of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from snapstore import arguments, pairs, refs, trimming, values
from snapstore.engine import Move, Update
from snapstore.errors import (
    InvalidInput,
    NotFound,
    ObjectMissing,
    RefMoved,
    Refused,
    UnsupportedValue,
)
from snapstore.history import History
from snapstore.objects import Stage
from snapstore.saving import Content, OnConflict, check_save, commit_turn, no_way_on
from snapstore.scratchpad import Scratchpad
from snapstore.snapshot import Line, Snapshot
from snapstore.standing import Standing

if TYPE_CHECKING:
    from snapstore.store import Store
    from snapstore.worktree.binding import Binding
    from snapstore.worktree.restore import Restored
    from snapstore.worktree.treediff import FilesDiff

Files = tuple[bytes | None, str, bool]
"""Root of the tree, the directory that it was captured from, whether something is missing."""


class Session:
    """A name, what it points at, and the changes that the next save will keep.

    An object for one thread at a time. Two objects of the same session, in one process or in
    two, are two writers: the second to save gets RefMoved and loses nothing.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._ref = refs.SESSIONS + name
        self._standing = Standing(store.objects)
        self._history, self._scratchpad = self._standing.history, self._standing.scratchpad
        self._binding: Binding | None = None
        self.restored: Restored | None = None
        """What the last rewind, restore, undo or redo did to files; None when it did not."""
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
            self._scratchpad.assign(entries)

    @property
    def worktree(self) -> Path | None:
        """The directory whose files each save captures: the one that was named, else the one that
        HEAD remembers; None for none. Setting it to None ends that."""
        return self._bound.root(self._head.record if self._head else None)

    @worktree.setter
    def worktree(self, path: str | Path | None) -> None:
        self.bind(path)

    def bind(
        self, path: str | Path | None, *, force: bool = False, home: Path | None = None
    ) -> None:
        """Capture the files of this directory with each save from now on.

        Raises NotFound, and Refused for a home directory, a whole disk and the like unless forced;
        home is what the user's environment calls home. Force also lifts the limits of a capture.
        """
        self._bound.name(path, force=force, home=home)

    @property
    def _bound(self) -> Binding:
        if self._binding is None:
            from snapstore.worktree.binding import Binding

            self._binding = Binding(self._store)
        return self._binding

    def files_diff(self) -> FilesDiff | None:
        """How the files in the directory differ from those of HEAD: what HEAD has stands left.

        None when HEAD holds no files, or the directory is not there. Nothing is written.
        """
        return self._bound.diff(self._head.record if self._head else None)

    @property
    def unsaved(self) -> bool:
        """Whether the next save has anything to keep but files; the first save always has."""
        return self._head is None or self._changed

    @property
    def _changed(self) -> bool:
        saved = self._head.record.meta if self._head else b""
        return self._history.changed or self._scratchpad.changed or self._encoded_meta() != saved

    def _encoded_meta(self) -> bytes:
        if not isinstance(self.meta, dict):
            raise UnsupportedValue("meta", f"is a {type(self.meta).__name__}, not a dict")
        return values.encode(self.meta, path="meta", allow_bytes=True) if self.meta else b""

    def __repr__(self) -> str:
        return f"<Session {self._name} at turn {self.turn}>"

    # --- saving -----------------------------------------------------------------------------------

    def save(self, label: str | None = None, *, on_conflict: OnConflict = "raise") -> Snapshot:
        """Keep the present state as a new turn; durable when it returns.

        A save that would repeat HEAD (same content, and the same or no label) writes nothing and
        returns HEAD. When another writer has moved the session since, RefMoved is raised and
        everything stays as it is in memory; with ``on_conflict="fork"`` the turn is kept in a new
        session ``NAME+1`` (or +2, ...) instead, which this object then stands for. It is no
        conflict when the other writer has saved the very same turn.

        Raises UnsupportedValue for meta that cannot be kept, InvalidInput for other arguments.
        """
        check_save(label, on_conflict)
        self._settle()
        return self._keep(label, on_conflict, completes=False)

    def complete(self, label: str | None = None, *, on_conflict: OnConflict = "raise") -> Snapshot:
        """Keep the present state as the turn that HEAD began: the same number, the same parent.

        For a turn that comes in two steps, of which the first must not be lost: a question, saved
        before it is asked, and its answer. Undo takes back both steps at once; the first one alone
        is ``NAME@{1}``. Without a label the turn keeps the one it has. Else as ``save``.

        Raises NotFound when there is no turn to complete.
        """
        check_save(label, on_conflict)
        self._settle()
        if self._head is None:
            raise NotFound(f"{self._name} has no turn to complete", hint="save() it first")
        return self._keep(label, on_conflict, completes=True)

    def _capture(self, stage: Stage) -> Files:
        """Tree, directory and whether something is missing; a session without files has none."""
        record = self._head.record if self._head else None
        if self._binding is None and not (record and record.worktree):
            return None, "", False
        return self._bound.capture(record, stage)

    def _settle(self) -> None:
        if self._standing.attempt is not None:
            self._standing.settle(self._actual)

    def _is_unmoved(self) -> bool:
        """Whether HEAD is where this object saw it last; durably so."""
        # HEAD may come from a process that was killed before its sync. Committing nothing still
        # makes all that is there durable, which is what save promises of the turn it returns.
        self._store.engine.commit([])
        return self._actual == self._expected

    def _require_unmoved(self) -> None:
        if self._head is not None and not self._is_unmoved():
            raise RefMoved(self._name, self._expected, self._actual)

    @property
    def _head(self) -> Snapshot | None:
        return self._standing.head

    @property
    def _expected(self) -> bytes | None:
        return self._head.raw_id if self._head else None

    @property
    def _actual(self) -> bytes | None:
        tip = refs.live(self._store.engine, self._ref)
        return tip.new if tip else None

    def _keep(self, label: str | None, on_conflict: OnConflict, *, completes: bool) -> Snapshot:
        head = self._head
        with Stage(self._store.objects) as stage:
            files = self._capture(stage)
            if head is not None and label in (None, head.label) and not self._changed:
                same = files == (head.record.files, head.record.worktree, head.record.partial)
                if same and (self._is_unmoved() or on_conflict == "fork"):
                    return head
            if label is None:
                label = head.label if head is not None and completes else ""
            history, scratchpad = self._staged(stage, on_conflict)
            content = Content(history, scratchpad, *files, self._encoded_meta())
            where = self._store, stage, self._name, self._standing
            name, saved = commit_turn(*where, content, label, on_conflict, completes)
        self._name, self._ref = name, refs.SESSIONS + name
        self._standing.move(saved)
        if self._binding is not None:
            self._binding.saved()
        return saved

    def _staged(self, stage: Stage, on_conflict: OnConflict) -> tuple[bytes | None, bytes | None]:
        try:
            return self._history.stage(stage), self._scratchpad.stage(stage)
        except ObjectMissing:
            # By a purge: what this stands on is gone.
            if self._expected != self._actual:
                raise no_way_on(self._name, self._expected, self._actual, on_conflict) from None
            raise

    # --- going back and forth ---------------------------------------------------------------------

    def reload(self) -> None:
        """Stand on the session's HEAD as it is in the store now; unsaved changes are dropped."""
        head = self._actual
        self._show(self._store.snapshot(head) if head else None)

    def _show(self, head: Snapshot | None) -> None:
        self._standing.move(head)
        self.meta = dict(head.meta) if head else {}

    def rewind(
        self, to: int | str | Snapshot, *, files: bool = False, force: bool = False
    ) -> Snapshot:
        """Move HEAD to an earlier turn, a snapshot or a revision. Nothing is lost: see undo.

        To where it stands is no move: redo goes on. With files=True the files go back too, in the
        directory that the turn was captured from, after a capture of what is there; see restored.

        Raises NotFound; Refused when there are unsaved changes, files in the way that could not be
        captured, or a directory that is gone or that this store never captured, unless forced.
        """
        self._settle()
        target = self.at(to)
        self._refuse_unsaved(force)
        self.restored = None
        stays = target == self._head
        if files or stays:
            self._require_unmoved()
        if files:
            from snapstore.worktree import moves

            back = moves.restore_files if stays else moves.rewind
            self.restored = back(self._store, self._name, target, force=force)
        elif not stays:
            self._move(target.raw_id, "rewind", {"turn": target.turn})
        self._show(target)
        return target

    def at(self, turn: int | str | Snapshot) -> Snapshot:
        """A turn of this session's line, or any turn by revision."""
        if isinstance(turn, Snapshot):
            return self._store.snapshot(turn.raw_id)
        if isinstance(turn, str):
            return self._store.resolve(turn, current=self._name)
        turn = arguments.whole(turn, "a turn")
        if self._head is None or not 1 <= turn <= self.turn:
            raise NotFound(
                f"{self._name} has no turn {turn}; its line has "
                + (f"turns 1 to {self.turn}" if self.turn else "no turns yet")
            )
        return self._store.snapshot(self._store.objects.snapshots.at_turn(self._head.raw_id, turn))

    def _move(self, to: bytes, op: str, info: Mapping[str, Any]) -> Move | None:
        update = Update(self._ref, to, self._expected, op, self._store.clock(), info)
        try:
            return self._store.engine.commit([], update)
        except RefMoved as moved:
            raise RefMoved(self._name, moved.expected, moved.actual) from None

    def _refuse_unsaved(self, force: bool) -> None:
        if not force and self._changed:
            raise Refused(
                f"{self._name} has changes that are not saved",
                hint="save() them first, or pass force=True to drop them",
            )

    def restore(
        self, source: int | str | Snapshot, paths: Sequence[str] = (), *, force: bool = False
    ) -> Restored:
        """Bring files of a turn back, all or those at these paths; HEAD stays.

        What is there is captured first, and undo brings that back. Raises NotFound, Refused.
        """
        from snapstore.worktree import moves

        self.restored = moves.restore_files(
            self._store, self._name, self.at(source), paths, force=force
        )
        return self.restored

    def undo(self, steps: int = 1, *, force: bool = False) -> Snapshot | None:
        """Take back the last moves of HEAD: saves, rewinds, forks, and what they did to files.

        Raises NothingToDo, and what rewind raises.
        """
        return self._step(self._store.step_back, steps, force)

    def redo(self, steps: int = 1, *, force: bool = False) -> Snapshot | None:
        """Go forth again over what undo took back. Raises NothingToDo."""
        return self._step(self._store.step_forth, steps, force)

    def _step(self, step: Any, steps: int, force: bool) -> Snapshot | None:
        if arguments.whole(steps, "the number of steps") < 1:
            raise InvalidInput(f"cannot go {steps} steps")
        self._settle()
        self._refuse_unsaved(force)
        if self._actual is not None:
            self._require_unmoved()
        self.restored = None
        try:
            for _ in range(steps):
                _, restored = step(self._name, force=force)
                self.restored = self.restored.and_then(restored) if self.restored else restored
        finally:
            self.reload()
        return self._head

    def fork(self, name: str, at: int | str | Snapshot | None = None) -> Session:
        """A new session that starts from a turn of this one and shares its history by hash.

        Raises Refused when no turn is named and HEAD is not all there is: changes are not saved.
        """
        self._settle()
        source = self._head if at is None else self.at(at)
        if at is None and source is not None and self._changed:
            raise Refused(
                f"{self._name} has changes that are not saved, and a fork would not have them",
                hint=f"save() them first, or name the turn, as in at={self.turn}",
            )
        if source is None:
            raise NotFound(f"{self._name} has no turn to fork from yet", hint="save() it first")
        return self._store.fork(source, name)

    def log(self) -> Line:
        """The turns of this session's line, newest first."""
        return Line(self._store.objects, self._expected)

    # --- tool pairs -------------------------------------------------------------------------------

    @property
    def pending_tool_calls(self) -> list[dict[str, Any]]:
        """Calls that have no result yet: id, name, and index of the message."""
        return [asdict(call) for call in pairs.pending(self._history)]

    def repair(self, how: Literal["drop", "answer"]) -> int:
        """Drop the pending calls, or answer them as interrupted; the number there was.

        ``drop`` also takes out the results that have no call, and counts them.
        """
        return trimming.repair(self._history, how)

    def trim(self, keep: int) -> int:
        """Keep the last messages, and as many more as it takes to cut no tool pair.

        Returns how many were removed. The turns before stay rewindable.
        """
        return trimming.trim(self._history, keep)

    def compact(self, summary: str | dict[str, Any], keep: int = 0) -> int:
        """As trim, with a summary message put in front; returns how many messages it replaces."""
        return trimming.compact(self._history, summary, keep)
