"""The conversations that are measured, made from a seed so that every run gets the same bytes."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

Message = dict[str, Any]

_VOCABULARY = (
    "agent answer branch build cache call check class client column commit config count cursor",
    "delete diff error event fail field file filter fix flag function handler header import index",
    "input insert item key label limit line list load lock log loop map merge message method model",
    "module name node number object offset order output page parse path patch pool query queue",
    "read ready record refactor request response result retry return row run save scan schema",
    "server session set sort source split stack state step store stream string table task test",
    "thread time token trace tree turn type update user value view wait walk write",
)
_WORDS = " ".join(_VOCABULARY).split()


def text(rng: random.Random, length: int) -> str:
    """Words with some hex numbers between them: compresses about as tool output does."""
    words: list[str] = []
    size = 0
    while size < length:
        word = rng.choice(_WORDS) if rng.random() < 0.8 else f"{rng.getrandbits(28):x}"
        words.append(word)
        size += len(word) + 1
    return " ".join(words)[:length]


def turn(number: int, size: int = 2048) -> list[Message]:
    """The four messages of a turn with one tool call: about ``size`` bytes of compact JSON."""
    rng = random.Random(number * 7919 + 1)
    body = max(200, size - 330)
    call = f"toolu_{number:06d}_{rng.getrandbits(32):08x}"
    return [
        {"role": "user", "content": text(rng, body * 15 // 100)},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": text(rng, body * 10 // 100)},
                {
                    "type": "tool_use",
                    "id": call,
                    "name": "read_file",
                    "input": {"path": f"src/module_{number % 37}.py", "limit": number % 200},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": call, "content": text(rng, body * 55 // 100)}
            ],
        },
        {"role": "assistant", "content": text(rng, body * 20 // 100)},
    ]


def pair(number: int) -> list[Message]:
    """A question and an answer: about 2 KB of JSON."""
    rng = random.Random(number * 104729 + 1)
    return [
        {"role": "user", "content": text(rng, 350)},
        {"role": "assistant", "content": [{"type": "text", "text": text(rng, 1600)}]},
    ]


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """A folder on a real disk, removed at the end."""
    import shutil

    path = Path(mkdtemp(prefix="snapstore-bench-", dir=parent or Path.cwd()))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def clock(run: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def best(run: Callable[[], Any], times: int = 5) -> float:
    """The least of several runs, seconds: what the work costs when nothing disturbs it."""
    return min(clock(run) for _ in range(times))


def median(values: list[float]) -> float:
    """The median."""
    return statistics.median(values)


def bytes_in(folder: Path) -> int:
    """Bytes of the files under a folder, caches left out."""
    return sum(
        p.stat().st_size
        for p in folder.rglob("*")
        if p.is_file() and "cache" not in p.relative_to(folder).parts
    )


def show(rows: list[tuple[str, str, str]]) -> None:
    """Print a table: what, measured, at most."""
    heads = ("what", "measured", "asked for")
    table = [heads, *rows]
    wide = [max(len(row[i]) for row in table) for i in range(3)]
    for n, row in enumerate(table):
        print("| " + " | ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)) + " |")
        if n == 0:
            print("|" + "|".join("-" * (w + 2) for w in wide) + "|", flush=True)
