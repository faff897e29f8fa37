"""JSON Lines as programs really leave them: every whole value is a row, all else is reported.

A row keeps its bytes, and the bytes between the rows (line ends, blank lines, damage) can be told
from the rows' offsets, so rows and file together lose nothing. What is met and what becomes of it:

=====================================  ========================================================
byte order mark, CRLF, blank lines     skipped
several whole values on one line       a row each: an append onto a file without a final newline
whole values, then other bytes         the values are rows; the rest is reported
bytes that are not UTF-8, runs of NUL  no row of that line; reported
a line cut short                       no row; reported
a value nested too deeply to read      no row; reported
a value that is no object              a row like any other
the same key twice in an object        the last one counts; the row's bytes hold both
NaN, Infinity, 1e999                   not JSON: read as text ("NaN"), reported
=====================================  ========================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from snapstore.formats.content import Content, InMemory

BYTE_ORDER_MARK = "\ufeff"
_SPACE = " \t\r\n"


class Row:
    """One whole JSON value of a file."""

    __slots__ = ("_content", "is_cut", "line", "offset", "size", "value")

    def __init__(
        self,
        value: Any,
        content: Content,
        line: int,
        offset: int,
        size: int,
        *,
        is_cut: bool = False,
    ) -> None:
        self.value = value
        """The value; what is left of it where the rows were read with a Cut."""
        self.line = line
        """The line it stands on; the first is 1."""
        self.offset = offset
        """Where in the file it begins."""
        self.size = size
        """How many bytes it takes there."""
        self.is_cut = is_cut
        """Whether the value is not all of it."""
        self._content = content

    @property
    def raw(self) -> bytes:
        """The bytes of the value, without what stands around it."""
        return self._content.read(self.offset, self.end)

    @property
    def end(self) -> int:
        """Where in the file what follows begins."""
        return self.offset + self.size

    def whole(self) -> Any:
        """All of the value: read again where it was cut."""
        return read_again(self.raw) if self.is_cut else self.value

    def __repr__(self) -> str:
        return f"<Row of line {self.line}>"


Cut = Callable[[Any], Any]
"""Leaves of a value what is needed to tell what it is; the rest is read again later."""

_CUT_FROM = 512
"""Smaller rows are not worth it."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a file that could not be taken as it stands."""

    line: int
    offset: int
    what: str
    done: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}; {self.done}"


@dataclass(frozen=True, slots=True)
class Rows:
    """A file as rows, in file order."""

    rows: tuple[Row, ...]
    warnings: tuple[Damage, ...]
    content: Content
    """The bytes of the file."""


NO_ROWS = Rows((), (), InMemory(b""))


def load(data: bytes) -> Rows:
    """Read a file that is JSON Lines or, whatever its name says, one JSON document."""
    if isinstance(next(scan(InMemory(data)), None), Damage):
        document = parse_document(data)
        if document is not None:
            return document
    return parse(data)


def parse(data: bytes) -> Rows:
    """Read a whole file of JSON Lines. Never raises: what cannot be read is a warning."""
    return parse_content(InMemory(data))


def parse_content(content: Content, cut: Cut | None = None) -> Rows:
    """As parse; with a cut no more of the values is held in memory than it leaves."""
    rows: list[Row] = []
    warnings: list[Damage] = []
    for found in scan(content, cut):
        if isinstance(found, Row):
            rows.append(found)
        else:
            warnings.append(found)
    return Rows(tuple(rows), tuple(warnings), content)


def read_again(raw: bytes) -> Any:
    """The value of a row, given its bytes."""
    value, _ = _again.read(raw.decode("utf-8"), 0)
    _again.odd.clear()
    return value


