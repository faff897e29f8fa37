"""Whether anything changed since a hook last looked, told by looking at file times only.

Most events of a harness find everything as it was. To know that, neither the library is loaded nor
the store opened: a file in its cache says what a session's transcript looked like and when the
files were captured. No file time that a program can set is asked. What was changed after a capture
began has a later ctime; so has the directory in which a name came or went. When the clock stands
before the capture it was set back, and times tell nothing.

The file is throw-away: one that is missing or makes no sense means a full look, no more. There is
one for each directory that events name::

    {"cwd": .., "below": {root: [directory, ..]},
     "sessions": {id: {"root": .., "since": ns, "ends": {transcript: [size, mtime ns]}}}}

Of the standard library as little is imported as will do: pathlib alone takes longer to load than
all that is done here.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

CAPTURES = frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure"})
"""Events that ask for the files."""
TURN = "Stop"
"""The event that asks for files and transcript."""
EVENTS = CAPTURES | {TURN, "SubagentStop", "PreCompact", "SessionEnd"}
"""Events that ask for anything at all; those not named above ask for the transcript."""

TICK = 20_000_000
COARSE_TICK = 2_000_000_000
"""Two changes within so many nanoseconds may bear the same time: see worktree.statcache."""
_SESSIONS = 16
_TRANSCRIPTS = 8


Ends = dict[str, list[int]]
"""How transcripts looked: size and mtime, by path."""


class Seen(NamedTuple):
    """What the handling of an event saw, where repeating it would change nothing."""

    ends: Ends
    """The transcripts; none when they were not read."""
    captured: bool
    """Whether the event was one that captures files."""
    root: str | None
    """The directory that was captured; None where it was refused, which repeating does not mend."""
    since: int
    """When that began, in nanoseconds since the epoch."""
    below: list[str]


def ends_of(event: Mapping[str, Any]) -> Ends:
    """How the transcripts that an event names look now; one that is not there is left out."""
    found: Ends = {}
    for key in ("transcript_path", "agent_transcript_path"):
        path = event.get(key)
        try:
            info = os.stat(path) if isinstance(path, str) else None
        except (OSError, ValueError):
            continue
        if path is not None and info is not None:
            found[path] = [info.st_size, info.st_mtime_ns]
    return found


def place(cache: str, cwd: str) -> str:
    """The file that is kept in a store's cache for a directory."""
    key = zlib.crc32(cwd.encode("utf-8", "surrogatepass"))
    return os.path.join(cache, f"hook-{key:08x}")


def nothing_changed(cache: str, event: Mapping[str, Any]) -> bool:
    """Whether an event finds what it asks for as the last hook of its session left it."""
    cwd, session, name = (event.get(key) for key in ("cwd", "session_id", "hook_event_name"))
    if not (isinstance(name, str) and name in EVENTS):
        return True
    if not (isinstance(cwd, str) and isinstance(session, str)):
        return False
    try:
        with open(place(cache, cwd), encoding="utf-8") as file:
            kept = json.load(file)
        known = kept["sessions"][session]
        if kept["cwd"] != cwd or not os.path.isdir(cwd):
            return False
        if name not in CAPTURES and not _read_before(event, known["ends"]):
            return False
        if not (name in CAPTURES or name == TURN) or known["root"] is None:
            return True
        return _unchanged(known["root"], known["since"], kept["below"][known["root"]])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _read_before(event: Mapping[str, Any], ends: Ends) -> bool:
    now = ends_of(event)
    return event.get("transcript_path") in now and all(
        ends.get(path) == end for path, end in now.items()
    )


def _unchanged(root: str, since: int, below: list[str]) -> bool:
    if time.time_ns() < since:
        return False
    latest, coarse = since - TICK, since - COARSE_TICK
    for folder in below:
        here = os.path.join(root, folder)
        with os.scandir(here) as entries:
            times = [
                entry.stat(follow_symlinks=False).st_ctime_ns
                for entry in entries
                if not entry.is_dir(follow_symlinks=False)
            ]
        times.append(os.stat(here).st_ctime_ns)
        if max(times) >= latest:
            return False
        if max(times) >= coarse and any(t >= coarse and t % 1_000_000_000 == 0 for t in times):
            return False
    return True


def noted(before: bytes, cwd: str, session: str, seen: Seen) -> bytes:
    """What to keep in a directory's file after an event was handled, given what it held before."""
    try:
        kept = json.loads(before)
        sessions, below = dict(kept["sessions"]), dict(kept["below"])
        if kept["cwd"] != cwd:
            sessions, below = {}, {}
    except (ValueError, KeyError, TypeError, RecursionError):
        sessions, below = {}, {}
    known = sessions.pop(session, None)
    entry = dict(known) if isinstance(known, dict) else {}
    ends = {path: end for path, end in entry.get("ends", {}).items() if path not in seen.ends}
    entry["ends"] = dict([*ends.items(), *seen.ends.items()][-_TRANSCRIPTS:])
    if seen.captured:
        entry["root"], entry["since"] = seen.root, seen.since
        below |= {seen.root: seen.below} if seen.root is not None else {}
    sessions[session] = entry
    newest = dict(list(sessions.items())[-_SESSIONS:])
    roots = {entry.get("root") for entry in newest.values() if isinstance(entry, dict)}
    below = {root: folders for root, folders in below.items() if root in roots}
    return json.dumps({"cwd": cwd, "below": below, "sessions": newest}).encode()
