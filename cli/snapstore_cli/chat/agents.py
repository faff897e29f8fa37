"""Agents: who answers in a chat, and how an answer is put together from what they say."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

from snapstore.scratchpad import SavedScratchpad

Message = dict[str, Any]
Piece = str | Message
"""Part of an answer: a piece of the text that is being said, or a whole message."""
Pieces = Generator[Piece, None, None]

INTERRUPTED = "interrupted"
"""Key of a message that was cut off: what came of it is kept, with ``"interrupted": true``."""


class AgentError(Exception):
    """An agent gave no answer, or broke off."""


class Agent(Protocol):
    """Whoever answers."""

    name: str
    """What to call it on the screen."""

    def answer(self, messages: list[Any], scratchpad: SavedScratchpad) -> Pieces:
        """The pieces of an answer to these messages, as they come.

        Closing the generator makes the agent stop. Raises AgentError.
        """


class Echo:
    """Says again what was said to it: for trying things out, and when there is nobody else."""

    name = "echo"

    def answer(self, messages: list[Any], scratchpad: SavedScratchpad) -> Pieces:
        """The text of the last message."""
        last = messages[-1] if messages else ""
        said = last.get("content") if isinstance(last, dict) else last
        yield said if isinstance(said, str) else "(nothing to echo)"


class Answer:
    """An answer under way."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._said: list[str] = []

    def add(self, piece: Piece) -> None:
        """Take the next piece."""
        if isinstance(piece, str):
            self._said.append(piece)
            return
        self._close({})
        self._messages.append(piece)

    def messages(self, *, cut_off: bool = False) -> list[Message]:
        """The messages of the answer; cut off: the text that is under way was not finished."""
        self._close({INTERRUPTED: True} if cut_off else {})
        return self._messages

    def _close(self, marks: Message) -> None:
        text = "".join(self._said).rstrip("\n")
        self._said.clear()
        if text:
            self._messages.append({"role": "assistant", "content": text, **marks})