def parse_document(data: bytes) -> Rows | None:
    """Read a file that is one JSON document, over as many lines as it likes; None when it is not.

    A file of a single line is both this and JSON Lines, with the same result.
    """
    reader = _Reader()
    try:
        text = data.decode("utf-8")
        start = len(text) - len(text.lstrip(BYTE_ORDER_MARK + _SPACE))
        value, end = reader.read(text, start)
    except (ValueError, RecursionError):
        return None
    if text[end:].strip(_SPACE):
        return None
    before = text[:start].encode()
    content, size = InMemory(data), len(text[start:end].encode())
    row = Row(value, content, before.count(b"\n") + 1, len(before), size)
    return Rows((row,), tuple(reader.notes(row.line, row.offset)), content)


def scan(content: Content, cut: Cut | None = None) -> Iterator[Row | Damage]:
    """The rows and the damage of a file of JSON Lines, in file order, each read when asked for."""
    reader = _Reader()
    offset = 0
    for number, line in enumerate(content.lines(), 1):
        whole = False
        size = len(line)
        try:
            text = line.decode("utf-8")
            value, end = reader.read(text, 0)
            whole = end == len(text)
        except (ValueError, RecursionError):
            pass
        if whole and cut is not None and size >= _CUT_FROM:
            yield Row(cut(value), content, number, offset, size, is_cut=True)
        elif whole:
            yield Row(value, content, number, offset, size)
        else:
            yield from _scan_line(reader, line, number, offset, content)
        if whole and reader.odd:
            yield from reader.notes(number, offset)
        offset += size + 1


def _scan_line(
    reader: _Reader, line: bytes, number: int, offset: int, content: Content
) -> Iterator[Row | Damage]:
    """The rows of a line that is not just one value, then what is wrong with it."""
    reader.odd.clear()
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        what = "not valid UTF-8" if error.end < len(line) else "cut short inside a character"
        yield Damage(number, offset + error.start, what, "the line is kept but not read")
        return
    last = offset + len(line) == content.size
    place = _skip(text, 0, BYTE_ORDER_MARK + _SPACE)
    at = offset + len(text[:place].encode())
    found = 0
    while place < len(text):
        try:
            value, end = reader.read(text, place)
        except (ValueError, RecursionError) as error:
            reader.odd.clear()
            yield _unreadable(error, text[place:], number, at, found, last)
            return
        size = len(text[place:end].encode())
        yield Row(value, content, number, at, size)
        yield from reader.notes(number, at)
        found += 1
        place = _skip(text, end, _SPACE)
        at += size + place - end


def _unreadable(
    error: Exception, rest: str, number: int, at: int, found: int, last: bool
) -> Damage:
    if found:
        what = f"{len(rest.encode())} bytes after the last whole value are not JSON"
        return Damage(number, at, what, "the values before them are read")
    if isinstance(error, RecursionError):
        what = "nested too deeply to read"
    elif not rest.strip("\0"):
        what = f"{len(rest)} NUL bytes"
    elif last:
        what = "cut short at the end of the file"
    else:
        what = "not JSON"
    return Damage(number, at, what, "the line is kept but not read")


def _skip(text: str, place: int, characters: str) -> int:
    while place < len(text) and text[place] in characters:
        place += 1
    return place


class _Reader:
    """A JSON decoder that reads numbers which are not JSON as text and notes that it did."""

    def __init__(self) -> None:
        odd: list[str] = []

        def note(token: str) -> str:  # no method: it would be a circle, and readers are made often
            odd.append(token if len(token) <= 24 else token[:23] + "…")
            return token

        def read_float(token: str) -> float | str:
            number = float(token)
            return number if isfinite(number) else note(token)

        self.odd = odd
        self.read = json.JSONDecoder(parse_constant=note, parse_float=read_float).raw_decode

    def notes(self, line: int, offset: int) -> Iterator[Damage]:
        """What was odd about the value read last."""
        if self.odd:
            numbers = ", ".join(dict.fromkeys(self.odd))
            self.odd.clear()
            yield Damage(line, offset, f"{numbers} is not a JSON number", "read as text")


_again = _Reader()
