"""Plain messages: an array, an object that holds one, JSON Lines of either, or trajectories.

A message is any JSON value; nothing is dropped and the order is kept. What is taken apart:

=====================================  ===================================================
``[message, ...]``                     a session
``{"messages": [...]}``                a session
``{"values": {"messages": [...]}}``    a session: the state of a LangGraph thread
``[{"traj": [...]}, ...]``             a session each: the trajectories of a benchmark run
JSON Lines of the above                a session for each line
any other value on a line              a message; together they are one session
=====================================  ===================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import PurePath
from typing import Any

from snapstore import names
from snapstore.formats.jsonl import Rows
from snapstore.formats.transcript import Line, Session, Transcript
from snapstore.formats.turns import TurnBuilder, is_prompt, label_of, prompt_text, time_of

_INJECTED_ROLES = ("system", "developer")


def read(rows: Rows, name: str = "") -> Transcript:
    """Read rows as messages; name is the file's, for sessions that have no better name.

    A turn starts at each message of a person. Sessions of a file that holds several are called
    after the file and numbered. Never raises; a file without messages is one empty session.
    """
    loose: dict[int, Any] = {}
    found: list[tuple[list[Any], str]] = []
    for place, row in enumerate(rows.rows):
        held = list(conversations(row.value))
        found.extend(held)
        if not held:
            loose[place] = row.value
    if loose or not found:
        found.insert(0, (list(loose.values()), ""))
    stem = names.slug(PurePath(name).stem) or "session"
    told = list(loose) if len(found) == 1 else []
    lines = [_line(messages, title, told) for messages, title in found]
    if len(lines) == 1:
        hints = [_hint(lines[0]) or stem]
    else:
        hints = [f"{stem}-{n}" for n in range(1, len(lines) + 1)]
    sessions = tuple(
        Session(Line(hint, line.turns, line.meta)) for hint, line in zip(hints, lines, strict=True)
    )
    spoken = bytearray(len(rows.rows))
    for place in told:
        spoken[place] = 1
    return Transcript("messages", sessions, len(rows.rows), rows.warnings, rows, bytes(spoken))


def conversations(value: Any) -> Iterator[tuple[list[Any], str]]:
    """The lists of messages in a value, each with its title or ""; none when it holds no list."""
    if isinstance(value, list):
        trajectories = [entry for entry in value if _trajectory(entry) is not None]
        if trajectories and len(trajectories) == len(value):
            for entry in value:
                yield entry["traj"], ""
        else:
            yield value, ""
    elif isinstance(value, dict):
        state = value.get("values")
        holder = state if isinstance(state, dict) else value
        messages = holder.get("messages")
        if isinstance(messages, list) and "role" not in value:
            title = holder.get("title")
            yield messages, title if isinstance(title, str) else ""
        elif (trajectory := _trajectory(value)) is not None:
            yield trajectory, ""


def starts_turn(message: Any) -> bool:
    """Whether a message is a person's and more than the results of tools."""
    return (
        isinstance(message, dict)
        and _role(message) in ("user", "human")
        and is_prompt(message.get("content"))
    )


def _trajectory(value: Any) -> list[Any] | None:
    trajectory = value.get("traj") if isinstance(value, dict) else None
    return trajectory if isinstance(trajectory, list) else None


def _role(message: dict[str, Any]) -> Any:
    return message.get("role") or message.get("type")


def _line(messages: list[Any], title: str, rows: Sequence[int]) -> Line:
    builder = TurnBuilder()
    for message, told in zip_longest(messages, ([row] for row in rows), fillvalue=()):
        if not isinstance(message, dict):
            builder.add(message, rows=told)
            continue
        time = time_of(message.get("timestamp") or message.get("created_at"))
        if starts_turn(message):
            builder.prompt(label_of(prompt_text(message.get("content"))))
        if _role(message) in _INJECTED_ROLES:
            builder.inject(message, time, told)
        else:
            builder.add(message, time, told)
    return Line("", builder.turns(), {"title": title} if title else {})


def _hint(line: Line) -> str:
    label = next((turn.label for turn in line.turns if turn.label), "")
    return names.slug(line.meta.get("title", "")) or names.slug(label)
