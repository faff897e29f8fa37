"""A list of calls that outlives the process, and phases that write to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Journal:
    """What was called, in order, in a file."""

    path: Path

    def note(self, word: str) -> None:
        """Add a word."""
        with self.path.open("a") as file:
            file.write(f"{word}\n")

    @property
    def words(self) -> list[str]:
        """Every word so far."""
        return self.path.read_text().split("\n")[:-1] if self.path.exists() else []

    def phase(self, name: str, result: Any = None) -> tuple[str, Callable[[], Any]]:
        """A phase that notes its name."""

        def run() -> Any:
            self.note(name)
            return result

        return name, run

    def failing(self, name: str) -> tuple[str, Callable[[], Any]]:
        """A phase that notes its name and fails."""

        def run() -> None:
            self.note(name)
            raise RuntimeError(f"{name} fails")

        return name, run
