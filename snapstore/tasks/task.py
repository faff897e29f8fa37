"""A task as an object whose phases are written as decorated functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, overload

from snapstore.errors import InvalidInput
from snapstore.tasks.phase import Phase
from snapstore.tasks.report import Report
from snapstore.tasks.runner import run_task, run_task_async

if TYPE_CHECKING:
    from snapstore.store import Store

F = TypeVar("F", bound=Callable[..., Any])


class Task:
    """A name and phases in the order in which they were added. Iterating gives the phases."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._phases: list[Phase] = []

    @overload
    def phase(self, function: F, /) -> F: ...
    @overload
    def phase(self, *, name: str | None = None, **options: Any) -> Callable[[F], F]: ...
    def phase(self, *function: Any, name: str | None = None, **options: Any) -> Any:
        """Make a function the next phase: ``@task.phase`` or ``@task.phase(retries=3)``.

        It is called like the function unless a name is given; the options are those of ``Phase``.
        """

        def add(phase: F) -> F:
            self.add(Phase(name or phase.__name__, phase, **options))
            return phase

        return add(*function) if function else add

    def add(self, phase: Phase) -> None:
        """Add a phase. Raises InvalidInput when there is one of its name."""
        if any(phase.name == other.name for other in self._phases):
            raise InvalidInput(f"task {self.name} has a phase {phase.name!r} already")
        self._phases.append(phase)

    def __iter__(self) -> Iterator[Phase]:
        return iter(self._phases)

    def run(self, store: Store, **options: Any) -> Report:
        """Run it in a store; see ``run_task``."""
        return run_task(store, self.name, self, **options)

    async def run_async(self, store: Store, **options: Any) -> Report:
        """Run it in a store; see ``run_task_async``."""
        return await run_task_async(store, self.name, self, **options)

    def __repr__(self) -> str:
        return f"<Task {self.name} of {len(self._phases)} phases>"
