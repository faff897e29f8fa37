"""Programs that we start: each in a process group of its own, which ends when we do."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

GRACE = 2.0
"""Seconds that a program gets to end by itself before it is killed."""

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def start(
    command: str,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | None = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Start a command of the shell whose output is read. Raises OSError.

    When we are killed the shell is too (on Linux): it must not go on behind the back of whoever
    takes up our work.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        start_new_session=True,
        preexec_fn=_dies_with(os.getpid()),
    )


def _dies_with(parent: int) -> Callable[[], None] | None:
    libc = _libc
    if libc is None:
        return None

    def ask_for_it() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before it was asked
            os._exit(1)

    return ask_for_it


def signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to a program and all that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def end(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """End a program and all that it started: first politely, then for good."""
    signal_group(process, signal.SIGTERM)
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        pass
    finally:
        signal_group(process, signal.SIGKILL)
        process.wait()


def ending(status: int) -> str:
    """How a command ended, in words: ``exit status 2``, ``killed by SIGKILL``."""
    # A shell whose command was killed says so by adding 128.
    number = -status if status < 0 else status - 128
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(number).name}"
    return f"exit status {status}"
