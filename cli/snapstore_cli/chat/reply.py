"""What an agent program prints, read as an answer while it comes.

    text             anything else than the following: passed on as it comes
    a message        one JSON object, on any number of lines; or an array of them
    JSON Lines       a JSON object a line: whole messages (tool calls and their results, too), and
                     pieces of the text that is being said: {"text": "..."} or {"delta": "..."}

An object is a message when it has a role, or is an item with a known type; one with content only is
the assistant's. {"error": "..."} is a failure. JSON that is none of these is text: an agent that is
asked for JSON answers with it.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, Literal, NoReturn

from snapstore.toolshapes import is_thinking, parts
from snapstore_cli.chat.agents import AgentError, Piece
from snapstore_cli.deep import with_room

_PIECES = ("text", "delta")


class Reply:
    """Turns the output of a program into pieces of an answer."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._form: Literal["", "text", "lines", "whole"] = ""
        self._held: list[str] = []
        self._line = 0

    def feed(self, data: bytes) -> Iterator[Piece]:
        """The pieces that this much more output completes. Raises AgentError."""
        text = self._decoder.decode(data)
        if self._form == "text":
            yield text
            return
        self._held.append(text)
        if self._form == "":
            yield from self._recognise()
        elif self._form == "lines" and "\n" in text:
            yield from self._lines()

    def end(self) -> Iterator[Piece]:
        """The pieces that are left when the output has ended. Raises AgentError."""
        self._held.append(self._decoder.decode(b"", final=True))
        if self._form == "lines":
            self._held.append("\n")
            yield from self._lines()
        elif (text := "".join(self._held)).strip():
            yield from _whole(text)

    def _recognise(self) -> Iterator[Piece]:
        held = "".join(self._held)
        begun = held.lstrip()
        if not begun:
            return
        if begun[0] not in "{[":
            self._form = "text"
            self._held = []
            yield held
            return
        first, ended, _ = begun.partition("\n")
        if ended:
            found = _loaded(first)
            self._form = "lines" if piece_of(found) is not None else "whole"
            if self._form == "lines":
                yield from self._lines()

    def _lines(self) -> Iterator[Piece]:
        *lines, rest = "".join(self._held).split("\n")
        self._held = [rest]
        for line in lines:
            self._line += 1
            if not line.strip():
                continue
            piece = piece_of(_loaded(line))
            if piece is None:
                raise AgentError(f"line {self._line} of its answer is no message: {line[:60]!r}")
            yield piece


def piece_of(value: Any) -> Piece | None:
    """A JSON value as a piece of an answer; None when it is none. Raises AgentError for an error
    that the agent tells."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("role"), str) or value.get("type") == "message":
        return value
    if next(parts(value), None) is not None or is_thinking(value):
        return value
    if len(value) == 1:
        ((key, said),) = value.items()
        if key in _PIECES and isinstance(said, str):
            return said
        if key == "error":
            raise AgentError(said if isinstance(said, str) else json.dumps(said))
    if isinstance(value.get("content"), (str, list)):
        return {"role": "assistant", **value}
    return None


def _whole(text: str) -> Iterator[Piece]:
    found = _loaded(text)
    several = found if isinstance(found, list) and found else [found]
    pieces = [piece_of(value) for value in several]
    for piece in pieces:
        if piece is None:
            yield text
            return
    yield from (piece for piece in pieces if piece is not None)


def _loaded(text: str) -> Any:
    """The JSON value that a text is; None for what is no JSON."""
    try:
        return with_room(lambda: json.loads(text, parse_constant=_refuse))
    except ValueError:
        return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
