"""Codex rollouts (``rollout-<time>-<thread id>.jsonl``): response items as a history, in turns.

The history is the payloads of the ``response_item`` rows in file order, which is what the model is
sent. Event rows only tell where things happen: which user item is a prompt, and that the last
turns were rolled back, which makes what they held a branch. Items that the harness injects as if
the user had said them (context in tags, instructions of a project) start no turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any

from snapstore import names
from snapstore.formats.jsonl import Damage, Row, Rows
from snapstore.formats.transcript import Line, Session, Transcript, Turn
from snapstore.formats.turns import TurnBuilder, label_of, prompt_text, time_of

_INJECTED = re.compile(r"\s*(<[A-Za-z][\w-]*[\s>]|# AGENTS\.md instructions)")
_THREAD_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def read(rows: Rows, name: str = "", before: Sequence[Row] = ()) -> Transcript:
    """Read the rows of a rollout; name is the file's, for a session that has no better name.

    Before are rows of another file that it goes on from. One session; what was rolled back are its
    branches (``branch-1``, ...). Never raises.
    """
    reader = _Reader(rows.rows, before)
    for row in before:
        reader.read(None, row)
    reader.begin()
    for place, row in enumerate(rows.rows):
        reader.read(place, row)
    turns = reader.builder.turns()
    label = next((turn.label for turn in turns if turn.label), "")
    stem = PurePath(name).stem
    if match := _THREAD_ID.search(stem):
        reader.facts.setdefault("session_id", match[0])
    candidates = (label, reader.facts.get("session_id") or "", stem)
    hint = next(filter(None, map(names.slug, candidates)), "session")
    branches = (
        Line(f"branch-{n}", dropped, reader.facts, reader.start)
        for n, dropped in enumerate(reader.dropped, 1)
    )
    session = Session(Line(hint, turns, reader.facts, reader.start), tuple(branches))
    notes = sorted((*rows.warnings, *reader.warnings), key=lambda warning: warning.offset)
    spoken = bytes(reader.spoken)
    return Transcript("codex", (session,), len(rows.rows), tuple(notes), rows, spoken)


class _Reader:
    """Takes the rows of a rollout one by one."""

    def __init__(self, rows: Sequence[Row], before: Sequence[Row]) -> None:
        self.builder = TurnBuilder()
        self.facts: dict[str, Any] = {}
        self.start: dict[str, Any] = {}
        self.dropped: list[tuple[Turn, ...]] = []
        self.warnings: list[Damage] = []
        self.spoken = bytearray(len(rows))
        self._item_texts = _item_texts((*before, *rows))
        self._event_texts = _event_texts((*before, *rows))
        self._has_base = bool(before)
        self._unconfirmed = False  # whether the last prompt was an item that no event names
        self._model: str | None = None
        self._ordinal: int | None = None
        self._first = True  # whether nothing has told what the session is, nor anything been said

    def begin(self) -> None:
        """The rows of the file itself begin: what others said the session is counts no more."""
        self.facts, self.start, self._first = {}, {}, True

    def read(self, place: int | None, row: Row) -> None:
        value = row.value
        if not isinstance(value, dict):
            return
        self._number(row, value.get("ordinal"))
        payload = value.get("payload")
        if not isinstance(payload, dict):
            return
        time = time_of(value.get("timestamp"))
        if time is not None:
            self.facts.setdefault("first_time", time)
            self.facts["last_time"] = time
        kind = value.get("type")
        if kind == "response_item":
            self._item(payload, time, self._speaks(place))
        elif kind == "event_msg":
            self._event(payload, place)
        elif kind == "compacted":
            history = _rebuilt(self.builder.history(), payload)
            self.builder.compact(history, time, self._speaks(place))
        elif kind == "session_meta":
            self._session(row, payload)
        elif kind == "turn_context":
            self._context(payload)

    def _speaks(self, place: int | None) -> list[int]:
        """The rows that tell what is told now, for the turn; none where they are elsewhere."""
        if place is None:
            return []
        self.spoken[place] = 1
        return [place]

    def _number(self, row: Row, ordinal: Any) -> None:
        if type(ordinal) is not int:
            return
        if self._ordinal is not None and ordinal != self._ordinal + 1:
            what = f"ordinal {ordinal} follows {self._ordinal}"
            self.warnings.append(Damage(row.line, row.offset, what, "read in the order of lines"))
        self._ordinal = ordinal

    def _item(self, item: dict[str, Any], time: int | None, rows: list[int]) -> None:
        self._first = False
        role = item.get("role")
        if role == "user":
            text = prompt_text(item.get("content")).strip()
            if text in self._event_texts or not is_injected(text):
                self._unconfirmed = text not in self._event_texts
                self.builder.prompt(label_of(text))
                self.builder.add(item, time, rows)
                return
        if role in ("user", "developer", "system"):
            self.builder.inject(item, time, rows)
            return
        self.builder.add(item, time, rows)
        if self._model is not None:
            self.builder.note("model", self._model)

    def _event(self, event: dict[str, Any], place: int | None) -> None:
        for text in _prompts_of(event):
            if text not in self._item_texts:
                if not self._unconfirmed:
                    self.builder.prompt(label_of(text), self._speaks(place))
                self._unconfirmed = False
        if event.get("type") == "thread_rolled_back":
            count = event.get("num_turns")
            before = self.builder.roll_back(count if type(count) is int else 1)
            if not any(branch[: len(before)] == before for branch in self.dropped):
                self.dropped.append(before)

    def _session(self, row: Row, meta: dict[str, Any]) -> None:
        git = meta.get("git")
        told = {
            "session_id": meta.get("id"),
            "cwd": meta.get("cwd"),
            "version": meta.get("cli_version"),
            "git_branch": git.get("branch") if isinstance(git, dict) else None,
        }
        for key, value in told.items():
            if isinstance(value, str) and value:
                self.facts.setdefault(key, value)
                if self._first:
                    self.start[key] = value
        self._first = False
        if isinstance(meta.get("history_base"), dict) and not self._has_base:
            what = f"it goes on from thread {meta.get('forked_from_id')}, which is another file"
            done = "only what follows is read"
            self.warnings.append(Damage(row.line, row.offset, what, done))

    def _context(self, context: dict[str, Any]) -> None:
        if isinstance(context.get("model"), str):
            self._model = self.facts["model"] = context["model"]
        if isinstance(context.get("cwd"), str):
            self.facts["cwd"] = context["cwd"]


def is_injected(text: str) -> bool:
    """Whether a user's item is what Codex puts in on its own: context in tags, instructions."""
    return _INJECTED.match(text) is not None


