"""Effects: what a phase does to the outside and must not do twice.

An effect is known by its key, for the whole life of its task. That it is about to be tried is
recorded before (``intended``), its result after (``done``), so on resume it is one of

    unknown      tried under a new idempotency key
    done         not tried: its recorded result is returned
    failed       it raised an error, so it is known how it ended: tried again, under the same key
    intended     *uncertain*: the run was cut off in between, and it may or may not have happened

What to do about an uncertain one is for the caller to choose: ``raise`` UncertainEffect, ``retry``
under the same idempotency key (right where the other side knows such keys, or twice does no harm),
or ``skip`` and take it for done, with None for its result. An effect that was stopped by a time-out
or an interruption is uncertain too.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from snapstore import values
from snapstore.errors import InvalidInput, UncertainEffect
from snapstore.frozen import freeze
from snapstore.tasks.phase import takes
from snapstore.tasks.record import Records, told

OnUncertain = Literal["raise", "retry", "skip"]


class Settled(NamedTuple):
    """An effect that need not be tried."""

    result: Any


class Attempted(NamedTuple):
    """An effect that is being tried."""

    key: str
    idempotency_key: str

    def call(self, effect: Callable[..., Any]) -> Any:
        """Try it; it is handed its idempotency key when it takes one."""
        return effect(self.idempotency_key) if takes(effect, "idempotency_key") else effect()


class Effects:
    """The effects of one phase, in the records of its task."""

    def __init__(self, records: Records, phase: str) -> None:
        self._records = records
        self._phase = phase

    def begin(self, key: str, on_uncertain: OnUncertain) -> Settled | Attempted:
        """Record that an effect is about to be tried, unless it is settled.

        Raises UncertainEffect, and InvalidInput for what is no key and no choice.
        """
        if not isinstance(key, str) or not key:
            raise InvalidInput(f"{key!r} cannot be the key of an effect")
        if on_uncertain not in ("raise", "retry", "skip"):
            raise InvalidInput(f"on_uncertain is 'raise', 'retry' or 'skip', not {on_uncertain!r}")
        before = self._records.known.effects.get(key)
        if before is None:
            return self._intend(key, uuid.uuid4().hex)
        if before.state in ("done", "skipped"):
            return Settled(freeze(before.result))
        if before.state == "failed" or on_uncertain == "retry":
            return self._intend(key, before.idempotency_key)
        if on_uncertain == "raise":
            raise UncertainEffect(key, before.idempotency_key)
        self._record("skipped", Attempted(key, before.idempotency_key), {"result": None})
        return Settled(None)

    def _intend(self, key: str, idempotency_key: str) -> Attempted:
        attempted = Attempted(key, idempotency_key)
        self._record("intended", attempted, {})
        return attempted

    def end(self, attempted: Attempted, result: Any) -> Any:
        """Record the result of an effect, and return it as it is recorded.

        Raises UnsupportedValue for one that is not JSON; the effect is uncertain then.
        """
        path = f"result of {attempted.key!r} in phase {self._phase!r}"
        kept = values.decode(values.encode(result, path=path))
        self._record("done", attempted, {"result": kept})
        return freeze(kept)

    def fail(self, attempted: Attempted, error: Exception) -> None:
        """Record that an effect raised an error."""
        self._record("failed", attempted, {"error": told(error)})

    def _record(self, state: str, attempted: Attempted, more: dict[str, Any]) -> None:
        message = {
            "type": "effect",
            "key": attempted.key,
            "phase": self._phase,
            "state": state,
            "idempotency_key": attempted.idempotency_key,
            "time": self._records.now(),
            **more,
        }
        self._records.add(f"{self._phase}: {attempted.key} {state}", message)
