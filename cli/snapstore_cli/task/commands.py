"""Running the commands of a task: their output goes on as it comes, and is kept with the record."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from subprocess import Popen
from typing import IO, Protocol

from snapstore.tasks import AsyncContext, Phase
from snapstore_cli import processes
from snapstore_cli.task.file import CommandPhase

MOST_KEPT = 64 << 10
"""Bytes of a command's output that are kept: the first quarter from its start, the rest from its
end."""

_AT_ONCE = 64 << 10
_LAST_WORDS = 0.3
"""Seconds to wait for output when the command has ended and something it started holds on to it."""


class Sink(Protocol):
    """Where output goes on to."""

    def write(self, data: bytes) -> None:
        """Take more of it."""

    def close(self) -> None:
        """That was all."""


class CommandError(Exception):
    """A command ended with an error."""


class Kept:
    """The beginning and the end of a long output."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._most_head, self._most_tail = most // 4, most - most // 4
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take note of more output."""
        room = self._most_head - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        over = len(self._tail) - self._most_tail
        if over > 0:
            self._left_out += over
            del self._tail[:over]

    def text(self) -> str:
        """What is kept, and in its middle how much is not."""
        gap = f"\n... {self._left_out:,} bytes ...\n".encode() if self._left_out else b""
        return (self._head + gap + self._tail).decode("utf-8", "replace")


def as_phase(
    task: str, command: CommandPhase, environment: Mapping[str, str], sinks: tuple[Sink, Sink]
) -> Phase:
    """A command as a phase of a task; sinks take its output and its error output."""

    async def run(ctx: AsyncContext) -> None:
        marks = {
            "SNAPSTORE_TASK": task,
            "SNAPSTORE_PHASE": command.name,
            "SNAPSTORE_ATTEMPT": str(ctx.attempt),
        }
        await _run(command, {**environment, **marks, **command.env}, sinks, ctx)

    return Phase(
        command.name,
        run,
        version=command.version,
        inputs={"run": command.run, "cwd": command.cwd, "env": dict(command.env)},
        needs=command.needs,
        retries=command.retries,
        timeout=command.timeout,
    )


async def _run(
    command: CommandPhase, env: Mapping[str, str], sinks: tuple[Sink, Sink], ctx: AsyncContext
) -> None:
    kept = Kept()
    process = processes.start(command.run, cwd=Path(command.cwd or "."), env=env)
    assert process.stdout is not None and process.stderr is not None
    streams = [
        _Stream(pipe, sink, kept)
        for pipe, sink in zip((process.stdout, process.stderr), sinks, strict=True)
    ]
    try:
        await _ended(process)
        await asyncio.wait([stream.closed for stream in streams], timeout=_LAST_WORDS)
    except BaseException:
        await _end(process)
        raise
    finally:
        for stream in streams:
            stream.close()
        ctx.facts["output"] = kept.text()
        if process.returncode is not None:
            ctx.facts["exit_status"] = process.returncode
    if process.returncode:
        raise CommandError(processes.ending(process.returncode))


async def _ended(process: Popen[bytes]) -> None:
    pause = 0.001
    while processes.poll(process) is None:
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.02)


async def _end(process: Popen[bytes]) -> None:
    try:
        processes.signal_group(process, signal.SIGTERM)
        async with asyncio.timeout(processes.GRACE):
            await _ended(process)
    except TimeoutError:
        pass
    finally:
        processes.signal_group(process, signal.SIGKILL)
        processes.wait(process)


class _Stream:
    """One of a command's outputs."""

    def __init__(self, pipe: IO[bytes], sink: Sink, kept: Kept) -> None:
        self._pipe = pipe
        self._sink = sink
        self._kept = kept
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(pipe.fileno(), self._read)

    def _read(self) -> None:
        data = os.read(self._pipe.fileno(), _AT_ONCE)
        if data:
            self._kept.add(data)
            self._sink.write(data)
            return
        self._stop()

    def _stop(self) -> None:
        self._loop.remove_reader(self._pipe.fileno())
        if not self.closed.done():
            self.closed.set_result(None)

    def close(self) -> None:
        """Take what is there still, and read no more."""
        if not self.closed.done():
            os.set_blocking(self._pipe.fileno(), False)
            try:
                while not self.closed.done():
                    self._read()
            except BlockingIOError:
                self._stop()
        self._pipe.close()
        self._sink.close()
