"""Places where an engine under test keeps its store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Protocol

from snapstore.engine import Engine


class Opened(Engine, Protocol):
    """An engine with what only its maker calls."""

    def exists(self) -> bool: ...

    def create(self) -> None: ...


@dataclass
class Home:
    """A place where one kind of engine keeps a store."""

    make: Callable[[], Opened]
    opened: ExitStack = field(default_factory=ExitStack)

    def open(self) -> Opened:
        """A handle, closed when the test ends."""
        engine = self.make()
        self.opened.callback(engine.close)
        return engine
