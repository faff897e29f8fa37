"""Where the lines of a chat come from: a pipe, a terminal, a terminal with prompt-toolkit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec

Prompt = Callable[[], str]
"""What to show before a line."""
Words = Callable[[str], list[str]]
"""The words that what was typed so far may go on to, each as a whole line."""


def lines(prompt: Prompt, words: Words, *, ask: bool) -> Iterator[str]:
    """Lines without their ends, until there are no more; ask: somebody is at a terminal.

    Ctrl-C at the prompt drops what was typed; Ctrl-D ends.
    """
    if not ask:
        return _piped()
    if find_spec("prompt_toolkit"):
        return _prompted(prompt, words)
    return _typed(prompt)


def _piped() -> Iterator[str]:
    # A name for each undecodable byte: what comes in must be kept, whatever it is.
    for line in sys.stdin.buffer:
        yield line.decode("utf-8", "surrogateescape").rstrip("\r\n")


def _typed(prompt: Prompt) -> Iterator[str]:
    while True:
        try:
            yield input(prompt())
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print("\n(Ctrl-D or /quit ends)")


def _prompted(prompt: Prompt, words: Words) -> Iterator[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import ANSI

    class Complete(Completer):
        def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
            typed = document.text_before_cursor
            return (Completion(word, start_position=-len(typed)) for word in words(typed))

    session: PromptSession[str] = PromptSession(
        completer=Complete(), complete_while_typing=False, enable_open_in_editor=True
    )
    while True:
        try:
            yield session.prompt(ANSI(prompt()))
        except EOFError:
            return
        except KeyboardInterrupt:
            print("(Ctrl-D or /quit ends)")
