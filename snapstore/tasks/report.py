"""What a run of a task tells: its outcome, and on the way what it is at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from snapstore.tasks.lease import Holder


@dataclass(frozen=True, slots=True)
class Report:
    """A run that came to its end."""

    name: str
    ran: list[str]
    """The phases that ran, in the order in which they finished."""
    skipped: list[str]
    """The phases that had finished before."""
    results: dict[str, Any]
    """What each phase returned, now or then, read only."""


@dataclass(frozen=True, slots=True)
class Event:
    """A step of a run, for whoever watches it."""

    kind: Literal["waiting", "skipped", "started", "done", "failed", "interrupted"]
    phase: str = ""
    attempt: int = 0
    seconds: float = 0.0
    """How long the attempt took."""
    retry_in: float | None = None
    """After a failure: seconds until it is tried again; None when it is not."""
    error: BaseException | None = None
    holder: Holder | None = None
    """While waiting: who runs the task, as far as it is known."""


Watch = Callable[[Event], None]
"""Called with each event, in the thread that runs the task."""
