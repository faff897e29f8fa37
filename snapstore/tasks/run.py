"""One run of a task: what is left to do, and the record of each attempt."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from snapstore import values
from snapstore.errors import InvalidInput, PhaseTimedOut, SnapstoreError, UnsupportedValue
from snapstore.frozen import freeze
from snapstore.tasks.context import Attempt
from snapstore.tasks.lease import Lease
from snapstore.tasks.order import Order
from snapstore.tasks.phase import Phase, takes
from snapstore.tasks.record import Known, Records, changes, told
from snapstore.tasks.report import Event, Report, Watch
from snapstore.tasks.standing import standing

if TYPE_CHECKING:
    from snapstore.store import Store

A = TypeVar("A", bound=Attempt)


class Run:
    """A run of a task, by whoever holds its lease. What calls the phases is in ``runner``."""

    def __init__(
        self,
        store: Store,
        task: str,
        order: Order,
        *,
        worktree: str | Path | None,
        restore: bool,
        watch: Watch | None,
    ) -> None:
        self.order = order
        self._store = store
        self._records = Records(store, task, worktree)
        self._restore = restore
        self._watch = watch
        self._fingerprints = {phase.name: phase.fingerprint for phase in order.phases}
        self._places = {name: place for place, name in enumerate(order.names())}
        self._results: dict[str, Any] = {}
        self._ran: list[str] = []
        self._back_to: int | None = None
        self._first = True
        self.left: list[Phase] = []
        """The phases that are to run, in order."""

    # --- before the first phase -------------------------------------------------------------------

    def prepare(self, lease: Lease) -> None:
        """Read the record and find what is left to do. Raises InvalidInput when the phases are not
        those of the task any more."""
        known, kept = self._read()
        while not self._records.claim(lease):
            known, kept = self._read()
        if self.left:
            self._go_back(known, kept)
        for phase in self.order.phases:
            if phase.name in kept:
                self._tell(Event("skipped", phase.name))

    def _read(self) -> tuple[Known, Collection[str]]:
        known = self._records.load()
        self._refuse_another_task(known)
        kept = standing(known, self.order, self._fingerprints)
        self.left = [phase for phase in self.order.phases if phase.name not in kept]
        self._results = {name: done.result for name, done in known.done.items() if name in kept}
        return known, kept

    def _refuse_another_task(self, known: Known) -> None:
        task = self._records.task
        for name in known.done:
            if name not in self._places and name not in known.taken_back:
                raise InvalidInput(
                    f"task {task}: phase {name!r} has finished, and is no phase of it any more",
                    hint="put it back, or reset it to forget that it finished",
                )
        in_line = {phase.name for phase in self.order.given if phase.needs is None}
        in_line &= known.done.keys() - known.taken_back
        before = [name for name in known.phases if name in in_line]
        finished = set(before)
        now = [name for name in self.order.names() if name in finished]
        for then, here in zip(before, now, strict=False):
            if then != here:
                raise InvalidInput(
                    f"task {task}: phase {here!r} stands before {then!r}, and came after it when "
                    "both finished",
                    hint="put them back in order, or reset the first of them that is to run again",
                )

    def _go_back(self, known: Known, kept: Collection[str]) -> None:
        """Let a phase that runs again begin from what it began from, where that is one turn: where
        all that still counts had finished when the first began that does not. The files go back
        only when asked, and then also when no phase runs again."""
        last = max((known.done[name].turn for name in kept), default=0)
        again = min((d.started for name, d in known.done.items() if name not in kept), default=0)
        if last < again:
            self._back_to = again
        turn = self._back_to or last or known.first_turn
        if self._restore and turn:
            self._records.restore_files(turn)

    # --- each attempt -----------------------------------------------------------------------------

    def start(self, phase: Phase, kind: type[A], number: int) -> A:
        """Record that an attempt at a phase begins."""
        messages = [self._about(phase, "started", number)]
        if self._back_to is not None:
            messages[0]["back_to"] = self._back_to
        if self._first:
            messages[:0] = self._about_phases()
        self._records.add(f"{phase.name} started", *messages, back_to=self._back_to)
        self._back_to, self._first = None, False
        self._tell(Event("started", phase.name, number))
        return kind(self._records, phase.name, number, self._results)

    def _about_phases(self) -> list[dict[str, Any]]:
        """The record of which phases there are; none when they are those of the run before."""
        names, known = self.order.names(), self._records.known
        needs = {p.name: p.needs for p in self.order.given if p.needs is not None}
        if known.phases == tuple(names) and known.needs == needs:
            return []
        told = {name: list(names) for name, names in needs.items()}
        return [{"type": "task", "phases": names, "needs": told}]

    def _about(self, phase: Phase, state: str, number: int) -> dict[str, Any]:
        return {
            "type": "phase",
            "name": phase.name,
            "state": state,
            "position": self._places[phase.name],
            "attempt": number,
            "fingerprint": self._fingerprints[phase.name],
            "time": self._records.now(),
        }

    def finish(self, phase: Phase, attempt: Attempt, result: Any, seconds: float) -> None:
        """Record that a phase has finished; result is what ``kept`` made of what it returned."""
        message = {
            **self._about(phase, "done", attempt.attempt),
            "seconds": round(seconds, 3),
            "result": result,
            **_facts(attempt),
        }
        self._records.add(f"{phase.name} done", message, scratchpad=attempt.scratchpad)
        self._results[phase.name] = freeze(result)
        self._ran.append(phase.name)
        self._tell(Event("done", phase.name, attempt.attempt, seconds))

    def fail(
        self, phase: Phase, attempt: Attempt, error: BaseException, seconds: float
    ) -> float | None:
        """Record how an attempt failed; seconds until the next one, None when there is none."""
        pause = phase.pause(attempt.attempt) if _may_pass(error) else None
        state = _end(error)
        message = {
            **self._about(phase, state, attempt.attempt),
            "seconds": round(seconds, 3),
            "error": told(error),
            **_facts(attempt),
        }
        lost = changes(attempt.scratchpad)
        if lost is not None:
            message["scratchpad"] = lost
        try:
            self._records.add(f"{phase.name} {state}: {_headline(error)}", message)
        except SnapstoreError as unrecorded:
            error.add_note(f"that phase {phase.name!r} failed could not be recorded: {unrecorded}")
            pause = None
        self._tell(Event(state, phase.name, attempt.attempt, seconds, pause, error))
        return pause

    def _tell(self, event: Event) -> None:
        if self._watch is not None:
            self._watch(event)

    # --- after the last ---------------------------------------------------------------------------

    def report(self) -> Report:
        """What this run did."""
        ran = set(self._ran)
        names = self.order.names()
        return Report(
            self._records.task,
            list(self._ran),
            [name for name in names if name in self._results and name not in ran],
            {name: self._results[name] for name in names if name in self._results},
        )


def argument(phase: Phase, attempt: Attempt) -> tuple[Attempt, ...]:
    """What a phase is called with."""
    return (attempt,) if takes(phase.run, "ctx") else ()


def kept(phase: Phase, result: Any) -> Any:
    """What a phase returned, as it is recorded. Raises UnsupportedValue, naming the phase."""
    return values.decode(values.encode(result, path=f"result of phase {phase.name!r}"))


def _facts(attempt: Attempt) -> dict[str, Mapping[str, Any]]:
    if not attempt.facts:
        return {}
    try:
        values.encode(attempt.facts, path="facts")
    except UnsupportedValue as error:
        return {"facts": {"unsupported": str(error)}}
    return {"facts": attempt.facts}


def _end(error: BaseException) -> Literal["failed", "interrupted"]:
    return "failed" if isinstance(error, Exception) else "interrupted"


def _may_pass(error: BaseException) -> bool:
    """Whether trying again may help: not with an interruption, nor with what is wrong in itself."""
    if isinstance(error, PhaseTimedOut):
        return True
    return isinstance(error, Exception) and not isinstance(error, SnapstoreError)


def _headline(error: BaseException) -> str:
    with contextlib.suppress(Exception):
        first = str(error).partition("\n")[0][:100]
        return f"{type(error).__name__}: {first}" if first else type(error).__name__
    return type(error).__name__
