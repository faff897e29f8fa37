"""A phase: a named step of a task, and what tells whether it is still the step that finished."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from snapstore import values
from snapstore.arguments import number, whole
from snapstore.errors import InvalidInput
from snapstore.ids import object_id


@dataclass(frozen=True, slots=True)
class Phase:
    """A step of a task.

    A finished phase is *changed* when its ``version`` or ``inputs`` are not what they were: then it
    runs again, and so does what comes after it. The code of ``run`` is not looked at, for a comment
    or a renamed variable is no reason to send a mail twice: whoever changes what a phase does says
    so with a new version.
    """

    name: str
    run: Callable[..., Any]
    """Called with the context, or with nothing when it takes nothing; may be async. What it returns
    must be JSON and is handed to the phases after it."""
    version: Any = None
    """A JSON value that names what the code does: a number, a date."""
    inputs: Any = None
    """A JSON value that the phase works on; the order of keys does not count."""
    needs: tuple[str, ...] | None = None
    """The phases that must have finished before; None: all that stand before it."""
    retries: int = 0
    """How often it is tried again after it failed, in the same run."""
    backoff: float = 1.0
    """Seconds before it is tried again; twice as many each further time, a minute at most."""
    timeout: float | None = None
    """Seconds that one attempt may take; None: as long as it takes. See ``deadline``."""

    @property
    def fingerprint(self) -> str:
        """Stands for version and inputs; "" when neither was given. Raises UnsupportedValue."""
        if self.version is None and self.inputs is None:
            return ""
        version = values.encode(self.version, path=f"version of phase {self.name!r}")
        values.encode(self.inputs, path=f"inputs of phase {self.name!r}")
        return object_id(version + values.encode(_sorted(self.inputs))).hex()

    @property
    def is_async(self) -> bool:
        """Whether it has to be awaited, as far as can be seen without running it."""
        run: Any = self.run
        while isinstance(run, partial):
            run = run.func
        return inspect.iscoroutinefunction(run) or inspect.iscoroutinefunction(
            getattr(run, "__call__", None)  # noqa: B004 - an object whose call is async
        )

    def pause(self, attempt: int) -> float | None:
        """Seconds to wait before the attempt after this one; None when there is none."""
        return min(60.0, self.backoff * 2.0 ** (attempt - 1)) if attempt <= self.retries else None


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function is to be handed its one argument.

    It is when it must have one, or calls one by this name: a lambda that binds a loop's variable by
    a default (``lambda x=x: ...``) takes nothing.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    first = next((p for p in parameters if p.kind in positional), None)
    return first is not None and (first.default is inspect.Parameter.empty or first.name == name)


def check(phase: Phase) -> None:
    """Raise InvalidInput when a phase cannot be run."""
    if not isinstance(phase.name, str) or not phase.name.strip():
        raise InvalidInput(f"{phase.name!r} cannot name a phase")
    told = f"phase {phase.name!r}"
    if not callable(phase.run):
        raise InvalidInput(f"{told}: {phase.run!r} cannot be called")
    numbers = whole(phase.retries, f"{told}: retries"), number(phase.backoff, f"{told}: backoff")
    if min(numbers) < 0:
        raise InvalidInput(f"{told}: retries and backoff are not negative")
    if phase.timeout is not None and number(phase.timeout, f"{told}: a timeout") <= 0:
        raise InvalidInput(f"{told}: a timeout is more than 0 seconds")


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(member) for member in value]
    return value
