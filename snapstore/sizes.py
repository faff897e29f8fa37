"""Sizes as they are told to people."""

from __future__ import annotations


def told(number: int) -> str:
    """Bytes for people: ``512 B``, ``4.2 MB``."""
    if number < 1000:
        return f"{number} B"
    power = min(5, (len(str(number)) - 1) // 3)
    return f"{number / 1000**power:.1f} {' kMGTP'[power]}B"
