"""Messages, in order, become turns: where a turn starts, what it is called, when it was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from snapstore.formats.recall import told
from snapstore.formats.transcript import Turn
from snapstore.times import moment

LABEL_LENGTH = 72
"""Most characters in a turn's label."""

COMPACTED = "compacted"
"""The label of a turn that goes on after a compaction without a new prompt."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TEXT_BLOCKS = ("text", "input_text", "output_text")
_ESCAPE_SEQUENCE = re.compile("\x1b\\[[0-9;?]*[ -/]*[@-~]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_COMMAND = re.compile("<command-(name|args)>(.*?)</command-\\1>", re.DOTALL)
_SHELL = re.compile("<bash-input>(.*?)</bash-input>", re.DOTALL)
_NOTES = re.compile(r"(?:\s*<(ide_\w+|system-reminder)>.*?</\1>)+", re.DOTALL)
_EDITOR, _REQUEST = "# Context from my IDE setup:", "## My request for Codex:"


@dataclass(slots=True)
class _Draft:
    """A turn that is still going on."""

    messages: list[Any] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    time: int | None = None
    replaces: bool = False
    worked: bool = False
    """Whether more than a compaction has happened in it."""
    preamble: int | None = None
    """How many messages stand before its prompt, once it has one."""
    rows: list[int] = field(default_factory=list)
    preamble_rows: int = 0
    """How many of its rows are those of its preamble."""

    def turn(self) -> Turn:
        label = COMPACTED if self.replaces and self.preamble is None else self.label
        rows = tuple(sorted(self.rows))
        return Turn(label, self.time, told(self.messages), self.replaces, self.meta, rows)


class TurnBuilder:
    """Gathers the messages of one line into turns.

    What comes before the first prompt belongs to the first turn, and what a harness injects before
    a later prompt to the turn of that prompt: so a turn that has ended stays as it is when the
    session goes on. A compaction ends a turn, which so keeps what was replaced; the prompt that
    follows it at once belongs to the turn that the compaction began, any other work makes that a
    turn of its own.
    """

    def __init__(self) -> None:
        self._done: list[_Draft] = []
        self._open = _Draft()
        self._held: list[tuple[Any, int | None, Sequence[int]]] = []  # injected since the last work

    def prompt(self, label: str, rows: Sequence[int] = ()) -> None:
        """A turn starts here; its prompt is added next. Rows are those that tell only this."""
        if self._open.preamble is not None or (self._open.replaces and self._open.worked):
            self._close()
        self._release()
        self._open.label = label
        self._open.preamble = len(self._open.messages)
        self._open.preamble_rows = len(self._open.rows)
        self._open.rows += rows

    def add(self, message: Any, time: int | None = None, rows: Sequence[int] = ()) -> None:
        """A prompt, a reply or a result, which these rows of the file tell."""
        if self._held:
            self._release()
        draft = self._open
        draft.messages.append(message)
        draft.rows += rows
        draft.worked = True
        if time is not None:
            draft.time = time

    def inject(self, message: Any, time: int | None = None, rows: Sequence[int] = ()) -> None:
        """A message that the harness put in on its own."""
        self._held.append((message, time, rows))

    def compact(
        self, history: Iterable[Any], time: int | None = None, rows: Sequence[int] = ()
    ) -> None:
        """From here on the history is this one."""
        self._flush()
        self._open = _Draft(messages=list(history), time=time, replaces=True, rows=list(rows))

    def note(self, key: str, value: Any) -> None:
        """A fact of the present turn."""
        self._open.meta[key] = value

    def count(self, key: str, numbers: Mapping[str, Any]) -> None:
        """Add the whole numbers among these to those counted under key in the present turn."""
        total = self._open.meta.setdefault(key, {})
        for name, number in numbers.items():
            if type(number) is int:
                total[name] = total.get(name, 0) + number

    def history(self) -> list[Any]:
        """The history as it stands."""
        drafts = [*self._done, self._open]
        start = max((i for i, draft in enumerate(drafts) if draft.replaces), default=0)
        history = [message for draft in drafts[start:] for message in draft.messages]
        return history + [message for message, _, _ in self._held]

    def roll_back(self, prompts: int) -> tuple[Turn, ...]:
        """Drop the last prompts and all after them; returns the turns as they were with them.

        What stood before a dropped prompt in its turn stays.
        """
        self._flush()
        before = tuple(draft.turn() for draft in self._done)
        while self._done and prompts > 0:
            draft = self._done.pop()
            if draft.preamble is not None:
                prompts -= 1
                kept, rows = draft.messages[: draft.preamble], draft.rows[: draft.preamble_rows]
                self._open = _Draft(messages=kept, replaces=draft.replaces, rows=rows)
        return before

    def turns(self) -> tuple[Turn, ...]:
        """All turns; one that is empty when nothing was added."""
        self._flush()
        if not self._done:
            self._close()
        return tuple(draft.turn() for draft in self._done)

    def _release(self) -> None:
        for message, time, rows in self._held:
            self._open.messages.append(message)
            self._open.rows += rows
            self._open.time = self._open.time if time is None else time
        self._held = []

    def _flush(self) -> None:
        self._release()
        if self._open.messages or self._open.preamble is not None or self._open.replaces:
            self._close()

    def _close(self) -> None:
        self._done.append(self._open)
        self._open = _Draft()


def is_prompt(content: Any) -> bool:
    """Whether the content of a user's message is a prompt, not only the results of tools."""
    if isinstance(content, list):
        return any(
            not isinstance(block, dict) or block.get("type") != "tool_result" for block in content
        )
    return isinstance(content, str)


