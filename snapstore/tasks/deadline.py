"""A deadline for code that runs in this thread.

In the main thread an alarm interrupts it wherever it is, in a blocking system call too. In any
other thread (and where an alarm is set already) Python can only raise the error between two steps
of Python code, so a call that blocks outside of Python ends first. Either way the code has ended
when the deadline's block is left: no attempt goes on behind the back of the next one.

What must not be torn apart, a save, is done ``undisturbed``: the error waits until it is through.

Ctrl-C may come between any two calls. So each thing that is to be taken back is done in the ``try``
that takes it back: an alarm left behind would end the process, and a thread that is left marked as
busy would have no deadlines any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from snapstore.errors import PhaseTimedOut

_LATER = 0.005
"""Seconds after which it is tried again to raise the error in a thread that was undisturbed."""

_mutex = threading.Lock()
_busy: set[int] = set()
"""The threads that are not to be disturbed now."""


class _TimeIsUp(BaseException):
    """Raised in the code that is over time; no ``except Exception`` of its own holds it up."""


@contextlib.contextmanager
def deadline(seconds: float | None, what: str) -> Iterator[None]:
    """Raise PhaseTimedOut in the block when it takes longer than so many seconds; None: never."""
    if seconds is None:
        yield
        return
    try:
        with _alarm(seconds) if _may_set_alarm() else _injection(seconds):
            yield
    except _TimeIsUp:  # it may also come before the block is entered, and when it was just left
        raise timed_out(what, seconds) from None


def timed_out(what: str, seconds: float) -> PhaseTimedOut:
    """The error of something that took longer than so many seconds."""
    return PhaseTimedOut(f"{what} took longer than {seconds:g} s")


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Hold off the deadlines of this thread while the block runs."""
    thread = threading.get_ident()
    outermost = thread not in _busy  # nobody but this thread adds it or takes it out
    try:
        with _mutex:
            _busy.add(thread)
        yield
    finally:
        if outermost:
            _busy.discard(thread)


def _may_set_alarm() -> bool:
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        if threading.get_ident() not in _busy:
            raise _TimeIsUp
        signal.setitimer(signal.ITIMER_REAL, _LATER)

    before = signal.getsignal(signal.SIGALRM)
    try:
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _injection(seconds: float) -> Iterator[None]:
    thread = threading.get_ident()
    over = threading.Event()
    fired = False

    def watch() -> None:
        nonlocal fired
        patience = seconds
        while not fired and not over.wait(patience):
            with _mutex:
                if thread not in _busy and not over.is_set():
                    fired = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(thread), ctypes.py_object(_TimeIsUp)
                    )
            patience = _LATER

    try:
        threading.Thread(target=watch, daemon=True).start()
        yield
    finally:
        with _mutex:
            over.set()
        if fired:
            # It was sent and may not have come yet: it must not come where nobody expects it.
            with contextlib.suppress(_TimeIsUp):
                time.sleep(0.05)
