"""Agents that are models behind an API, by the packages of those who offer them.

They are used when a key is in the environment and the extra is installed: ``snapstore[anthropic]``
with ANTHROPIC_API_KEY, ``snapstore[openai]`` with OPENAI_API_KEY. Keys and addresses are read by
those packages themselves, and never stored.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from snapstore.scratchpad import SavedScratchpad
from snapstore_cli.chat.agents import INTERRUPTED, Agent, AgentError, Pieces

KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
"""By name of the extra, the variable that holds its key."""

ANTHROPIC_MODEL = "claude-sonnet-5-5"
OPENAI_MODEL = "gpt-5.5"
"""The models that are asked when none is named."""

_MOST_TOKENS = 8192


def available() -> str | None:
    """The first API that has its key and its package; None when none has."""
    found = (name for name, key in KEYS.items() if os.environ.get(key) and find_spec(name))
    return next(found, None)


def connect(api: str, model: str | None) -> Agent:
    """The agent behind this API. Raises AgentError when its package or key is missing."""
    if not find_spec(api):
        raise AgentError(f"install it first: pip install 'snapstore[{api}]'")
    if not os.environ.get(KEYS[api]):
        raise AgentError(f"set {KEYS[api]} to your key")
    return AnthropicAgent(model) if api == "anthropic" else OpenAIAgent(model)


class AnthropicAgent:
    """Claude, by the package ``anthropic``."""

    def __init__(self, model: str | None = None) -> None:
        import anthropic

        self._model = model or ANTHROPIC_MODEL
        self._errors = anthropic.AnthropicError
        self._client = anthropic.Anthropic()
        self.name = self._model

    def answer(self, messages: list[Any], scratchpad: SavedScratchpad) -> Pieces:
        """See ``Agent.answer``."""
        more = {"system": _notes(scratchpad)} if scratchpad else {}
        sent = _as_taken(messages, ("user", "assistant"), ("role", "content"))
        try:
            with self._client.messages.stream(
                model=self._model, max_tokens=_MOST_TOKENS, messages=sent, **more
            ) as stream:
                yield from stream.text_stream
        except self._errors as error:
            raise AgentError(_told(error)) from error


class OpenAIAgent:
    """A model behind the Chat Completions API, by the package ``openai``."""

    def __init__(self, model: str | None = None) -> None:
        import openai

        self._model = model or OPENAI_MODEL
        self._errors = openai.OpenAIError
        self._client = openai.OpenAI()
        self.name = self._model

    def answer(self, messages: list[Any], scratchpad: SavedScratchpad) -> Pieces:
        """See ``Agent.answer``."""
        roles = ("user", "assistant", "tool", "function", "system", "developer")
        sent = _as_taken(messages, roles, None)
        if scratchpad:
            sent.insert(0, {"role": "system", "content": _notes(scratchpad)})
        try:
            with self._client.chat.completions.create(
                model=self._model, messages=sent, stream=True
            ) as stream:
                for chunk in stream:
                    for choice in chunk.choices:
                        yield choice.delta.content or ""
        except self._errors as error:
            raise AgentError(_told(error)) from error


def _as_taken(
    messages: list[Any], roles: tuple[str, ...], keys: tuple[str, ...] | None
) -> list[Any]:
    """The messages without what the API does not know. Raises AgentError for one of another shape.

    What was cut off before a word came has nothing to send, and the APIs refuse empty messages.
    """
    taken = []
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in roles:
            raise AgentError(
                f"message {number} is not of the shape that this API takes; see `snapstore show`"
            )
        known = {k: v for k, v in message.items() if (k in keys if keys else k != INTERRUPTED)}
        if known.get("content") or "tool_calls" in known:
            taken.append(known)
    return taken


def _notes(scratchpad: SavedScratchpad) -> str:
    return f"Notes that are kept with this conversation:\n{scratchpad.summary()}"


def _told(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
