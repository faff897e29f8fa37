"""Looking at the tasks of a store, and taking back that a phase finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from snapstore import refs
from snapstore.errors import Locked, NotFound
from snapstore.tasks.lease import Holder
from snapstore.tasks.record import PREFIX, Known, Records

if TYPE_CHECKING:
    from snapstore.store import Store

State = Literal["waiting", "running", "done", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class PhaseStatus:
    """How far a phase has come."""

    name: str
    state: State
    """``waiting`` also when it finished, and then one that it needs ran again or was reset."""
    attempt: int = 0
    time: str = ""
    """When it got into this state, as RFC 3339; "" when it never ran."""
    seconds: float | None = None
    """How long the last attempt took."""
    result: Any = None
    error: str = ""
    """Why it failed: type and message."""
    facts: Any = None


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """How far a task has come, by the phases of its last run."""

    name: str
    phases: tuple[PhaseStatus, ...]
    holder: Holder | None
    """Who runs it now; None when nobody does."""
    uncertain: tuple[str, ...]
    """The keys of effects of which nobody knows whether they took place."""

    @property
    def finished(self) -> int:
        """How many phases are done."""
        return sum(phase.state == "done" for phase in self.phases)


def tasks(store: Store) -> list[str]:
    """The names of all tasks."""
    prefix = refs.SESSIONS + PREFIX
    return [tip.ref.removeprefix(prefix) for tip in store.engine.tips(prefix) if tip.new]


def status(store: Store, name: str) -> TaskStatus:
    """How far a task has come. Raises NotFound."""
    known = _known(store, name)
    holder = store.leases.holder(name)
    counts = _counts(known)
    phases = tuple(_phase(known, phase, phase in counts, holder) for phase in known.phases)
    uncertain = tuple(key for key, effect in known.effects.items() if effect.state == "intended")
    return TaskStatus(name, phases, holder, uncertain)


def reset(store: Store, name: str, phase: str) -> list[str]:
    """Let a phase and those after it run again; their names, in order.

    That they finished is still in the record, and undo of the session ``task/NAME`` brings it back.
    Effects stay known by their keys: what took place once does not take place again. Raises
    NotFound, and Locked while the task is being run.
    """
    lease = store.leases.take(name) if store.exists(PREFIX + name) else None
    if lease is None:
        _known(store, name)
        raise Locked(f"task {name} is being run by {store.leases.holder(name) or 'somebody else'}")
    try:
        records = Records(store, name)
        before = _counts(records.load())
        if phase not in {*records.known.phases, *records.known.done}:
            phases = ", ".join(records.known.phases)
            raise NotFound(f"task {name} has no phase {phase!r}; it has: {phases}")
        records.add(
            f"{phase} reset", {"type": "reset", "phase": phase, "time": records.now()}
        )
        return [other for other in before if other not in _counts(records.known)]
    finally:
        lease.release()


def _known(store: Store, name: str) -> Known:
    session = store.session(PREFIX + name)
    if session.head is None:
        raise NotFound(f"there is no task {name}", hint="`snapstore task status` lists the tasks")
    return Known.of(session.history)


def _counts(known: Known) -> list[str]:
    """The finished phases that count, whatever becomes of their fingerprints; see ``run``."""
    found: dict[str, int] = {}
    left = list(known.phases)
    while True:
        more = [name for name in left if _is_settled(known, name, found)]
        if not more:
            return [name for name in known.phases if name in found]
        found.update((name, known.done[name].index) for name in more)
        left = [name for name in left if name not in found]


def _is_settled(known: Known, name: str, found: dict[str, int]) -> bool:
    raise NotImplementedError
