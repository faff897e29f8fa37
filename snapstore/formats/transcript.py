"""What reading any format gives: sessions, their lines of turns, and what each turn added.

A line is one way through a session from its beginning: the live one, or a branch that was rewound
away or ran beside it. A turn says which messages it added to the history, or, after a compaction,
that its messages replace the history; the turns before it then hold the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snapstore.formats.jsonl import NO_ROWS, Damage, Rows


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a line."""

    label: str
    time: int | None
    """When its last dated message was written: microseconds since the epoch, UTC."""
    messages: Sequence[Any]
    """What it added to the history or, where ``replaces``, the whole history after it."""
    replaces: bool = False
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Facts of this turn alone (``model``, ``usage``): the same however the session goes on."""
    rows: tuple[int, ...] = ()
    """Which rows of the file it was read from: those of its messages, and those of no message that
    lead from the turn before to them. None, where a row of the file holds more than one turn."""


@dataclass(frozen=True, slots=True)
class Line:
    """One way through a session. It has at least one turn, which may be empty."""

    name: str
    """A valid session name; of a branch, the part after the slash (``branch-1``)."""
    turns: tuple[Turn, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the whole line, where the format tells them: ``session_id``, ``cwd``,
    ``git_branch``, ``version``, ``model``, ``title``, ``first_time``, ``last_time``. As they are at
    its end: some change when the session goes on."""
    start: Mapping[str, Any] = field(default_factory=dict)
    """What the file says of ``session_id``, ``cwd``, ``git_branch`` and ``version`` where the line
    begins: the same however the session goes on."""

    def history(self) -> tuple[Any, ...]:
        """The messages at the end of the line."""
        start = max((i for i, turn in enumerate(self.turns) if turn.replaces), default=0)
        return tuple(message for turn in self.turns[start:] for message in turn.messages)


@dataclass(frozen=True, slots=True)
class Session:
    """A session: the line that goes on, and the branches kept beside it in the order they began."""

    live: Line
    branches: tuple[Line, ...] = ()

    def lines(self) -> Iterator[Line]:
        """The live line, then the branches."""
        yield self.live
        yield from self.branches


@dataclass(frozen=True, slots=True)
class Transcript:
    """A file of another program, read."""

    harness: str
    """``claude-code``, ``codex`` or ``messages``."""
    sessions: tuple[Session, ...]
    rows: int
    """Whole JSON values in the file."""
    warnings: tuple[Damage, ...]
    file: Rows = NO_ROWS
    """The file as it was read."""
    spoken: bytes = b""
    """For each row whether it carries a message, as a byte 1 or 0."""
