"""A progress bar on stderr, once something has taken long enough for one to wonder."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from snapstore_cli.render import words
from snapstore_cli.settings import Settings

_PATIENCE = 1.0
"""Seconds before the bar shows."""
_WIDTH = 30


class Bar:
    """Shown on a terminal only, and gone when it is done."""

    def __init__(self, settings: Settings, what: str = "") -> None:
        self.what = what
        self._start = time.monotonic()
        self._shown = sys.stderr.isatty() and not settings.quiet
        self._drawn = ""

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._drawn:
            self._write("\r\x1b[K")

    def progress(self, done: int, total: int) -> None:
        """So much is done of so much."""
        if not self._shown or time.monotonic() - self._start < _PATIENCE:
            return
        percent = 100 * min(done, total) // max(total, 1)
        full = _WIDTH * percent // 100
        line = f"[{'#' * full}{' ' * (_WIDTH - full)}] {percent:3} %  {words.cut(self.what, 40)}"
        if line != self._drawn:
            self._drawn = line
            self._write(f"\r\x1b[K{line.rstrip()}")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
