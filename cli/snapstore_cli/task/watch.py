"""How a run of a task shows on the screen: its progress, and the output of its commands."""

from __future__ import annotations

import contextlib
import sys
from typing import BinaryIO

from snapstore.tasks import Event
from snapstore_cli.output import Output
from snapstore_cli.task.commands import Sink


class Progress:
    """Tells on stderr what a run is at, and remembers what became of each phase."""

    def __init__(self, out: Output, names: list[str]) -> None:
        self._out = out
        self._places = {name: place for place, name in enumerate(names, 1)}
        self.ran: list[str] = []
        self.skipped: list[str] = []
        self.failed: str | None = None
        self.error: BaseException | None = None

    def __call__(self, event: Event) -> None:
        """Take note of an event and tell it."""
        if event.kind == "done":
            self.ran.append(event.phase)
        elif event.kind == "skipped":
            self.skipped.append(event.phase)
        elif event.error is not None and event.retry_in is None and self.failed is None:
            self.failed, self.error = event.phase, event.error
        self._out.note(self._line(event))

    def _line(self, event: Event) -> str:
        if event.kind == "waiting":
            return f"waiting: the task is being run by {event.holder or 'somebody else'}"
        where = f"[{self._places[event.phase]}/{len(self._places)}] {event.phase}"
        if event.kind == "skipped":
            return f"{where}: finished before"
        if event.kind == "started":
            return f"{where}: attempt {event.attempt}" if event.attempt > 1 else where
        if event.kind == "done":
            return f"{where}: done in {event.seconds:.1f} s"
        if event.kind == "interrupted":
            return f"{where}: interrupted"
        again = "" if event.retry_in is None else f"; again in {event.retry_in:g} s"
        return f"{where}: failed after {event.seconds:.1f} s: {event.error}{again}"


def sinks(name: str, *, as_json: bool, beside_others: bool) -> tuple[Sink, Sink]:
    """Where a phase's output and error output go: the first to stderr with JSON.

    Of phases that run side by side, each line bears the name of its phase.
    """
    out = sys.stderr.buffer if as_json else sys.stdout.buffer
    if beside_others:
        return _Lines(name, out), _Lines(name, sys.stderr.buffer)
    return _Through(out), _Through(sys.stderr.buffer)


class _Through:
    """Passes everything on as it comes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        # When nobody reads any more the task goes on; the command says so at its end.
        with contextlib.suppress(BrokenPipeError):
            self._stream.write(data)
            self._stream.flush()

    def close(self) -> None:
        pass


class _Lines(_Through):
    """Passes whole lines on, with a name before each."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        super().__init__(stream)
        self._mark = f"[{name}] ".encode("utf-8", "surrogateescape")
        self._begun = b""

    def write(self, data: bytes) -> None:
        *lines, self._begun = (self._begun + data).split(b"\n")
        super().write(b"".join(self._mark + line + b"\n" for line in lines))

    def close(self) -> None:
        if self._begun:
            self.write(b"\n")
