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
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

BYTE_ORDER_MARK = "\ufeff"
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One whole JSON value of a file."""

    value: Any
    raw: bytes
    """The bytes of the value, without what stands around it."""
    line: int
    """The line it stands on; the first is 1."""
    offset: int
    """Where in the file ``raw`` begins."""

    @property
    def end(self) -> int:
        """Where in the file what follows begins."""
        return self.offset + len(self.raw)


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
    data: bytes = b""
    """The file's bytes."""


NO_ROWS = Rows((), ())


def load(data: bytes) -> Rows:
    """Read a file that is JSON Lines or, whatever its name says, one JSON document."""
    if isinstance(next(scan(data), None), Damage):
        document = parse_document(data)
        if document is not None:
            return document
    return parse(data)


def parse(data: bytes) -> Rows:
    """Read a whole file of JSON Lines. Never raises: what cannot be read is a warning."""
    rows: list[Row] = []
    warnings: list[Damage] = []
    for found in scan(data):
        if isinstance(found, Row):
            rows.append(found)
        else:
            warnings.append(found)
    return Rows(tuple(rows), tuple(warnings), data)


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
    row = Row(value, text[start:end].encode(), before.count(b"\n") + 1, len(before))
    return Rows((row,), tuple(reader.notes(row.line, row.offset)), data)


def scan(data: bytes) -> Iterator[Row | Damage]:
    """The rows and the damage of a file of JSON Lines, in file order, each read when asked for."""
    reader = _Reader()
    offset = 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        whole = False
        try:
            text = line.decode("utf-8")
            value, end = reader.read(text, 0)
            whole = end == len(text)
        except (ValueError, RecursionError):
            pass
        if whole:
            yield Row(value, line, number, offset)
            if reader.odd:
                yield from reader.notes(number, offset)
        else:
            yield from _scan_line(reader, line, number, offset, last=number == len(lines))
        offset += len(line) + 1


def _scan_line(
    reader: _Reader, line: bytes, number: int, offset: int, *, last: bool
) -> Iterator[Row | Damage]:
    """The rows of a line that is not just one value, then what is wrong with it."""
    reader.odd.clear()
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        what = "not valid UTF-8" if error.end < len(line) else "cut short inside a character"
        yield Damage(number, offset + error.start, what, "the line is kept but not read")
        return
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
        raw = text[place:end].encode()
        yield Row(value, raw, number, at)
        yield from reader.notes(number, at)
        found += 1
        place = _skip(text, end, _SPACE)
        at += len(raw) + place - end


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
        self.odd: list[str] = []
        decoder = json.JSONDecoder(parse_constant=self._odd, parse_float=self._float)
        self.read = decoder.raw_decode

    def notes(self, line: int, offset: int) -> Iterator[Damage]:
        """What was odd about the value read last."""
        if self.odd:
            numbers = ", ".join(dict.fromkeys(self.odd))
            self.odd.clear()
            yield Damage(line, offset, f"{numbers} is not a JSON number", "read as text")

    def _odd(self, token: str) -> str:
        self.odd.append(token if len(token) <= 24 else token[:23] + "…")
        return token

    def _float(self, token: str) -> float | str:
        number = float(token)
        return number if isfinite(number) else self._odd(token)