def _rebuilt(history: list[Any], compacted: dict[str, Any]) -> list[Any]:
    """The history after a compaction, as Codex rebuilds it.

    Newer rollouts hold it. Older ones hold only a summary: then it is what the user had said and
    the summary, in the user's name; replies, calls and results are gone.
    """
    replacement = compacted.get("replacement_history")
    if isinstance(replacement, list):
        return replacement
    said = [item for item in history if isinstance(item, dict) and item.get("role") == "user"]
    kept = [item for item in said if not is_injected(prompt_text(item.get("content")))]
    summary = compacted.get("message")
    if isinstance(summary, str) and summary:
        content = [{"type": "input_text", "text": summary}]
        kept.append({"type": "message", "role": "user", "content": content})
    return kept


def _payloads(rows: Iterable[Row], kind: str) -> Iterator[dict[str, Any]]:
    for row in rows:
        if isinstance(row.value, dict) and row.value.get("type") == kind:
            payload = row.value.get("payload")
            if isinstance(payload, dict):
                yield payload


def _item_texts(rows: Iterable[Row]) -> frozenset[str]:
    """All that user items say."""
    items = _payloads(rows, "response_item")
    said = (prompt_text(item.get("content")) for item in items if item.get("role") == "user")
    return frozenset(text.strip() for text in said)


def _event_texts(rows: Iterable[Row]) -> frozenset[str]:
    """All that events call a prompt."""
    events = _payloads(rows, "event_msg")
    return frozenset(text for event in events for text in _prompts_of(event))


def _prompts_of(event: dict[str, Any]) -> Iterator[str]:
    if event.get("type") == "user_message":
        message = event.get("message")
        if isinstance(message, str):
            yield message.strip()
    elif event.get("type") == "item_completed":
        item = event.get("item")
        if isinstance(item, dict) and item.get("type") == "UserMessage":
            yield prompt_text(item.get("content") or item.get("text")).strip()
