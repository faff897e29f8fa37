"""What a store holds, in numbers and bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from snapstore_cli.render import words
from snapstore_cli.render.style import Look

_NAME, _AMOUNT = 15, 9
"""Columns of a name at least, and of an amount."""
_LONGEST_BAR = 50
_EIGHTHS = ("", *"▏▎▍▌▋▊▉")
_SESSIONS = 8
"""Sessions that a terminal is shown, the largest ones."""

_KINDS = {"messages": "messages", "contents": "files, values", "structure": "structure"}
"""What a kind is called here."""


def lines(found: Mapping[str, Any], look: Look) -> Iterator[str]:
    """Counts; bytes on disk against whole copies; bytes by kind; the largest sessions."""
    for name in ("sessions", "turns", "objects"):
        yield _row(name, f"{found[name]:,}", look)
    kept, whole = found["bytes"], found["logical_bytes"]
    saves = kept and whole > kept
    sizes = [("on disk", kept), ("as whole copies", whole)][: 1 + bool(saves)]
    yield from _bars(sizes, look)
    if saves:
        yield _row("saved", f"{100 * (1 - kept / whole):.1f} %", look)
    if found["kinds"] is not None:
        yield from _headed("by kind, before compression", look)
        yield from _bars([(_KINDS[kind], size) for kind, size in found["kinds"].items()], look)
    if found["by_session"]:
        yield from _sessions(found["by_session"], look)


def _sessions(found: Mapping[str, int], look: Look) -> Iterator[str]:
    """Each session with the bytes of its messages; on a terminal the largest ones."""
    yield from _headed("by session, as it stands", look)
    largest = sorted(found.items(), key=lambda one: one[1], reverse=True)
    if look.width is None:
        yield from _bars(largest, look)
        return
    room = max(_NAME, look.width // 3)
    shown = [(words.cut_middle(name, room), size) for name, size in largest[:_SESSIONS]]
    yield from _bars(shown, look)
    if len(shown) < len(found):
        yield look.style("dim", f"and {len(found) - len(shown):,} more")


def _headed(title: str, look: Look) -> Iterator[str]:
    """The title of a part, on a terminal only: elsewhere each line is a record."""
    if look.terminal:
        yield ""
        yield look.style("heading", title)


def _bars(rows: Sequence[tuple[str, int]], look: Look) -> Iterator[str]:
    """Sizes, on a terminal with bars on one scale."""
    longest = max(_NAME, *(words.cells(name) for name, _ in rows)) if look.terminal else 0
    most = max(1, *(number for _, number in rows))
    for name, number in rows:
        row = _row(name, words.size(number), look, longest)
        room = look.within(longest + _AMOUNT + 4)
        if room is not None:
            row += "  " + look.style("bar", _bar(number / most, min(_LONGEST_BAR, room), look))
        yield row


def _bar(share: float, room: int, look: Look) -> str:
    """A bar over so much of the room, to an eighth of a column where that can be drawn."""
    if not look.unicode:
        return "#" * max(1, round(share * room))
    whole, eighths = divmod(max(1, round(share * room * 8)), 8)
    return f"{'█' * whole}{_EIGHTHS[eighths]}"


def _row(name: str, told: str, look: Look, width: int = 0) -> str:
    named = words.pad(name, max(width, _NAME))
    return f"{look.style('dim', named)}  {told:>{_AMOUNT}}"
