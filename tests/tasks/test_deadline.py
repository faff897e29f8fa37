"""Deadlines: in the main thread and in others, and what they leave behind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable

import pytest
from interrupts import everywhere

from snapstore import PhaseTimedOut, Store
from snapstore.tasks import Phase
from snapstore.tasks.deadline import deadline, undisturbed


def spin(seconds: float) -> None:
    """Be busy in Python code."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def in_thread(work: Callable[[], None]) -> BaseException | None:
    """What work raises in a thread of its own."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    return raised[0] if raised else None


def too_long() -> None:
    with deadline(0.05, "it"):
        try:
            spin(9)
        except Exception as error:
            raise AssertionError("code that is over time must not go on") from error


@pytest.mark.parametrize("run", [lambda work: work(), in_thread])
def test_busy_code_is_stopped(run: Callable[..., BaseException | None]) -> None:
    begun = time.monotonic()
    with pytest.raises(PhaseTimedOut, match=r"it took longer than 0\.05 s"):
        raise run(too_long) or AssertionError
    assert time.monotonic() - begun < 5


def test_a_blocking_call_in_the_main_thread_is_stopped() -> None:
    begun = time.monotonic()
    with pytest.raises(PhaseTimedOut), deadline(0.05, "it"):
        time.sleep(9)
    assert time.monotonic() - begun < 5


def test_a_blocking_call_in_another_thread_ends_first_and_then_counts_as_too_late() -> None:
    def work() -> None:
        with deadline(0.05, "it"):
            time.sleep(0.3)
            spin(0.1)

    assert isinstance(in_thread(work), PhaseTimedOut)


def test_what_is_in_time_is_left_alone_and_nothing_comes_later() -> None:
    def work() -> None:
        for _ in range(20):
            with deadline(0.02, "it"):
                pass
        spin(0.05)

    work()
    assert in_thread(work) is None
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_a_deadline_within_another_holds_too() -> None:
    with deadline(9, "outer"), pytest.raises(PhaseTimedOut, match="inner"), deadline(0.05, "inner"):
        spin(9)


@pytest.mark.parametrize("run", [lambda work: work(), in_thread])
def test_what_must_not_be_torn_apart_is_done_first(
    run: Callable[..., BaseException | None],
) -> None:
    whole: list[bool] = []

    def work() -> None:
        with deadline(0.3, "it"):
            with undisturbed():
                with undisturbed():
                    spin(0.4)
                spin(0.1)
                whole.append(True)
            spin(9)

    with pytest.raises(PhaseTimedOut):
        raise run(work) or AssertionError
    assert whole == [True]


def test_a_phase_that_takes_too_long_fails_and_is_tried_again(store: Store) -> None:
    attempts: list[int] = []

    def slow(ctx: object) -> str:
        attempts.append(1)
        if len(attempts) == 1:
            time.sleep(9)
        return "quick"

    report = store.run_task("t", [Phase("slow", slow, timeout=0.1, retries=1, backoff=0)])
    assert report.results == {"slow": "quick"}
    assert store.session("task/t").history[2]["error"]["type"] == "PhaseTimedOut"


@pytest.mark.parametrize("in_the_main_thread", [True, False])
def test_ctrl_c_leaves_no_alarm_and_no_thread_without_deadlines(
    in_the_main_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_the_main_thread:  # where the error is injected, as in every other thread
        monkeypatch.setattr("snapstore.tasks.deadline._may_set_alarm", lambda: False)
    handler = signal.getsignal(signal.SIGALRM)
    for ctrl_c in everywhere():
        with ctrl_c, deadline(0.2, "work"), undisturbed():
            pass
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
        assert signal.getsignal(signal.SIGALRM) == handler
        with pytest.raises(PhaseTimedOut), deadline(0.001, "work"):
            for _ in range(5000):
                time.sleep(0.001)
    time.sleep(0.3)  # no error comes later, where nobody expects it
