"""What a conversion could not carry."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Losses:
    """What was left out on the way into another format, and how often."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, times: int = 1) -> None:
        """Note something that was left out, in the plural: ``thinking blocks``."""
        if times:
            self.counts[what] += times

    def listed(self) -> list[tuple[str, int]]:
        """Each with how often, in the order in which they were met."""
        return list(self.counts.items())
