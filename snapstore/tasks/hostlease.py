"""Leases between hosts: where no kernel sees all runners, they stand in the log of a ref.

The lease of a task is the ref ``state/lease/TASK``. Taking it, renewing it and giving it back are
moves of this ref by compare-and-swap, so of those who take it at once exactly one succeeds. The
info of a move says

    token         32 hex digits, chosen anew by whoever took it
    pid, host     where its holder runs
    since         when it was taken, in microseconds since the epoch
    lasts         microseconds from this move on after which it has run out

A holder renews it three times in that time, and a holder that was killed does not. Clocks of hosts
differ, so it counts as run out only when half as much time again has passed by this host's clock,
or when this process itself has seen it stand unchanged for all the time that it lasts.

A holder that was stopped for so long may go on as if nothing had happened. That does no harm to the
record of its task: who takes a lease over claims the task there, with the number of the move that
gave the lease to it, and what one with a lower number records after that is refused (see record).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from typing import Protocol, runtime_checkable

from snapstore.engine import Discarding, Engine, Kind, Move, Obj, Update
from snapstore.errors import RefMoved, SnapstoreError
from snapstore.ids import object_id
from snapstore.tasks.lease import Holder, Lease

PREFIX = "state/lease/"
"""How the ref of a lease begins."""

_RENEWALS = 3
_SKEW = 0.5
"""The share of its time that must have passed on top of it, by a clock that may be wrong."""
_SECOND = 1_000_000

_HELD = Obj(object_id(b"lease"), Kind.CONTENT, b"lease")
"""What the ref of a lease that is held points at: all there is to know is in its move."""


@runtime_checkable
class Shared(Engine, Discarding, Protocol):
    """An engine whose store several machines may use."""

    lease_time: float
    """Seconds that a lease lasts without being renewed."""


class HostLeases:
    """The leases of a store that several machines may use."""

    def __init__(self, engine: Shared) -> None:
        self._engine = engine
        self._watched: dict[str, tuple[int, float]] = {}
        """Of each lease that somebody else has its last move, and since when that was it."""
        self.pause = min(0.5, engine.lease_time / 20)

    def take(self, task: str) -> Lease | None:
        """See ``Leases.take``. Raises what a commit raises."""
        tip = self._engine.tip(PREFIX + task)
        if tip is not None and tip.new is not None and not self._ran_out(tip):
            return None
        lease = _HostLease(self._engine, task)
        return lease if lease.begin(tip) else None

    def holder(self, task: str) -> Holder | None:
        """See ``Leases.holder``."""
        tip = self._engine.tip(PREFIX + task)
        if tip is None or tip.new is None or self._ran_out(tip):
            return None
        told = tip.info
        return Holder(told["pid"], told["host"], told["since"], tip.time + told["lasts"])

    def _ran_out(self, tip: Move) -> bool:
        lasts: int = tip.info["lasts"]
        if _now() > tip.time + lasts * (1 + _SKEW):
            return True
        gen, since = self._watched.get(tip.ref, (0, 0.0))
        if gen != tip.gen:
            self._watched[tip.ref] = (tip.gen, time.monotonic())
            return False
        return time.monotonic() - since > lasts / _SECOND


class _HostLease:
    """A lease that this process has taken, and renews until it is given back."""

    def __init__(self, engine: Shared, task: str) -> None:
        self.number = 0
        self.taken_over = False
        self._token = secrets.token_hex(16)
        self._engine = engine
        self._ref = PREFIX + task
        here = Holder.here()
        self._pid = here.pid
        self._told = {
            "token": self._token,
            "pid": here.pid,
            "host": here.host,
            "since": here.since,
            "lasts": int(engine.lease_time * _SECOND),
        }
        self._last: Move | None = None
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew, name="lease", daemon=True)

    def begin(self, tip: Move | None) -> bool:
        """Take it, given the last move of its ref; whether nobody was faster."""
        try:
            self._move("lease", tip)
            assert self._last is not None
            self.number = self._last.gen
            self.taken_over = tip is not None and tip.new is not None
            self._renewing.start()
        except RefMoved:
            return False
        except BaseException:  # Ctrl-C: nobody else would give it back
            self._ended.set()
            with contextlib.suppress(SnapstoreError):
                if self._is_ours():
                    self._move("release", self._last)
            raise
        return True

    def release(self) -> None:
        """See ``Lease.release``. What cannot be given back now runs out."""
        if self._pid != os.getpid() or self._ended.is_set():
            return
        self._ended.set()
        self._renewing.join()
        with contextlib.suppress(SnapstoreError):
            self._move("release", self._last)
            assert self._last is not None
            # Nobody looks at the renewals again, and a long run has many.
            self._engine.discard((), {self._ref: self._last.gen})

    def _renew(self) -> None:
        while not self._ended.wait(self._engine.lease_time / _RENEWALS):
            try:
                self._move("lease", self._last)
            except RefMoved:
                if not self._is_ours():
                    return
            except SnapstoreError:
                continue  # the next try may come in time, or after nobody wanted it

    def _is_ours(self) -> bool:
        """Whether the last move was made here after all, though its outcome was not known."""
        try:
            tip = self._engine.tip(self._ref)
        except SnapstoreError:
            return True  # the next try will tell
        if tip is None or tip.new is None or tip.info["token"] != self._token:
            return False
        self._last = tip
        return True

    def _move(self, op: str, tip: Move | None) -> None:
        held = op == "lease"
        gen = tip.gen if tip is not None else 0
        update = Update(
            self._ref,
            _HELD.id if held else None,
            tip.new if tip is not None else None,
            op,
            _now(),
            self._told if held else {},
            at=gen,
            base=0,  # each stands for itself: nothing goes back to those before
            born=gen + 1,
        )
        self._last = self._engine.commit([_HELD] if held else [], update)


def _now() -> int:
    return time.time_ns() // 1000
