"""Pushing after a save, in a process of its own that nobody waits for.

``python -m snapstore_cli.pushing STORE [SECONDS]`` is that process. It ends by itself, in any case
after so many seconds; a push that is cut off so goes on with the next save. What fails is told in
``cache/push.log`` in the store, and by ``snapstore status`` and ``snapstore doctor``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from snapstore import Store
from snapstore_cli.opening import open_store

if TYPE_CHECKING:
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

        if auto.behind(store) and not auto.is_under_way(store):
            _start(store.local.root.absolute())


def _start(place: Path) -> None:
    _started[:] = [child for child in _started if child.poll() is None]
    _started.append(
        subprocess.Popen(
            [sys.executable, "-m", "snapstore_cli.pushing", str(place)],
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

    for name, last in auto.last_pushes(store).items():
        if last.error:
            yield name, last


def told(name: str, last: LastPush) -> str:
    """One of these in words."""
    return f"last push to {name} failed: {last.error}"


# --- the process -----------------------------------------------------------------------------


def run(place: str, limit: int = LIMIT) -> int:
    """Push what changed, and return an exit code."""
    signal.alarm(limit)  # ends the process wherever it hangs, in a system call too
    log = Path(place, "cache", "push.log")
    try:
        from snapstore.transfer.auto import push_changes

        os.nice(10)
        with open_store(place, create=False) as store:
            done = push_changes(store, _opened)
    except Exception as error:
        _tell(log, f"failed: {type(error).__name__}: {error}")
        return 1
    for name, last in done.items():
        if last.error:
            _tell(log, told(name, last))
    return 0


def _opened(place: str, *, create: bool) -> Store:
    from snapstore_cli.elsewhere import store_at

    return open_store(store_at(place), create=create)


def _tell(log: Path, text: str) -> None:
    from snapstore_cli.hooking.log import write

    write(log, text)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], *map(int, sys.argv[2:3])))
