"""Programs that we start: each in a process group of its own, which ends when we do."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

GRACE = 2.0
"""Seconds that a program gets to end by itself before it is killed."""

_PLAIN = re.compile(r"[\w./,:@%+ -]*\w[\w./,:@%+ -]*", re.ASCII)
_BUILTINS = frozenset({"cd", "exec", "exit", "export", "read", "set", "ulimit", "umask", "wait"})
"""What a shell does itself, even where there is a program of that name."""

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
    """Start a command, written as for the shell, whose output is read. Raises OSError.

    When we are killed it is too (on Linux): it must not go on behind the back of whoever takes up
    our work. That reaches the process that we start and none that this starts in turn, so a command
    that needs no shell is started without one.
    """
    how: dict[str, Any] = {
        "cwd": cwd,
        "env": env,
        "stdin": stdin,
        "stdout": subprocess.PIPE,
        "stderr": stderr,
        "start_new_session": True,
        "preexec_fn": _dies_with(os.getpid()),
    }
    words = _without_shell(command, cwd, (os.environ if env is None else env).get("PATH"))
    if words:
        with contextlib.suppress(OSError):  # a script that only a shell can make something of
            return subprocess.Popen(words, **how)
    return subprocess.Popen(["/bin/sh", "-c", command], **how)


def _without_shell(command: str, cwd: Path | None, path: str | None) -> list[str] | None:
    """The words of a command that is a program and its plain arguments; None for any other."""
    if not _PLAIN.fullmatch(command):
        return None
    words = command.split()
    relative = "/" in words[0] and not words[0].startswith("/")
    program = None if relative and cwd is not None else shutil.which(words[0], path=path)
    if program is None or words[0] in _BUILTINS:
        return None
    return [str(Path(program).absolute()), *words[1:]]


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


def poll(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status of a program, None while it runs.

    Popen's own ``poll`` and ``wait`` take a lock that Ctrl-C at the wrong moment leaves locked for
    good, and whoever then waits for the end of the program waits for ever.
    """
    if process.returncode is None:
        try:
            pid, status = os.waitpid(process.pid, os.WNOHANG)
        except ChildProcessError:  # Ctrl-C came when its status was just read
            process.returncode = 0
        else:
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode


def wait(process: subprocess.Popen[bytes], patience: float = math.inf) -> bool:
    """Wait so many seconds for the end of a program; whether it has ended."""
    deadline = time.monotonic() + patience
    pause = 0.0005
    while poll(process) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(pause, left))
        pause = min(pause * 2, 0.05)
    return True


def end(process: subprocess.Popen[bytes], grace: float = GRACE) -> None:
    """End a program and all that it started: first politely, then for good."""
    signal_group(process, signal.SIGTERM)
    try:
        wait(process, grace)
    finally:
        signal_group(process, signal.SIGKILL)
        wait(process)


def ending(status: int) -> str:
    """How a command ended, in words: ``exit status 2``, ``killed by SIGKILL``."""
    # A shell whose command was killed says so by adding 128.
    number = -status if status < 0 else status - 128
    with contextlib.suppress(ValueError):
        return f"killed by {signal.Signals(number).name}"
    return f"exit status {status}"
