"""``snapstore hook``: an event on standard input, nothing on standard output, always exit code 0.

What a harness reads from a hook's output becomes part of the model's context, and another exit code
than 0 may stop its work. So whatever happens here is told in a log: ``cache/hook.log`` in the
store, or in the user's state directory where the store is not a directory of this machine.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from snapstore_cli.hooking import glance
from snapstore_cli.place import store_place

if TYPE_CHECKING:
    from pathlib import Path

    from snapstore import Store
    from snapstore.integrations.hooks import Done, Event, Postponed

CATCH_UP = "--catch-up"
"""The option by which a hook starts itself again, to read a transcript that takes long."""
LARGE = 8 << 20
"""Bytes of a transcript that take most of a second to read: as long as a harness should wait."""
_EVENT_LIMIT = 64 << 20


class Arguments(NamedTuple):
    """What may follow ``snapstore hook``. What is not known is passed over: see above."""

    store: str | None = None
    redact: bool = False
    catch_up: bool = False

    @classmethod
    def of(cls, words: Sequence[str]) -> Arguments:
        """Read them without a parser, which would take longer to load than all else."""
        store = None
        for at, word in enumerate(words):
            if word == "--store":
                store = "".join(words[at + 1 : at + 2]) or None
            elif word.startswith("--store="):
                store = word.removeprefix("--store=") or None
        return cls(store, "--redact" in words, CATCH_UP in words)


def run(arguments: Arguments) -> int:
    """Handle the event on standard input; returns 0."""
    place = ""
    try:
        place = store_place(arguments.store)
        _handle(arguments, place, sys.stdin.buffer.read(_EVENT_LIMIT))
    except BaseException as error:  # a harness must not suffer from whatever it is
        _log(place, f"failed: {type(error).__name__}: {error}")
    return 0


def _handle(arguments: Arguments, place: str, data: bytes) -> None:
    if arguments.catch_up:
        _catch_up(place, json.loads(data))
        return
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        _log(place, "passed over: what came on standard input is no event")
    elif not glance.nothing_changed(f"{place}/cache", told):
        _look(place, data, glance.ends_of(told), arguments.redact)


def _look(place: str, data: bytes, ends: glance.Ends, redact: bool) -> None:
    """Handle an event that may have changed something."""
    from snapstore.integrations.hooks import handle, read_event

    event = read_event(data)
    if event is None:
        return
    since = time.time_ns()
    home, project = _directory("HOME"), _directory("CLAUDE_PROJECT_DIR")
    with _opened(place) as store:
        done = handle(store, event, home=home, project=project, most=LARGE, redact=redact)
        if done.postponed:
            _start_catching_up(place, done.postponed, ends)
        if done.settled:
            _keep(store, event, _seen(event, done, ends, since))
        _push(store)
        for cut_off in store.here.settled if store.here else ():
            _log(place, cut_off.ended)
    if done.told:
        _log(place, f"{event.name} of {event.session_id or '?'}: {done.told}")


def _seen(event: Event, done: Done, ends: glance.Ends, since: int) -> glance.Seen:
    asks_for_files = event.name in glance.CAPTURES
    was_read = not asks_for_files and not done.postponed
    return glance.Seen(
        ends if was_read else {},
        asks_for_files or event.name == glance.TURN,
        str(done.root) if done.root else None,
        since,
        list(done.looked_at),
    )


def _opened(place: str) -> Store:
    """The store. Raises Corrupt when what a transcript would be added to is hidden by damage."""
    import warnings

    from snapstore_cli.opening import open_store

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there is nobody to read them
        store = open_store(place)
    if store.engine.cut_off is not None:
        store.close()
        raise store.engine.cut_off
    return store


def _push(store: Store) -> None:
    from snapstore_cli import pushing

    pushing.begin(store)


def _directory(variable: str) -> Path | None:
    from pathlib import Path

    named = os.environ.get(variable)
    return Path(named) if named else None


def _keep(store: Store, event: Event, seen: glance.Seen) -> None:
    """Note what was seen, for the glance at the next event."""
    if store.local is None or not event.session_id:
        return
    from pathlib import Path

    path = Path(glance.place(str(store.local.root / "cache"), event.cwd))
    if path.parent.is_dir():
        before = path.read_bytes() if path.exists() else b""
        kept = glance.noted(before, event.cwd, event.session_id, seen)
        store.local.disk.write_cache(path, kept)


# --- transcripts that take long ---------------------------------------------------------------


def _start_catching_up(place: str, postponed: Postponed, ends: glance.Ends) -> None:
    """Hand a transcript to a process of its own, for which the harness does not wait."""
    import subprocess
    from dataclasses import asdict
    from pathlib import Path

    job = {
        "event": asdict(postponed.event),
        "size": postponed.size,
        "ends": ends,
        "redact": postponed.redact,
        "files": [value.hex() if isinstance(value, bytes) else value for value in postponed.files],
    }
    if "://" not in place:
        place = str(Path(place).absolute())
    command = [sys.executable, "-m", "snapstore_cli", "hook", "--store", place, CATCH_UP]
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what ends the harness's own processes is not meant for it
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(job).encode())
    child.stdin.close()


def _catch_up(place: str, job: dict[str, Any]) -> None:
    from snapstore.integrations.hooks import Event, Postponed, catch_up
    from snapstore.worktree.binding import Files

    tree, worktree, partial = job["files"]
    files = Files(bytes.fromhex(tree) if tree else None, worktree, partial)
    postponed = Postponed(Event(**job["event"]), job["size"], files, job["redact"])
    event = postponed.event
    with _opened(place) as store:
        done = catch_up(store, postponed)
        if done.settled:
            _keep(store, event, glance.Seen(job["ends"], False, None, 0, []))
        _push(store)
    _log(place, f"{event.name} of {event.session_id}, on its own: {done.told}")


# --- telling ----------------------------------------------------------------------------------


def _log(place: str, text: str) -> None:
    """Tell something in the log; this must not fail either."""
    try:
        from pathlib import Path

        from snapstore_cli.hooking import log

        folder = Path(place, "cache") if place and "://" not in place else None
        if folder is None or not folder.is_dir():
            import platformdirs

            folder = Path(platformdirs.user_state_dir("snapstore", appauthor=False))
        log.write(folder / "hook.log", text)
    except BaseException:  # nothing is left that could be told
        pass
