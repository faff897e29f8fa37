"""How a chat shows on the screen, or on a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from snapstore import Session
from snapstore.textdiff import visible
from snapstore_cli.chat.agents import Message, Piece
from snapstore_cli.errors import describe, tell
from snapstore_cli.output import Output
from snapstore_cli.render import messages as rendered
from snapstore_cli.render import words
from snapstore_cli.render.style import Look

_ARROW = 3
"""Columns of an arrow and a blank."""


class Screen:
    """Answers go to stdout, one line end after each when it is saved; all else to stderr, but for
    what a command was asked to show. With JSON nothing but the document at the end is on stdout."""

    def __init__(self, out: Output, *, watched: bool) -> None:
        """Watched: somebody sits at a terminal."""
        self._out = out
        self._watched = watched
        self._in_line = self._after_whole = False
        self.code = 0
        """Exit code of the first thing that went wrong."""

    @property
    def look(self) -> Look:
        """What output may look like, now."""
        return replace(self._out.look, now=datetime.now(UTC))

    def piece(self, piece: Piece) -> None:
        """Show a piece of an answer."""
        look = self._out.look
        if not isinstance(piece, str):
            text = _readable(piece, look)
        else:  # what the agent prints must not drive the terminal
            text = visible(piece) if look.terminal else piece
        if self._out.json or not text:
            return
        whole = not isinstance(piece, str)
        if self._in_line and (whole or self._after_whole):
            print()
        self._after_whole = whole
        print(text, end="", flush=True)
        self._in_line = not text.endswith("\n")

    def answered(self) -> None:
        """The answer is whole, and saved."""
        if self._in_line:
            print(flush=True)
        self._in_line = self._after_whole = False

    def lines(self, lines: Iterable[str]) -> None:
        """Show what was asked for."""
        if self._out.json:
            for line in lines:
                self._out.note(line)
        else:
            self._out.lines(lines)
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """Tell something by the way."""
        self._out.note(text)

    def standing(self, session: Session) -> None:
        """Tell where the session stands."""
        if session.head is None:
            self._out.note(f"{session.name}: new")
            return
        told = words.count(len(session.history), "message")
        number = words.short(session.head.id)
        self._out.note(f"{session.name}: turn {session.turn} ({number}), {told}")

    def prompt(self, session: Session) -> str:
        """What stands before a question."""
        style = self._out.look.style
        return f"{style('name', session.name)} {style('dim', str(session.turn + 1))}> "

    def refused(self, error: BaseException) -> None:
        """Tell what could not be done; the chat goes on. Whoever watches need not be told again by
        the exit code."""
        told = describe(error)
        self.failed(told.message, told.hint, 0 if self._watched else told.exit_code)

    def failed(self, message: str, hint: str = "", code: int = 1) -> None:
        """Tell what went wrong; the exit code will say so."""
        self.code = self.code or code
        tell(message, hint, self._out.error_style)


def _readable(message: Message, look: Look) -> str:
    """A message as text: what it says, its calls and results each on a line."""
    told: list[str] = []
    call, back = (look.style("tool", arrow) for arrow in rendered.arrows(look))
    for piece in rendered.pieces(message):
        if piece.kind == "call":
            told.append(f"{call} {rendered.call_line(piece)}")
        elif piece.kind == "result":
            result = look.cut(words.one_line(rendered.result_text(piece.body)), _ARROW)
            told.append(f"{back} {result}")
        elif piece.kind == "text" and piece.body:
            text = str(piece.body)
            told.append(visible(text) if look.terminal else text)
    return "\n".join(told)