def prompt_text(content: Any) -> str:
    """The text of a message's content: its text blocks, or the kinds of its other blocks."""
    if isinstance(content, str):
        return content
    listed = content if isinstance(content, list) else []
    blocks = [block for block in listed if isinstance(block, dict)]
    texts = [block.get("text") for block in blocks if block.get("type") in _TEXT_BLOCKS]
    text = "\n".join(text for text in texts if isinstance(text, str))
    if text.strip():
        return text
    kinds = [block.get("type") for block in blocks if block.get("type") not in _TEXT_BLOCKS]
    return " ".join(f"[{kind}]" for kind in kinds if isinstance(kind, str))


def label_of(text: str) -> str:
    """The first line of a prompt that says something, at most LABEL_LENGTH characters of it.

    It holds no control characters, no lone surrogates, and is cut between code points. Where a
    harness or an editor has wrapped what was typed, or put its notes before it, it is what was
    typed.
    """
    for line in _typed(text)[: 32 * LABEL_LENGTH].splitlines():
        shown = (line if line.isprintable() else _printable(line)).strip()
        if shown:
            return shown if len(shown) <= LABEL_LENGTH else shown[: LABEL_LENGTH - 1] + "…"
    return ""


def _typed(text: str) -> str:
    notes = _NOTES.match(text)
    text = (text[notes.end() :].lstrip() if notes else "") or text.lstrip()
    if text.startswith(_EDITOR):
        return text.partition(_REQUEST)[2].lstrip() or text
    if text.startswith("<command-"):
        typed = dict(_COMMAND.findall(text[: 32 * LABEL_LENGTH]))
        return f"{typed.get('name', '')} {typed.get('args', '')}".lstrip() or text
    shell = _SHELL.match(text)
    return f"! {shell[1].lstrip()}" if shell else text


def _printable(line: str) -> str:
    plain = _CONTROL.sub(" ", _ESCAPE_SEQUENCE.sub("", line))
    return _SURROGATE.sub("\ufffd", plain)


def time_of(text: Any) -> int | None:
    """Microseconds since the epoch of an ISO 8601 time (UTC where it names no zone), or None."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None


def iso(time: int) -> str:
    """A time as harnesses write it: ISO 8601 in UTC, to the millisecond."""
    return moment(time).isoformat(timespec="milliseconds").replace("+00:00", "Z")
