"""The history of a harness's session, as its transcript tells it at this moment.

Harnesses write their transcripts late. A Stop says what the model said last, so one that comes
before the file holds that can be told: it waits a little, reads again, and at last keeps what there
is and marks the move as ``lagging``. The next event brings the rest into the same turn.

A transcript that says nothing, or is none, moves nothing. One of another session than the event
names is imported into its own session, and gets no files of this one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snapstore import formats
from snapstore.errors import NotATranscript, RefMoved
from snapstore.formats.transcript import Transcript
from snapstore.formats.turns import prompt_text
from snapstore.integrations.hooks.events import TURN, Event
from snapstore.maintenance.redact import redact_text
from snapstore.store import Store
from snapstore.transfer.beside import agents_beside, files_beside
from snapstore.transfer.held import EARLY
from snapstore.transfer.imports import Imported, Saved, import_transcript, suffixed
from snapstore.transfer.redaction import without_secrets
from snapstore.worktree.binding import Files

PAUSES = (0.04,) * 5
"""Seconds to wait for a transcript that lags behind, before each reading again."""
LAGGING = "lagging"
"""What is noted with a move that a transcript led to which lacked the last reply."""

_ATTEMPTS = 8
_COMPARED = 200
"""So many characters tell whether a reply is there: harnesses trim what they tell to a hook."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A transcript as it was read."""

    transcript: Transcript
    lagging: bool


def read_transcript(
    event: Event, size: int | None = None, *, redact: bool = False
) -> Reading | None:
    """The transcript that an event names, or its first bytes; None for one that tells nothing yet.

    Waits for the reply that a Stop tells, if it tells one.
    """
    path, seen = Path(event.transcript), None
    reply = event.reply if event.name == TURN else ""  # an agent's reply is in another transcript
    reply = redact_text(reply) if redact else reply
    transcript: Transcript | None = None
    for pause in (0.0, *PAUSES):
        if pause:
            time.sleep(pause)
        try:
            look = path.stat()
            if (look.st_size, look.st_mtime_ns) == seen:
                continue
            transcript = _read(path, look.st_size, size, redact)
        except OSError:
            return None
        seen = (look.st_size, look.st_mtime_ns)
        if transcript is not None and _tells(transcript, reply):
            return Reading(transcript, lagging=False)
    if transcript is None or not _says_anything(transcript):
        return None
    return Reading(transcript, lagging=True)


def _read(path: Path, found: int, size: int | None, redact: bool) -> Transcript | None:
    """A transcript of which so many bytes were found, or its first bytes; None for none."""
    with contextlib.suppress(NotATranscript):  # or the first line of one that is being written
        if not redact and (size is None or found <= size):
            return formats.read_file(path)
        data = path.read_bytes()[:size]
        return formats.read(without_secrets(data) if redact else data, path.name)
    return None


def save_history(
    store: Store, event: Event, reading: Reading, files: Files, *, redact: bool = False
) -> list[Imported]:
    """Bring the sessions of a transcript up to date; the last turn of the live line gets the files.

    So are those of the agents that it called, and what is kept beside it. Another hook that does
    the same at the same time is no hindrance.
    """
    path, is_claude = Path(event.transcript), reading.transcript.harness == "claude-code"
    marks = {LAGGING: reading.lagging, EARLY: event.name != TURN and files.files is not None}
    saved = Saved(
        files if _is_of(reading.transcript, event) else Files(),
        {mark: True for mark, holds in marks.items() if holds},
    )
    beside = files_beside(path) if is_claude and not redact else {}
    found = _import(store, path, reading.transcript, saved=saved, beside=beside)
    for agent in agents_beside(path) if is_claude else ():
        told = _read(agent, 0, None, redact)
        if told is not None:
            name = suffixed(found[0].name, f"/{agent.stem}")
            found = [*found, *_import(store, agent, told, name=name)]
    return found


def _import(store: Store, path: Path, transcript: Transcript, **how: Any) -> list[Imported]:
    place = os.path.realpath(path)
    for _ in range(_ATTEMPTS):
        try:
            return import_transcript(store, transcript, source=place, **how)
        except RefMoved as error:
            moved = error
    raise moved


def _says_anything(transcript: Transcript) -> bool:
    lines = (line for session in transcript.sessions for line in session.lines())
    return any(turn.messages for line in lines for turn in line.turns)


def _is_of(transcript: Transcript, event: Event) -> bool:
    """Whether a transcript is of the event's session: by its name, or by what it says."""
    told = [session.live.meta.get("session_id") for session in transcript.sessions]
    return event.session_id in told or Path(event.transcript).stem.endswith(event.session_id)


def _tells(transcript: Transcript, reply: str) -> bool:
    """Whether a transcript holds what the model is known to have said in its last turn."""
    if not _says_anything(transcript):
        return False
    wanted = _comparable(reply)
    return not wanted or any(wanted in _comparable(said) for said in _last_replies(transcript))


def _last_replies(transcript: Transcript) -> Iterator[str]:
    for session in transcript.sessions:
        for message in session.live.turns[-1].messages:
            if isinstance(message, dict) and message.get("role") == "assistant":
                yield _text(message)


def _text(message: dict[str, Any]) -> str:
    return prompt_text(message.get("content"))


def _comparable(text: str) -> str:
    return "".join(text.split())[:_COMPARED]
