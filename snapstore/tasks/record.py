"""The record of a task: the session ``task/NAME``, whose history tells what happened.

It is a session like any other, so a task can be looked at, diffed, rewound and forked. Each save
adds one record, a JSON object, to the history; the scratchpad is the task's own, as the finished
phases left it; with a worktree each turn holds the files too.

    {"type": "task", "phases": [NAME, ...], "needs": {NAME: [NAME, ...]}, "turn"}
        the phases of a run, where they are not those of the run before; stands with the first
        record of that run, in the same save
    {"type": "phase", "name", "state", "turn", "position", "attempt", "fingerprint", "time", ...}
        state       started, done, failed or interrupted
        turn        the turn that this record is saved in
        position    place of the phase among those of its run, from 0
        attempt     1 for the first in a run
        started     has "back_to" where the scratchpad is not that of the turn before but that of an
                    earlier one: what ran since then does not count any more
        done        has "result" and "seconds"
        failed, interrupted
                    have "error": {"type", "message", "traceback"}, "seconds", and in "scratchpad"
                    what the attempt had changed there and is not kept: {"set": {}, "removed": []}
        facts       what the phase left in ctx.facts, where it left something
    {"type": "effect", "key", "phase", "state", "idempotency_key", "turn", "time", ...}
        state       intended, done, failed or skipped; done has "result", failed has "error"
    {"type": "reset", "phase", "turn", "time"}
        what this phase and those after it finished does not count any more

A phase is saved twice: ``started`` before it runs, ``done`` after. What the records say is read
from the first to the last (``Known``); nothing else is kept.

Where leases can be lost (see hostlease) each turn says in its meta who runs the task, ``{"runner":
{"lease", "pid", "host"}}``. Who has taken the lease over claims the task before anything is done,
by a turn on top of what it has read: nobody with a lower number of the lease adds a record to that.
"""

from __future__ import annotations

import base64
import contextlib
import threading
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from snapstore import arguments
from snapstore.errors import Locked, RefMoved, SnapstoreError
from snapstore.scratchpad import Scratchpad
from snapstore.snapshot import Snapshot
from snapstore.store import given_store
from snapstore.tasks.deadline import undisturbed
from snapstore.tasks.lease import Holder, Lease
from snapstore.times import moment

if TYPE_CHECKING:
    from snapstore.store import Store

PREFIX = "task/"
"""How the name of a task's session begins."""

MOST_TRACEBACK = 20_000
"""Characters of a traceback that are kept, from its end."""

_TRIES = 20
"""How often a record is saved anew when somebody else moves the task's session meanwhile."""

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Done:
    """A phase that finished."""

    index: int
    """Place of its record in the history."""
    turn: int
    started: int
    """The turn in which its start is recorded."""
    fingerprint: str
    result: Any


class Effect(NamedTuple):
    """The last that is known of an effect."""

    state: str
    idempotency_key: str
    result: Any = None


@dataclass(slots=True)
class Known:
    """What the records of a task say."""

    phases: tuple[str, ...] = ()
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    done: dict[str, Done] = field(default_factory=dict)
    """By name, in the order in which they finished."""
    taken_back: set[str] = field(default_factory=set)
    """Those among them that were reset."""
    last: dict[str, Message] = field(default_factory=dict)
    """By name, the last record of a phase since it was reset."""
    began: dict[str, Message] = field(default_factory=dict)
    """By name, the last record of a phase's start."""
    effects: dict[str, Effect] = field(default_factory=dict)
    first_turn: int = 0
    """The turn in which the first phase started; 0 when none has."""

    @classmethod
    def of(cls, history: Iterable[Any]) -> Known:
        """Read the records; what is no record is passed over."""
        known = cls()
        for index, message in enumerate(history):
            if isinstance(message, dict):
                known.add(index, message)
        return known

    def add(self, index: int, message: Message) -> None:
        """Take note of the record at this place of the history."""
        kind = message.get("type")
        if kind == "phase":
            self._phase(index, message)
        elif kind == "effect":
            self.effects[message["key"]] = Effect(
                message["state"], message["idempotency_key"], message.get("result")
            )
        elif kind == "task":
            self.phases = tuple(message["phases"])
            self.needs = {name: tuple(needs) for name, needs in message["needs"].items()}
        elif kind == "reset":
            self.last.pop(message["phase"], None)
            if message["phase"] in self.done:
                self.taken_back.add(message["phase"])

    def _phase(self, index: int, message: Message) -> None:
        name, state = message["name"], message["state"]
        self.last[name] = message
        self._forget(name)
        if state == "started":
            back_to = message.get("back_to")
            if back_to is not None:
                for other in [n for n, done in self.done.items() if done.started >= back_to]:
                    self._forget(other)
            self.began[name] = message
            self.first_turn = self.first_turn or message["turn"]
        elif state == "done":
            started = self.began[name]["turn"] if name in self.began else message["turn"]
            fingerprint, result = message["fingerprint"], message["result"]
            self.done[name] = Done(index, message["turn"], started, fingerprint, result)

    def _forget(self, name: str) -> None:
        self.done.pop(name, None)
        self.taken_back.discard(name)


