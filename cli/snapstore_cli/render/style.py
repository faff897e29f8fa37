"""Colour by meaning, and what the place that output goes to can show."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TextIO

from snapstore.ids import is_hex_prefix
from snapstore_cli.render import words

Role = Literal[
    "", "id", "name", "heading", "user", "assistant", "tool", "dim", "added", "removed", "warning",
    "error", "match", "bar", "here", "lane0", "lane1", "lane2", "lane3", "lane4", "lane5",
]  # fmt: skip

LANES: tuple[Role, ...] = ("lane0", "lane1", "lane2", "lane3", "lane4", "lane5")
"""For lines that run beside one another, in turn."""

_CODES: dict[str, str] = {
    "id": "33",
    "name": "1;36",
    "heading": "1",
    "user": "1;32",
    "assistant": "1;34",
    "tool": "35",
    "dim": "2",
    "added": "32",
    "removed": "31",
    "warning": "33",
    "error": "1;31",
    "match": "1;31",
    "bar": "36",
    "here": "1;32",
    "lane0": "36",
    "lane1": "35",
    "lane2": "32",
    "lane3": "34",
    "lane4": "33",
    "lane5": "31",
}


class Style:
    """Wraps text in the colour of its role; as it is when colour is off."""

    def __init__(self, on: bool) -> None:
        self.on = on
        self.shortest: Callable[[str], int | None] = lambda digits: None
        """Says how many digits of an id are enough to name it, if known; the others are dimmed."""

    def __call__(self, role: Role, text: str) -> str:
        if not (self.on and role and text):
            return text
        enough = self.shortest(text) if role == "id" and is_hex_prefix(text) else None
        if enough is not None:
            return f"\x1b[33m\x1b[1m{text[:enough]}\x1b[0m\x1b[2m{text[enough:]}\x1b[0m"
        return f"\x1b[{_CODES[role]}m{text}\x1b[0m"


def wants_color(stream: TextIO, choice: str) -> bool:
    """Whether to colour what goes to a stream: as chosen, else on a terminal without NO_COLOR."""
    if choice in ("always", "never"):
        return choice == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


@dataclass(frozen=True, slots=True)
class Look:
    """What output may look like where it goes."""

    style: Style
    width: int | None = None
    """Columns of the terminal; None when output is no terminal and nothing may be cut."""
    unicode: bool = False
    """Whether lines and arrows may be drawn with more than ASCII."""
    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)

    @property
    def terminal(self) -> bool:
        """Whether a person watches."""
        return self.width is not None

    def time(self, then: datetime | None) -> str:
        """A time as people say it on a terminal, as programs write it elsewhere.

        The epoch is no time: what an undated transcript is imported with.
        """
        if then is None or not then.timestamp():
            return "-"
        return words.ago(then, self.now) if self.terminal else words.rfc3339(then, "seconds")

    def within(self, used: int) -> int | None:
        """Columns that are left of a line; None where there are as many as it takes."""
        return None if self.width is None else max(1, self.width - used)

    def cut(self, text: str, used: int = 0) -> str:
        """Text that fits what is left of the line; all of it where nothing may be cut."""
        return text if self.width is None else words.cut(text, max(8, self.width - used))

    def cut_middle(self, text: str, used: int = 0) -> str:
        """As cut, but the end stays: names and paths are often told apart by it."""
        return text if self.width is None else words.cut_middle(text, max(8, self.width - used))
