"""Numbers that limit how much is shown."""

from __future__ import annotations

import sys
from typing import Any

import click


class _Most(click.IntRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        # Nothing has more entries than a sequence may, and islice refuses larger numbers.
        limit: int = super().convert(value, param, ctx)
        return min(limit, sys.maxsize)


MOST = _Most(min=0)
"""How many entries at most: 0 or any number above."""
