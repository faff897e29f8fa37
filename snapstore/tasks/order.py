"""The order of phases: what each one waits for, and the order in which they can be run."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from snapstore.errors import InvalidInput
from snapstore.tasks.phase import Phase, check

_PAIR = 2


@dataclass(frozen=True, slots=True)
class Order:
    """Phases in an order in which each one stands after what it needs."""

    phases: tuple[Phase, ...]
    waits_for: dict[str, tuple[str, ...]]
    """By name, what a phase waits for. One that needs all before it waits for those since the last
    phase of that kind, which itself waits for the others: so there are no more links than phases.
    """
    given: tuple[Phase, ...]
    """The phases in the order in which they were given."""

    def names(self) -> list[str]:
        """The names in the order in which they were given."""
        return [phase.name for phase in self.given]


def order(phases: Iterable[Phase | tuple[str, Callable[..., Any]]]) -> Order:
    """Put phases in order; pairs of name and function are phases without options.

    Those that could run at the same time stay in the order in which they are given. Raises
    InvalidInput for a name that stands twice, a need that is no phase, needs that go in a circle.
    """
    if isinstance(phases, str) or not isinstance(phases, Iterable):
        raise InvalidInput(f"phases are given as a list, not a {type(phases).__name__}")
    given = tuple(map(_phase, phases))
    places: dict[str, int] = {}
    for place, phase in enumerate(given):
        check(phase)
        if phase.name in places:
            raise InvalidInput(f"there are two phases called {phase.name!r}")
        places[phase.name] = place
    waits_for = _waits_for(given, places)
    return Order(tuple(_sorted(given, waits_for, places)), waits_for, given)


def _phase(item: Phase | tuple[str, Callable[..., Any]]) -> Phase:
    if isinstance(item, Phase):
        return item
    if not isinstance(item, tuple | list) or len(item) != _PAIR:
        raise InvalidInput(f"a phase is a pair of a name and a function, not {item!r}")
    return Phase(*item)


def _waits_for(given: tuple[Phase, ...], places: dict[str, int]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    since = 0
    for place, phase in enumerate(given):
        if phase.needs is None:
            found[phase.name] = tuple(before.name for before in given[since:place])
            since = place
            continue
        for need in phase.needs:
            if need not in places:
                raise InvalidInput(f"phase {phase.name!r} needs {need!r}, which is no phase")
        found[phase.name] = tuple(dict.fromkeys(phase.needs))
    return found


def _sorted(
    given: tuple[Phase, ...], waits_for: dict[str, tuple[str, ...]], places: dict[str, int]
) -> list[Phase]:
    queue = Queue(given, waits_for)
    found: list[Phase] = []
    while (phase := queue.next()) is not None:
        found.append(phase)
        queue.finished(phase.name)
    if len(found) < len(given):
        stuck = ", ".join(repr(name) for name in places if name in queue.waiting)
        raise InvalidInput(f"these phases wait for each other: {stuck}")
    return found


class Queue:
    """Phases on their way: those that wait for nothing come out, the first of them first."""

    def __init__(self, phases: Sequence[Phase], waits_for: Mapping[str, Iterable[str]]) -> None:
        """Only needs among these phases count: all others are met."""
        self._phases = phases
        self._places = {phase.name: place for place, phase in enumerate(phases)}
        self._after: dict[str, list[str]] = {name: [] for name in self._places}
        self.waiting: dict[str, int] = {}
        """How many phases each one that cannot begin yet waits for."""
        for name in self._places:
            needs = [need for need in waits_for[name] if need in self._places]
            for need in needs:
                self._after[need].append(name)
            self.waiting[name] = len(needs)
        self._ready: list[int] = []
        for name in self._places:
            self._begin(name)

    def _begin(self, name: str) -> None:
        if self.waiting[name] == 0:
            del self.waiting[name]
            heapq.heappush(self._ready, self._places[name])

    def next(self) -> Phase | None:
        """The next phase that can begin; None when none can at present."""
        return self._phases[heapq.heappop(self._ready)] if self._ready else None

    def finished(self, name: str) -> None:
        """Those that waited for this phase wait for it no longer."""
        for other in self._after[name]:
            self.waiting[other] -= 1
            self._begin(other)
