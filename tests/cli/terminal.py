"""A command on a terminal of its own, typed to and looked at."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

COMMAND = [sys.executable, "-c", "import sys; from snapstore_cli.main import run; sys.exit(run())"]
_ESCAPES = re.compile(rb"\x1b(\[[0-9;?]*[A-Za-z]|[=>]|\][^\x07]*\x07)")


class Terminal:
    """A terminal with a command in its foreground."""

    def __init__(
        self, folder: Path, *words: str, without: str = "", program: Sequence[str] = COMMAND
    ) -> None:
        """Start a command; ``without`` names a module that it cannot import."""
        self._screen = b""
        self._seen = 0
        argv = list(program)
        if without:
            argv[2] = f"import sys; sys.modules[{without!r}] = None; {argv[2]}"
        pid, self._fd = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="xterm", NO_COLOR="1", PROMPT_TOOLKIT_NO_CPR="1")
            os.execv(argv[0], [*argv, *words])
        self.pid = pid

    def type(self, text: str) -> None:
        """Type a text; \\r is Enter, \\x03 Ctrl-C, \\x04 Ctrl-D."""
        os.write(self._fd, text.encode())

    def wait_for(self, text: str, patience: float = 60) -> None:
        """Wait until a text is shown that was not waited for before."""
        end = time.monotonic() + patience
        while (at := self._shown.find(text, self._seen)) < 0:
            left = end - time.monotonic()
            assert left > 0 and self._read(left), f"no {text!r} in {self._shown[self._seen :]!r}"
        self._seen = at + len(text)

    @property
    def _shown(self) -> str:
        return _ESCAPES.sub(b"", self._screen).decode("utf-8", "replace")

    def type_until(self, text: str, shown: str) -> None:
        """Type a text again and again until another is shown.

        For Ctrl-C at ``input()``: when it comes between the prompt and the read, Python takes note
        of it only with the next key.
        """
        for _ in range(20):
            self.type(text)
            with contextlib.suppress(AssertionError):
                self.wait_for(shown, patience=1)
                return
        raise AssertionError(f"no {shown!r} in {self._shown[self._seen :]!r}")

    def _read(self, patience: float) -> bool:
        if not select.select([self._fd], [], [], patience)[0]:
            return False
        with contextlib.suppress(OSError):  # Linux says so when the command has ended
            data = os.read(self._fd, 65536)
            self._screen += data
            return bool(data)
        return False

    def end(self) -> int:
        """Wait for the end of the command; its exit code."""
        end = time.monotonic() + 60
        while self._read(60) and time.monotonic() < end:
            pass
        if time.monotonic() >= end:
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Kill a process in a while."""
    time.sleep(seconds)
    process.kill()
    process.communicate(timeout=60)
