"""Stores to show, and a reader of pages that knows nothing of a browser."""

from __future__ import annotations

import json
import random
import re
import zlib
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import snapstore
from snapstore import Session, Store
from snapstore.formats.html import branches, export

ATTACK = "</script><script>window.harmed = 1</script><img src=x onerror='window.harmed = 2'>"
"""What does harm wherever text is taken for markup."""

_BLOCK = re.compile(rb'<script type="text/plain" id="(\w+)">([^<]*)</script>')


@dataclass(frozen=True, slots=True)
class Read:
    """What a page holds."""

    index: dict[str, Any]
    values: list[Any]

    @classmethod
    def of(cls, page: bytes) -> Read:
        """Everything in a page's data blocks."""
        held = {
            name.decode(): json.loads(zlib.decompress(b64decode(text)))
            for name, text in _BLOCK.findall(page)
        }
        chunks = [held[f"chunk{n}"] for n in range(len(held) - 1)]
        return cls(held["index"], [value for chunk in chunks for value in chunk])

    @property
    def turns(self) -> list[list[Any]]:
        return list(self.index["turns"])

    def line(self, name: str) -> list[list[Any]]:
        """The rows of a session, oldest first."""
        at = next(row for one, row, _, _ in self.index["named"] if one == name)
        rows: list[list[Any]] = []
        while at >= 0:
            rows.append(self.turns[at])
            at = self.turns[at][0]
        return rows[::-1]

    def messages(self, name: str) -> list[Any]:
        """The messages of a session, as the rows of its line put them together."""
        found: list[Any] = []
        for row in self.line(name):
            keep, runs = row[5], row[6]
            del found[keep:]
            for first, number in zip(runs[::2], runs[1::2], strict=True):
                found += self.values[first : first + number]
        return found

    def cells(self, name: str, part: int, names: str) -> dict[str, list[Any]]:
        """The scratchpad (7) or files (8) of a session by key or path."""
        found: dict[str, list[Any]] = {}
        for row in self.line(name):
            for number, *rest in row[part]:
                key = self.index[names][number]
                found.pop(key, None)
                if rest and rest != [-1]:
                    found[key] = rest
        return found

    def scratchpad(self, name: str) -> dict[str, str]:
        return {key: self.values[cell[0]] for key, cell in self.cells(name, 7, "keys").items()}

    def text(self, number: int) -> str:
        """The content of a file."""
        value = self.values[number]
        if isinstance(value, str):
            return value
        base, head, tail, middle, between = value
        lines = self.text(base).split("\n")
        new = middle.split("\n") if between else []
        return "\n".join([*lines[:head], *new, *lines[len(lines) - tail :]])


def page_of(store: Store, **how: Any) -> bytes:
    """The page of a whole store."""
    return b"".join(export(store, branches(store), "a store", **how))


def round_of_tools(n: int, text: str = "") -> Iterable[dict[str, Any]]:
    """A question, an answer with a thought and a tool call, its result."""
    yield {"role": "user", "content": f"question {n} {text}"}
    yield {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": f"a thought {text}", "signature": "s"},
            {"type": "text", "text": f"answer {n} {text}"},
            {"type": "tool_use", "id": f"call{n}", "name": "Bash", "input": {"command": f"ls {n}"}},
        ],
    }
    result = {"type": "tool_result", "tool_use_id": f"call{n}", "content": f"result {n} {text}"}
    yield {"role": "user", "content": [result]}


def told(session: Session, n: int, text: str = "") -> None:
    """Save a turn with a round of tools in it."""
    session.history.extend(round_of_tools(n, text))
    session.scratchpad["step"] = n
    session.save()


def shown_store(root: Path, text: str = "") -> Store:
    """Sessions main and fork with files, a branch left behind, and this text in every place."""
    work = root / "work"
    work.mkdir(parents=True)
    clock = count(1_790_000_000_000_000, 60_000_000).__next__
    store = snapstore.open(root / "store", durable=False, clock=clock)
    main = store.session("main")
    main.worktree = work
    for n in range(1, 7):
        (work / "code.py").write_text("".join(f"line {i}\n" for i in range(30)) + f"turn {n}\n")
        told(main, n, text)
    main.rewind(4)
    told(main, 50, text)
    fork = store.fork(store.resolve("main@3"), "fork")
    fork.scratchpad[f"key {text}"] = f"value {text}"
    told(fork, 60, text)
    fork.save(f"label {text}")
    return store


def left_behind_long_ago() -> Store:
    """A store that gc would let go of something in: a turn that was rewound half a year ago."""
    times = iter(range(0, 10**18, 90 * 86400 * 10**6))
    store = snapstore.open("memory://", clock=times.__next__)
    session = store.session("s")
    told(session, 1)
    told(session, 2)
    session.rewind(1)
    told(session, 3)
    return store


def written(root: Path, text: str = "") -> str:
    """A page in a file; its address."""
    path = root / "page.html"
    path.write_bytes(page_of(shown_store(root, text), redacted=False))
    return path.as_uri()


def grown(turns: int) -> Store:
    """A session of so many turns of four hundred or so bytes each."""
    words = [f"{n:x}" for n in range(0x1000, 0x3000)]
    pick = random.Random(1)
    store = snapstore.open("memory://")
    session = store.session("s")
    for n in range(turns):
        told(session, n, " ".join(pick.choices(words, k=20)))
    return store
