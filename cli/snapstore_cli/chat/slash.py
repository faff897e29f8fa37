"""Slash commands: what can be typed in a chat besides questions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from snapstore import InvalidInput, NotFound, Session
from snapstore_cli import documents
from snapstore_cli.chat.screen import Screen
from snapstore_cli.chat.talk import Talk
from snapstore_cli.invocation import Invocation
from snapstore_cli.json_values import as_text, parse_value
from snapstore_cli.render import difference, turns

_ALL_PARTS = {"messages", "scratchpad", "files"}


@dataclass(frozen=True, slots=True)
class Slash:
    """A command: how it is written, what it is for, and what it does with the words after it."""

    usage: str
    help: str
    act: Callable[[Commands, str], None]


class Commands:
    """The slash commands of one chat."""

    def __init__(self, run: Invocation, talk: Talk, screen: Screen) -> None:
        self._run = run
        self._talk = talk
        self._screen = screen
        self.again = False
        """Whether the last question is to be asked again."""

    @property
    def _session(self) -> Session:
        return self._talk.session

    def __call__(self, line: str) -> bool:
        """Carry out a line that begins with a slash; False when it ends the chat.

        Raises SnapstoreError.
        """
        name, _, rest = line[1:].partition(" ")
        if name in ("quit", "exit", "q"):
            return False
        command = SLASH.get(name)
        if command is None:
            raise InvalidInput(f"there is no command /{name}", hint="/help lists them")
        command.act(self, rest.strip())
        return True

    def log(self, rest: str) -> None:
        most = _number(rest) if rest else None
        at = documents.names(self._run.store)
        found = islice(self._session.log(), most)
        self._screen.lines(turns.log(found, at, self._screen.look))

    def rewind(self, rest: str) -> None:
        if not rest:
            raise InvalidInput("say how far: /rewind TURN", hint="/log lists the turns")
        self._session.rewind(int(rest) if rest.isdecimal() else rest)
        self._screen.standing(self._session)

    def undo(self, rest: str) -> None:
        self._session.undo(_number(rest) if rest else 1)
        self._screen.standing(self._session)

    def redo(self, rest: str) -> None:
        self._session.redo(_number(rest) if rest else 1)
        self._screen.standing(self._session)

    def fork(self, rest: str) -> None:
        if not rest:
            raise InvalidInput("say what to call it: /fork NAME")
        self._session.fork(rest)
        told = f"{rest} starts from turn {self._session.turn}"
        self._screen.note(f"{told}; `snapstore chat {rest}` goes on there")

    def diff(self, rest: str) -> None:
        if not rest:
            raise InvalidInput("say what with: /diff NAME")
        head = self._session.head
        if head is None:
            raise NotFound(f"{self._session.name} has no turn yet")
        other = self._session.at(rest)
        found = self._run.store.diff(head, other)
        look = self._screen.look
        self._screen.lines(difference.lines(found, self._session.name, rest, _ALL_PARTS, look))

    def scratch(self, rest: str) -> None:
        pad = self._session.scratchpad
        if not rest:
            self._screen.lines(f"{key}: {as_text(value)}" for key, value in pad.items())
            return
        key, equals, written = rest.partition("=")
        key = key.strip()
        if not equals or not key:
            raise InvalidInput(f"{rest!r} is not K=V", hint="/scratch K= removes a key")
        if written.strip():
            pad[key] = _value(key, written.strip())
        else:
            pad.pop(key, None)
        self._session.save(f"scratch {key}")
        self._screen.standing(self._session)

    def retry(self, rest: str) -> None:
        if not self._talk.unanswered:
            raise InvalidInput("the last message is no question that waits for an answer")
        self.again = True

    def repair(self, rest: str) -> None:
        if rest not in ("drop", "answer"):
            raise InvalidInput("say how: /repair drop or /repair answer")
        count = self._session.repair("drop" if rest == "drop" else "answer")
        if count:
            self._session.save(f"repaired {count} tool calls")
        self._screen.standing(self._session)

    def help(self, rest: str) -> None:
        style = self._screen.look.style
        width = max(len(command.usage) for command in SLASH.values())
        told = [(command.usage, command.help) for command in SLASH.values()]
        told += [("/quit", "End the chat."), ("//text", "Ask /text.")]
        for usage, what in told:
            self._screen.lines([f"{style('heading', f'{usage:<{width}}')}  {what}"])


SLASH: dict[str, Slash] = {
    "log": Slash("/log [N]", "The turns, newest first.", Commands.log),
    "rewind": Slash("/rewind TURN", "Go back to a turn.", Commands.rewind),
    "undo": Slash("/undo [N]", "Take back the last turn or move.", Commands.undo),
    "redo": Slash("/redo [N]", "Go forth again.", Commands.redo),
    "fork": Slash("/fork NAME", "Start another session from here.", Commands.fork),
    "diff": Slash("/diff NAME", "What differs from another session.", Commands.diff),
    "scratch": Slash("/scratch [K=V]", "Show the scratchpad, or set a key.", Commands.scratch),
    "retry": Slash("/retry", "Ask the last question again.", Commands.retry),
    "repair": Slash("/repair drop|answer", "Mend calls without a result.", Commands.repair),
    "help": Slash("/help", "This list.", Commands.help),
}
NAMES = tuple(f"/{name}" for name in (*SLASH, "quit"))
"""What can be typed, for completion."""


def _number(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise InvalidInput(f"{text!r} is no number")
    return min(int(text), sys.maxsize)


def _value(key: str, written: str) -> object:
    """JSON where it is JSON, else the text itself: nobody types quotes in a chat."""
    try:
        return parse_value(key, written)
    except InvalidInput:
        return written
