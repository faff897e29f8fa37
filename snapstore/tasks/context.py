"""What a phase is handed: the results before it, the task's scratchpad, and ``once``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from snapstore.scratchpad import Scratchpad
from snapstore.tasks.effects import Effects, OnUncertain, Settled
from snapstore.tasks.record import Records


class Attempt:
    """One attempt at a phase, as both kinds of phases see it."""

    def __init__(
        self, records: Records, phase: str, number: int, results: Mapping[str, Any]
    ) -> None:
        self.task = records.task
        """Name of the task."""
        self.phase = phase
        """Name of the phase."""
        self.attempt = number
        """1 for the first attempt in this run."""
        self.results = MappingProxyType(results)
        """What the finished phases returned, by name; read only."""
        self.scratchpad: Scratchpad = records.scratchpad()
        """The task's scratchpad. Changes are kept when the phase finishes, and not when it fails.
        Phases that run side by side do not see each other's."""
        self.facts: dict[str, Any] = {}
        """JSON values to keep with the record of this attempt, however it ends."""
        self._effects = Effects(records, phase)


class Context(Attempt):
    """What a phase is handed."""

    def once(
        self, key: str, effect: Callable[..., Any], on_uncertain: OnUncertain = "raise"
    ) -> Any:
        """Have an effect take place once in the life of the task, and return its result.

        The effect is called with nothing, or with its idempotency key when it takes one argument;
        that key is the same each time it is tried. On resume a recorded result is returned, read
        only, and the effect is not called. See ``effects`` for one whose outcome is unknown.

        Raises UncertainEffect, UnsupportedValue for a result that is not JSON, and what the effect
        raises.
        """
        begun = self._effects.begin(key, on_uncertain)
        if isinstance(begun, Settled):
            return begun.result
        try:
            result = begun.call(effect)
        except Exception as error:
            self._effects.fail(begun, error)
            raise
        return self._effects.end(begun, result)


class AsyncContext(Attempt):
    """What an async phase is handed."""

    async def once(
        self, key: str, effect: Callable[..., Any], on_uncertain: OnUncertain = "raise"
    ) -> Any:
        """As ``Context.once``; the effect may be async too."""
        begun = self._effects.begin(key, on_uncertain)
        if isinstance(begun, Settled):
            return begun.result
        try:
            result = begun.call(effect)
            if inspect.isawaitable(result):
                result = await result
        except Exception as error:
            self._effects.fail(begun, error)
            raise
        return self._effects.end(begun, result)
