"""JSON that users hand in and JSON that is handed out: exact both ways.

Messages come as one JSON array, or as JSON Lines: a message a line. A file that is one object is
one message. Which of them it is, is seen from the text itself.
"""

from __future__ import annotations

import base64
import json
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from snapstore import values
from snapstore.errors import InvalidInput
from snapstore_cli.deep import with_room

_BLANK = " \t\r\n"


def jsonable(value: Any) -> Any:
    """What stands in JSON for a value that JSON has not: bytes, as ``{"$bytes": base64}``."""
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    raise TypeError(f"{type(value).__name__} is not JSON")


def as_text(value: Any) -> str:
    """A value as JSON on one line, readable rather than all ASCII."""
    return with_room(lambda: json.dumps(value, ensure_ascii=False, default=jsonable))


def read_messages(place: str) -> list[Any]:
    """The messages in a file, or on stdin for ``-``. Raises InvalidInput with line and column."""
    name = "stdin" if place == "-" else place
    try:
        data = sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{name}: {error.strerror or error}") from None
    if not data.removeprefix(BOM_UTF8).strip(_BLANK.encode()):
        raise InvalidInput(
            f"no messages {'on standard input' if place == '-' else f'in {place}'}",
            hint="give a JSON array or JSON Lines; an empty list [] is accepted",
        )
    return parse_messages(data, name)


def parse_messages(data: bytes, name: str) -> list[Any]:
    """The messages in these bytes; name is what to call them in an error."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{name}: line {line} is not UTF-8 (byte {error.start})") from None
    try:
        whole = with_room(lambda: json.loads(text))
    except json.JSONDecodeError as error:
        return _parse_lines(text, name, error)
    return whole if isinstance(whole, list) else [whole]


def _parse_lines(text: str, name: str, whole: json.JSONDecodeError) -> list[Any]:
    messages: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(_BLANK):
            continue
        try:
            messages.append(with_room(lambda line=line: json.loads(line)))  # type: ignore[misc]
        except json.JSONDecodeError as error:
            # Without one whole line before it, it was meant as one document.
            fault, row = (error, number) if messages else (whole, whole.lineno)
            raise InvalidInput(
                f"{name}: line {row}, column {fault.colno}: {fault.msg[:1].lower()}{fault.msg[1:]}",
                hint="give a JSON array of messages, or JSON Lines: one message a line",
            ) from None
    return messages


def refuse_odd(messages: Iterable[Any]) -> None:
    """Raise UnsupportedValue for the first message that holds NaN or an infinity, with its place.

    Python's JSON reader takes these for numbers; they are not JSON.
    """
    for index, message in enumerate(messages):
        values.encode_json(message, path=f"messages[{index}]")


def parse_setting(text: str) -> tuple[str, Any]:
    """Key and value of ``K=JSON``. Raises InvalidInput, which tells how to quote a string."""
    key, equals, written = text.partition("=")
    if not equals or not key:
        raise InvalidInput(f"{text!r} is not K=JSON", hint="""for example: --set 'step=3'""")
    return key, parse_value(key, written)


def parse_value(key: str, written: str) -> Any:
    """The JSON value that is written for a key. Raises InvalidInput."""
    try:
        return with_room(lambda: json.loads(written))
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"the value of {key} is not JSON: {error.msg[:1].lower()}{error.msg[1:]} "
            f"at column {error.colno}",
            hint=f"strings need their quotes: '{key}={json.dumps(written, ensure_ascii=False)}'",
        ) from None
