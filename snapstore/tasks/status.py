"""Looking at the tasks of a store, and taking back that a phase finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from snapstore import refs
from snapstore.errors import Locked, NotFound
from snapstore.tasks.lease import Holder
from snapstore.tasks.order import order
from snapstore.tasks.phase import Phase
from snapstore.tasks.record import PREFIX, Known, Records
from snapstore.tasks.standing import standing

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
    counting = _counting(known)
    phases = tuple(_phase(known, phase, phase in counting, holder) for phase in known.phases)
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
        before = _counting(records.load())
        while not records.claim(lease):
            before = _counting(records.load())
        if phase not in {*records.known.phases, *records.known.done}:
            phases = ", ".join(records.known.phases)
            raise NotFound(f"task {name} has no phase {phase!r}; it has: {phases}")
        records.add(f"{phase} reset", {"type": "reset", "phase": phase, "time": records.now()})
        now = _counting(records.known)
        return [other for other in before if other not in now]
    finally:
        lease.release()


def _known(store: Store, name: str) -> Known:
    session = store.session(PREFIX + name)
    if session.head is None:
        raise NotFound(f"there is no task {name}", hint="`snapstore task status` lists the tasks")
    return Known.of(session.history)


def _counting(known: Known) -> dict[str, None]:
    """The finished phases that count if none was changed."""
    phases = [Phase(name, _nothing, needs=known.needs.get(name)) for name in known.phases]
    return standing(known, order(phases))


def _nothing() -> None:
    """Stands for what a phase does, where that is of no matter."""


def _phase(known: Known, name: str, counts: bool, holder: Holder | None) -> PhaseStatus:
    last = known.last.get(name)
    if last is None or (last["state"] == "done" and not counts):
        return PhaseStatus(name, "waiting")
    state = last["state"]
    if state == "started":
        # Its end is not recorded: either it is under way, or its runner was killed.
        state = "running" if holder else "interrupted"
    error = last.get("error", {})
    return PhaseStatus(
        name,
        state,
        last["attempt"],
        last["time"],
        last.get("seconds"),
        last.get("result"),
        f"{error['type']}: {error['message']}" if error else "",
        last.get("facts"),
    )
