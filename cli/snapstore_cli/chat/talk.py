"""One conversation: what is saved of it, and when.

A question is saved before it is asked, as a turn of its own. The answer completes that turn: HEAD
moves on to a snapshot with the same number and the same parent. So a kill between the two leaves
the question at the end of the history, and rewind and undo go by whole turns.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from snapstore import RefMoved, Session
from snapstore.textdiff import first_line
from snapstore_cli.chat.agents import Agent, AgentError, Answer, Message, Piece, Pieces

_LABEL = 60
"""Characters of a question that become the label of its turn."""
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question."""

    ending: Literal["done", "failed", "interrupted"]
    messages: list[Message]
    """The answer, as far as it came; it is saved."""
    error: str = ""
    """Why the agent failed."""


class Talk:
    """A session, and the agent that answers in it."""

    def __init__(self, session: Session, agent: Agent) -> None:
        self.session = session
        self.agent = agent

    @property
    def unanswered(self) -> bool:
        """Whether the last message is a question that has no answer."""
        last = self.session.history[-1] if len(self.session.history) else None
        return isinstance(last, dict) and last.get("role") == "user"

    def ask(self, question: str) -> int:
        """Save a question; how many messages somebody else had added to the session meanwhile."""
        session = self.session
        before = len(session.history)
        message = {"role": "user", "content": question}
        label = first_line(question, _LABEL)
        for left in reversed(range(_TRIES)):
            session.history.append(message)
            try:
                session.save(label)
                break
            except RefMoved:
                session.reload()
                if not left:
                    raise
        return len(session.history) - 1 - before

    def answer(self, show: Callable[[Piece], None]) -> Outcome:
        """Have the last question answered, and save what comes of it, whatever ends it.

        Another exception than those of the agent and Ctrl-C is raised again when that is saved.
        """
        answer = Answer()
        ending: Literal["done", "failed", "interrupted"] = "interrupted"
        error = ""
        try:
            with closing(self._pieces()) as pieces:
                for piece in pieces:
                    answer.add(piece)
                    show(piece)
            ending = "done"
            if not answer.messages():
                raise AgentError("it answered nothing")
        except AgentError as failure:
            ending, error = "failed", str(failure)
        except KeyboardInterrupt:
            pass
        finally:
            messages = answer.messages(cut_off=ending != "done")
            self._save(messages, ending)
        return Outcome(ending, messages, error)

    def _pieces(self) -> Pieces:
        return self.agent.answer(list(self.session.history), self.session.scratchpad)

    def _save(self, messages: list[Message], ending: str) -> None:
        session = self.session
        session.history.extend(messages)
        label = session.head.label if session.head else ""
        for mark in (" (failed)", " (interrupted)"):
            label = label.removesuffix(mark)
        if ending != "done":
            label += f" ({ending})"
        session.complete(label, on_conflict="fork")
