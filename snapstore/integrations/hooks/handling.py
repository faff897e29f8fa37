"""What is done at an event of a harness.

===================================================  ==============================================
SessionStart, UserPromptSubmit, PostToolUse,         the files are captured; that is no turn
PostToolUseFailure
Stop                                                 the files are captured, and the turn that has
                                                     ended becomes a turn of the session with both
SubagentStop, PreCompact, SessionEnd                 the history is saved; a turn that has no files
                                                     yet gets those that were captured last
any other                                            nothing
===================================================  ==============================================

All of it may come twice, late, or at once from several processes: what is there already is not
written again. An event without a session, with a directory that is not there or, where the history
is asked for, without a transcript changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from snapstore.errors import NotFound, Refused
from snapstore.integrations.hooks.captures import capture, last_capture
from snapstore.integrations.hooks.events import FILES, HISTORY, TURN, Event
from snapstore.integrations.hooks.history import Reading, read_transcript, save_history
from snapstore.store import Store
from snapstore.transfer.beside import agents_beside
from snapstore.transfer.imports import Imported
from snapstore.worktree.binding import Files
from snapstore.worktree.guard import refuse_too_much


@dataclass(frozen=True, slots=True)
class Postponed:
    """A transcript that takes too long to read while a harness waits, and what belongs to it."""

    event: Event
    size: int
    """Bytes that it had at the event: what comes after them is of a later turn."""
    files: Files
    redact: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an event."""

    told: str
    """For a log; empty when nothing was to be done."""
    settled: bool = False
    """Whether the same event, with the same transcript and files, would change nothing; but for
    what was postponed."""
    root: Path | None = None
    """The directory whose files were captured."""
    looked_at: tuple[str, ...] = ()
    """The directories in it that were looked at, relative to it."""
    postponed: Postponed | None = None
    """What is left to be done, by ``catch_up``."""


def handle(
    store: Store,
    event: Event,
    *,
    home: Path | None = None,
    project: Path | None = None,
    most: int | None = None,
    redact: bool = False,
) -> Done:
    """Do what an event asks for.

    home is what the user's environment calls home, and project the directory that the harness was
    started in, if it tells. A transcript of more bytes than most is postponed. With redact=True
    secrets are left out of the history; files are kept as they are. Raises SnapstoreErrors of the
    store; what is wrong with the event, the transcript or the files is told in the result.
    """
    if event.name not in HISTORY | FILES:
        return Done("", settled=True)
    if not event.session_id:
        return Done("passed over: no session id")
    if not event.cwd or not Path(event.cwd).is_dir():
        return Done(f"passed over: there is no directory {event.cwd or '(none named)'}")
    if event.name in FILES:
        return _captured(store, event, home, project)[1]
    size = _size(event.transcript)
    if most is not None and size and size + _size_of_agents(event.transcript) > most:
        files, done = _files(store, event, home, project)
        told = "; ".join(filter(None, (done.told, "the transcript is read on its own")))
        return replace(
            done, told=told, settled=True, postponed=Postponed(event, size, files, redact)
        )
    reading = read_transcript(event, redact=redact) if size else None
    if reading is None:
        return Done(f"passed over: no history in {event.transcript or '(no transcript named)'}")
    files, done = _files(store, event, home, project)
    saved = save_history(store, event, reading, files, redact=redact)
    return _told(done, reading, saved)


def catch_up(store: Store, postponed: Postponed) -> Done:
    """Save the history that was postponed, as it was then."""
    event = postponed.event
    reading = read_transcript(event, postponed.size, redact=postponed.redact)
    if reading is None:
        return Done(f"passed over: no history in {event.transcript}")
    saved = save_history(store, event, reading, postponed.files, redact=postponed.redact)
    return _told(Done(""), reading, saved)


def _told(done: Done, reading: Reading, saved: Sequence[Imported]) -> Done:
    told = [
        f"{one.name} at turn {one.turns}" + ("" if one.created else ", as before") for one in saved
    ]
    told += [done.told] if done.told else []
    told += ["the transcript lags behind"] if reading.lagging else []
    return replace(done, told="; ".join(told), settled=not reading.lagging)


def _size(transcript: str) -> int:
    """Bytes of a transcript; 0 where there is no file, or none is named."""
    try:
        return Path(transcript).stat().st_size if transcript else 0
    except OSError:
        return 0


def _size_of_agents(transcript: str) -> int:
    """Bytes of the transcripts of the agents that a session called."""
    return sum(_size(str(agent)) for agent in agents_beside(Path(transcript)))


def _files(
    store: Store, event: Event, home: Path | None, project: Path | None
) -> tuple[Files, Done]:
    """The files for a turn that has none yet: of this moment when it ends now."""
    if event.name == TURN:
        return _captured(store, event, home, project)
    return last_capture(store, event.session_id), Done("")


def _captured(
    store: Store, event: Event, home: Path | None, project: Path | None
) -> tuple[Files, Done]:
    root = _root(store, event, project)
    try:
        refuse_too_much(root, home)
        files, looked_at = capture(store, event.session_id, root, event.name)
    except (NotFound, Refused) as error:
        return Files(), Done(f"no files: {error}", settled=True)
    return files, Done(f"files of {root}", True, root, tuple(looked_at))


def _root(store: Store, event: Event, project: Path | None) -> Path:
    """The directory that the session is about: it stays the same when the harness goes deeper."""
    here = Path(os.path.realpath(event.cwd))
    before = last_capture(store, event.session_id).worktree
    told = [Path(before)] if before else []
    started = [Path(os.path.realpath(project))] if project else []
    return next((root for root in (*told, *started) if here.is_relative_to(root)), here)
