"""A progress bar on stderr, once something has taken long enough for one to wonder."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

from snapstore_cli.render import words
from snapstore_cli.settings import Settings

_PATIENCE = 1.0
"""Seconds before the bar shows."""
_WIDTH = 30
_NAME = 24


class Bar:
    """Shown on a terminal only, and gone when it is done."""

    def __init__(
        self,
        settings: Settings,
        what: str = "",
        amount: Callable[[int], str] | None = words.size,
    ) -> None:
        """``what`` is being done; ``amount`` says how much of it a number is, for the rate."""
        self.what = what
        self._amount = amount
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
        passed = time.monotonic() - self._start
        if not self._shown or passed < _PATIENCE:
            return
        percent = 100 * min(done, total) // max(total, 1)
        full = _WIDTH * percent // 100
        told = [
            f"[{'#' * full}{' ' * (_WIDTH - full)}]",
            f"{percent:3} %",
            f"{self._amount(round(done / passed))}/s" if self._amount else "",
            f"{words.duration(passed * (total - done) / done)} left" if 0 < done < total else "",
            words.cut(self.what, _NAME),
        ]
        line = "  ".join(filter(None, told))
        if line != self._drawn:
            self._drawn = line
            self._write(f"\r\x1b[K{line}")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