class Records:
    """The record of one task, being written. Threads may share it."""

    def __init__(self, store: Store, task: str, worktree: str | Path | None = None) -> None:
        self.task = task
        self._store = given_store(store)
        self._mutex = threading.RLock()
        self._session = store.session(PREFIX + arguments.text(task, "the name of a task"))
        if worktree is not None:
            self._session.worktree = worktree
        self.known = Known()
        self._runner: dict[str, Any] | None = None

    def load(self) -> Known:
        """Read what was recorded so far."""
        with self._mutex:
            self._session.reload()
            self.known = Known.of(self._session.history)
            return self.known

    def claim(self, lease: Lease) -> bool:
        """Let the holder of this lease run the task from now on, and nobody who had it before;
        False when there is more on record than was loaded."""
        if not lease.number:
            return True
        here = Holder.here()
        self._runner = {"lease": lease.number, "pid": here.pid, "host": here.host}
        if not lease.taken_over:
            return True
        with self._mutex, undisturbed():
            try:
                self._save(f"run by process {here.pid} on {here.host}", (), None, None)
            except RefMoved:
                return False
            return True

    def add(
        self,
        label: str,
        *messages: dict[str, Any],
        scratchpad: Scratchpad | None = None,
        back_to: int | None = None,
    ) -> Snapshot:
        """Save records as one turn, with the changes that were made to a copy of the scratchpad;
        ``back_to`` takes the scratchpad of that turn instead.

        The lease keeps other runners out; whoever else moves the session (a note in the scratchpad,
        a rewind) does not lose this record, which is then added to what they made of it. Raises
        Locked when another runner has claimed the task since this one did.
        """
        with self._mutex, undisturbed():
            for left in reversed(range(_TRIES)):
                try:
                    return self._save(label, messages, scratchpad, back_to)
                except RefMoved:
                    self._session.reload()
                    self._refuse_when_taken_over()
                    if not left:
                        raise
                except BaseException:
                    # What is not saved must not come along with the next record.
                    with contextlib.suppress(SnapstoreError):
                        self._session.reload()
                    raise
            raise AssertionError("unreachable")

    def _refuse_when_taken_over(self) -> None:
        other = self._session.meta.get("runner")
        if self._runner is None or other is None or other["lease"] <= self._runner["lease"]:
            return
        raise Locked(
            f"task {self.task} was taken over by process {other['pid']} on {other['host']}: the "
            "lease of this run had run out",
            hint="what this run did since is not recorded; the other one goes on",
        )

    def _save(
        self,
        label: str,
        messages: tuple[dict[str, Any], ...],
        scratchpad: Scratchpad | None,
        back_to: int | None,
    ) -> Snapshot:
        session = self._session
        first = len(session.history)
        complete = [{**message, "turn": session.turn + 1} for message in messages]
        session.history.extend(complete)
        if self._runner is not None:
            session.meta = {**session.meta, "runner": self._runner}
        if back_to is not None:
            session.scratchpad = session.at(back_to).scratchpad
        if scratchpad is not None:
            put, removed = scratchpad.edits()
            session.scratchpad.update(put)
            for key in removed:
                session.scratchpad.pop(key, None)
        saved = session.save(label)
        for index, message in enumerate(complete, first):
            self.known.add(index, message)
        return saved

    def scratchpad(self) -> Scratchpad:
        """A copy of the scratchpad as it is saved, to work on."""
        head = self._session.head
        return Scratchpad(self._store.objects, head.record.scratchpad if head else None)

    def restore_files(self, turn: int) -> None:
        """Bring the files back that a turn holds; nothing where it holds none."""
        with self._mutex:
            then = self._session.at(turn)
            if then.record.files is not None:
                self._session.restore(then)

    def now(self) -> str:
        """The time, as records tell it."""
        return moment(self._store.clock()).isoformat().replace("+00:00", "Z")


def told(error: BaseException) -> dict[str, str]:
    """An error as a record keeps it."""
    text = "".join(traceback.format_exception(error))
    if len(text) > MOST_TRACEBACK:
        text = "...\n" + text[-MOST_TRACEBACK:]
    try:
        message = str(error)
    except Exception:
        message = ""
    return {"type": type(error).__name__, "message": message, "traceback": text}


def changes(scratchpad: Scratchpad) -> dict[str, Any] | None:
    """What a copy of the scratchpad changed, as JSON; None for nothing."""
    put, removed = scratchpad.edits()
    return {"set": _json(put), "removed": removed} if put or removed else None


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_json(member) for member in value]
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    return value
