"""Small pieces of text: times, counts, ids, and what fits into a number of columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime

from snapstore import sizes
from snapstore.textdiff import visible

SHORT = 12
"""Digits of an id for people; any prefix of it that is unique is accepted."""

_STEPS = ((60, "second"), (60, "minute"), (24, "hour"), (7, "day"), (5, "week"))


def rfc3339(time: datetime, timespec: str = "auto") -> str:
    """A time in UTC as RFC 3339 writes it."""
    return time.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def ago(then: datetime, now: datetime) -> str:
    """How long ago something was: ``3 minutes ago``; the date when it is more than a month."""
    left = int((now - then).total_seconds())
    if left < 0:
        return rfc3339(then, "seconds")
    if left < 10:
        return "just now"
    for size, unit in _STEPS:
        if left < size:
            return f"{count(left, unit)} ago"
        left //= size
    return f"{then.astimezone(UTC):%Y-%m-%d}"


def duration(seconds: float) -> str:
    """A length of time for people: ``8 s``, ``2 min``, ``3 h``."""
    for limit, step, unit in ((90, 1, "s"), (5400, 60, "min")):
        if seconds < limit:
            return f"{max(1, round(seconds / step))} {unit}"
    return f"{round(seconds / 3600):,} h"


def count(number: int, noun: str) -> str:
    """A number and its noun: ``1 message``, ``2 messages``, ``1,200 replies``."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ply") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def size(number: int) -> str:
    """Bytes for people: ``512 B``, ``4.2 MB``."""
    return sizes.told(number)


def short(snapshot_id: str) -> str:
    """An id as people see it."""
    return snapshot_id[:SHORT]


def one_line(text: str) -> str:
    """Text on one line with nothing hidden: line ends and tabs are written out too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


# --- columns ---------------------------------------------------------------------------------


def cells(text: str) -> int:
    """Columns that text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Text of at most so many columns, ended by an ellipsis where something is missing."""
    if cells(text) <= width:
        return text
    taken, used = [], 0
    for character in text:
        used += _cells(character)
        if used > width - 1:
            break
        taken.append(character)
    return "".join(taken) + "…"


def cut_middle(text: str, width: int) -> str:
    """As cut, but the end stays: names are often told apart by it."""
    if cells(text) <= width:
        return text
    end = text[len(text) - width // 4 :]
    return cut(text, width - cells(end)) + end


def pad(text: str, width: int) -> str:
    """Text filled up with blanks to so many columns."""
    return text + " " * (width - cells(text))


def wrap(text: str, width: int | None) -> Iterator[str]:
    """The lines of a text, each broken at blanks (or anywhere, if need be) to fit the width."""
    for line in text.split("\n"):
        if width is None or cells(line) <= width:
            yield line
        else:
            yield from _broken(line, max(1, width))


def _broken(line: str, width: int) -> Iterator[str]:
    start, blank, used = 0, -1, 0
    at = 0
    while at < len(line):
        used += _cells(line[at])
        if used > width:
            end = blank if blank > start else max(at, start + 1)
            yield line[start:end].rstrip(" ")
            start = end
            while blank > 0 and start < len(line) and line[start] == " ":
                start += 1
            at, blank, used = start, -1, 0
            continue
        if line[at] == " ":
            blank = at
        at += 1
    if start < len(line):
        yield line[start:]
