"""An agent that is a program: it gets JSON on stdin and answers on stdout; see ``reply``."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import IO, Any

from snapstore.scratchpad import SavedScratchpad
from snapstore_cli import processes
from snapstore_cli.chat.agents import AgentError, Pieces
from snapstore_cli.chat.reply import Reply
from snapstore_cli.deep import with_room
from snapstore_cli.json_values import jsonable
from snapstore_cli.render.words import size

MOST_OUTPUT = 256 << 20
"""Bytes that an answer may have."""

_AT_ONCE = 64 << 10
_LOOK = 0.1
"""Seconds between two looks at whether a program that says nothing is still there."""


class ProgramAgent:
    """Runs a command of the shell for each answer."""

    def __init__(self, command: str, *, timeout: float | None = None) -> None:
        self.name = command
        self._timeout = timeout

    def answer(self, messages: list[Any], scratchpad: SavedScratchpad) -> Pieces:
        """See ``Agent.answer``."""
        asked = {"messages": messages, "scratchpad": dict(scratchpad)}
        data = with_room(lambda: json.dumps(asked, default=jsonable)).encode()
        try:
            # What it says on stderr is for the user, and goes there.
            process = processes.start(self.name, stdin=subprocess.PIPE, stderr=None)
        except OSError as error:
            raise AgentError(f"it cannot be started: {error.strerror or error}") from None
        assert process.stdin is not None and process.stdout is not None
        threading.Thread(target=_write, args=(process.stdin, data), daemon=True).start()
        try:
            reply = Reply()
            for output in self._output(process, process.stdout.fileno()):
                yield from reply.feed(output)
            yield from reply.end()
        finally:
            if processes.poll(process) is None:
                processes.end(process)
            process.stdout.close()
        if process.returncode:
            raise AgentError(processes.ending(process.returncode))

    def _output(self, process: subprocess.Popen[bytes], fd: int) -> Iterator[bytes]:
        """What it prints, until it has ended. Raises AgentError for too much or too late."""
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        left = MOST_OUTPUT
        while True:
            gone = processes.poll(process) is not None
            if select.select([fd], [], [], _LOOK)[0]:
                data = os.read(fd, _AT_ONCE)
                if not data:
                    break
                left -= len(data)
                if left < 0:
                    raise AgentError(f"it answered with more than {size(MOST_OUTPUT)}")
                yield data
            elif gone:  # something that it started holds on to its output
                break
            self._refuse_late(deadline)
        while processes.poll(process) is None:
            self._refuse_late(deadline)
            time.sleep(0.005)

    def _refuse_late(self, deadline: float | None) -> None:
        if deadline is not None and time.monotonic() > deadline:
            raise AgentError(f"it did not finish within {self._timeout:g} s")


def _write(stdin: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError):  # an agent need not read what it is asked
        stdin.write(data)
    with contextlib.suppress(OSError):
        stdin.close()
