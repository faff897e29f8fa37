"""Pushing after a save, in a process of its own that nobody waits for.

``python -m snapstore_cli.pushing STORE SECONDS [LOCK]`` is that process. It ends by itself, in any
case after so many seconds; a push that is cut off so goes on with the next save. LOCK is the
descriptor of a lock that it was started with, so that of many saves only the first starts one. What
fails is told in ``cache/push.log`` in the store, and by ``snapstore status`` and ``doctor``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from snapstore import SnapstoreError, Store
from snapstore_cli.opening import open_store

if TYPE_CHECKING:
    import subprocess

    from snapstore.transfer.auto import LastPush

LIMIT = 600
"""Seconds that a process may take for what changed."""

_started: list[subprocess.Popen[bytes]] = []


def begin(store: Store) -> None:
    """Have what changed in a local store pushed to the remotes that ask for it.

    Returns at once and never fails: what was saved is saved.
    """
    with contextlib.suppress(Exception):
        from snapstore.transfer.remotes import remotes

        if store.local is None or not any(one.auto_push for one in remotes(store).values()):
            return
        from snapstore.transfer import auto

        lock = auto.take_lock(store.local) if auto.behind(store) else None
        if lock is not None:
            try:
                _start(store.local.root.absolute(), lock)
            finally:
                os.close(lock)  # the process has a copy, and with it the lock


def _start(place: Path, lock: int) -> None:
    import subprocess  # which most saves have no use for

    _started[:] = [child for child in _started if child.poll() is None]
    _started.append(
        subprocess.Popen(
            [sys.executable, "-m", "snapstore_cli.pushing", str(place), str(LIMIT), str(lock)],
            pass_fds=(lock,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",  # it must not hold a directory, nor import what lies in one
            start_new_session=True,
        )
    )


def failed(store: Store) -> Iterator[tuple[str, LastPush]]:
    """The remotes to which the last push by itself failed, and how it did."""
    from snapstore.transfer import auto

    if store.local is None:
        return
    # Damage is told by those who look for it; here it only means that nothing is known.
    with contextlib.suppress(SnapstoreError):
        yield from ((name, one) for name, one in auto.last_pushes(store).items() if one.error)


def told(name: str, last: LastPush) -> str:
    """One of these in words."""
    return f"last push to {name} failed: {last.error}"


# --- the process -----------------------------------------------------------------------------


def run(place: str, limit: int, lock: int | None = None) -> int:
    """Push what changed, and return an exit code."""
    signal.alarm(limit)  # ends the process wherever it hangs, in a system call too
    log = Path(place, "cache", "push.log")
    try:
        from snapstore.transfer.auto import push_changes

        os.nice(10)
        with open_store(place, create=False) as store:
            done = push_changes(store, _opened, lock=lock)
    except Exception as error:
        _tell(log, f"failed: {type(error).__name__}: {error}")
        return 1
    for name, last in done.items():
        if last.error:
            _tell(log, told(name, last))
    return 0


def _opened(place: str, *, create: bool) -> Store:
    from snapstore_cli.place import store_at

    return open_store(store_at(place), create=create)


def _tell(log: Path, text: str) -> None:
    from snapstore_cli.hooking.log import write

    write(log, text)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], *map(int, sys.argv[2:4])))
