"""A store in plain Python: every turn is a deep copy, every name two stacks of where it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Op = tuple[str, ...]
"""What was done: its name, and of a rename the other name."""


@dataclass(frozen=True, slots=True)
class PlainTurn:
    """What a turn held when it was saved."""

    parent: str | None
    number: int
    history: list[Any]
    scratchpad: dict[str, Any]
    label: str


@dataclass
class PlainName:
    """A name, where it points, and the two stacks that every editor keeps."""

    now: str | None = None
    undoable: list[tuple[Op, str | None]] = field(default_factory=list)
    redoable: list[tuple[Op, str | None]] = field(default_factory=list)

    @property
    def stands_on(self) -> Op:
        """What was done to come here."""
        return self.undoable[-1][0] if self.undoable else ("",)

    @property
    def undone(self) -> Op:
        """What was taken back last, to come here."""
        return self.redoable[-1][0] if self.redoable else ("",)

    def move(self, op: Op, to: str | None) -> None:
        """Go on to somewhere."""
        self.undoable.append((op, self.now))
        self.redoable.clear()
        self.now = to

    def back(self) -> Op:
        """Take the last step back."""
        op, before = self.undoable.pop()
        self.redoable.append((op, self.now))
        self.now = before
        return op

    def forth(self) -> Op:
        """Take it again."""
        op, after = self.redoable.pop()
        self.undoable.append((op, self.now))
        self.now = after
        return op


@dataclass
class PlainStore:
    """All turns that were ever made, and all names that ever were."""

    turns: dict[str, PlainTurn] = field(default_factory=dict)
    names: dict[str, PlainName] = field(default_factory=dict)

    def live(self) -> dict[str, str]:
        """The names that point somewhere, and where."""
        return {name: ref.now for name, ref in sorted(self.names.items()) if ref.now}

    def head(self, name: str) -> str | None:
        """Where a name points; None when there is no such name."""
        return self.names[name].now if name in self.names else None

    def line(self, head: str | None) -> Iterator[str]:
        """A turn and those before it, newest first."""
        while head is not None:
            yield head
            head = self.turns[head].parent

    def move(self, name: str, op: Op, to: str | None) -> None:
        """Move a name, which may be new."""
        self.names.setdefault(name, PlainName()).move(op, to)

    def rename(self, old: str, new: str) -> None:
        """Give what a name points at another name."""
        self.move(new, ("named from", old), self.names[old].now)
        self.move(old, ("named to", new), None)

    def undo(self, name: str) -> None:
        """Take back the last move of a name, a rename with its other half."""
        done = self.names[name].stands_on
        if done[0] == "named to" and self.names[done[1]].stands_on == ("named from", name):
            name = done[1]
        op = self.names[name].back()
        if op[0] == "named from":
            old = self.names[op[1]]
            if old.now is None and old.stands_on == ("named to", name):
                old.back()

    def redo(self, name: str) -> None:
        """Go forth again, with the other half of a rename."""
        undone = self.names[name].undone
        if undone[0] == "named to" and self.names[undone[1]].undone == ("named from", name):
            name = undone[1]
        op = self.names[name].forth()
        if op[0] == "named from":
            old = self.names[op[1]]
            if old.redoable and old.redoable[-1][0] == ("named to", name):
                old.forth()

    def free_name(self, name: str) -> str:
        """The first of name+1, name+2, ... that never was."""
        return next(f"{name}+{n}" for n in count(1) if f"{name}+{n}" not in self.names)
