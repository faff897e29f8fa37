"""Effects: once in the life of a task, and what is said when nobody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from journal import Journal
from stores import Place

from snapstore import InvalidInput, PhaseTimedOut, Store, UncertainEffect, UnsupportedValue
from snapstore.tasks import AsyncContext, Context, Phase
from snapstore.tasks.effects import OnUncertain


class CutOff(BaseException):
    """Stands for a process that is killed: no code of the task's own catches it."""


def cut_off(*args: Any) -> None:
    raise CutOff


def once(
    effect: Callable[..., Any], on_uncertain: OnUncertain = "raise", key: str = "pay-42"
) -> list[tuple[str, Callable[[Context], Any]]]:
    """A task of one phase with one effect."""
    return [("send", lambda ctx: ctx.once(key, effect, on_uncertain=on_uncertain))]


@pytest.fixture
def uncertain(place: Place) -> Place:
    """A place with a task that was cut off in the middle of its effect."""
    with pytest.raises(CutOff):
        place.open().run_task("t", once(cut_off))
    return place


def test_an_effect_takes_place_once_over_many_runs(place: Place, journal: Journal) -> None:
    def phase(ctx: Context) -> Any:
        number = ctx.once("mail", lambda: journal.note("mail") or {"number": 7})
        journal.note("phase")
        if len(journal.words) < 6:
            raise RuntimeError
        return number

    for _ in range(4):
        with pytest.raises(RuntimeError):
            place.open().run_task("t", [("p", phase)])
    assert place.open().run_task("t", [("p", phase)]).results == {"p": {"number": 7}}
    assert journal.words == ["mail"] + ["phase"] * 5


def test_an_effect_costs_one_save_before_and_one_after(place: Place) -> None:
    store, counting = place.counted()
    store.run_task("t", [("first", dict)])
    counting.forget()
    seen: list[int] = []

    def phase(ctx: Context) -> None:
        before = counting.commits
        ctx.once("k", lambda: seen.append(counting.commits - before))
        seen.append(counting.commits - before)

    store.run_task("t", [("first", dict), ("p", phase)])
    assert seen == [1, 2]


def test_a_known_result_is_read_only_as_all_results_are(place: Place) -> None:
    def phase(ctx: Context) -> None:
        ctx.once("k", lambda: {"a": [1]})["a"].append(2)

    for _ in range(2):
        with pytest.raises(TypeError, match="read only"):
            place.open().run_task("t", [("p", phase)])


def test_an_effect_that_was_cut_off_is_reported_with_its_key(uncertain: Place) -> None:
    with pytest.raises(UncertainEffect, match="pay-42") as raised:
        uncertain.open().run_task("t", once(dict))
    assert raised.value.key == "pay-42" and raised.value.idempotency_key
    with pytest.raises(UncertainEffect):  # and again, until somebody decides
        uncertain.open().run_task("t", once(dict))


def test_it_is_tried_again_under_the_same_idempotency_key_when_told_to(place: Place) -> None:
    keys: list[str] = []

    def effect(idempotency_key: str) -> str:
        keys.append(idempotency_key)
        if len(keys) < 3:
            raise CutOff
        return "sent"

    for _ in range(2):
        with pytest.raises(CutOff):
            place.open().run_task("t", once(effect, "retry"))
    assert place.open().run_task("t", once(effect, "retry")).results == {"send": "sent"}
    assert len(keys) == 3 and len(set(keys)) == 1


def test_it_is_taken_for_done_when_told_to(uncertain: Place) -> None:
    store = uncertain.open()
    phases = [*once(cut_off, "skip"), ("after", lambda ctx: ctx.once("pay-42", cut_off))]
    assert store.run_task("t", phases).results == {"send": None, "after": None}


def test_an_effect_that_raised_is_known_to_have_failed_and_tried_again(place: Place) -> None:
    keys: list[str] = []

    def effect(key: str) -> str:
        keys.append(key)
        if len(keys) == 1:
            raise ConnectionError("refused")
        return "sent"

    phases = [Phase(*once(effect)[0], retries=1, backoff=0)]
    assert place.open().run_task("t", phases).results == {"send": "sent"}
    assert len(keys) == 2 and len(set(keys)) == 1


def test_an_effect_that_ran_out_of_time_is_uncertain(place: Place) -> None:
    import time

    phases = [Phase(*once(lambda: time.sleep(5))[0], timeout=0.05)]
    with pytest.raises(PhaseTimedOut):
        place.open().run_task("t", phases)
    with pytest.raises(UncertainEffect):
        place.open().run_task("t", phases)


def test_an_effect_stays_known_when_its_phase_runs_again(place: Place, journal: Journal) -> None:
    for version in (1, 2):
        phase = Phase(*once(lambda: journal.note("sent"))[0], version=version)
        assert place.open().run_task("t", [phase]).ran == ["send"]
    assert journal.words == ["sent"]


def test_a_result_that_cannot_be_kept_leaves_the_effect_uncertain(place: Place) -> None:
    with pytest.raises(UnsupportedValue, match="result of 'pay-42' in phase 'send'"):
        place.open().run_task("t", once(lambda: {1, 2}))
    with pytest.raises(UncertainEffect):
        place.open().run_task("t", once(lambda: 1))


@pytest.mark.parametrize(("key", "choice"), [("", "raise"), (3, "raise"), ("k", "repeat")])
def test_what_is_no_key_and_no_choice_is_refused(store: Store, key: Any, choice: Any) -> None:
    with pytest.raises(InvalidInput):
        store.run_task("t", once(dict, choice, key))


def test_async_phases_have_async_effects(place: Place, journal: Journal) -> None:
    async def effect() -> str:
        await asyncio.sleep(0)
        journal.note("sent")
        return "id"

    async def phase(ctx: AsyncContext) -> list[str]:
        found = [await ctx.once("a", effect), await ctx.once("b", lambda: "plain")]
        if len(journal.words) < 2:
            journal.note("and fails")
            raise RuntimeError
        return found

    with pytest.raises(RuntimeError):
        asyncio.run(place.open().run_task_async("t", [("p", phase)]))
    report = asyncio.run(place.open().run_task_async("t", [("p", phase)]))
    assert report.results == {"p": ["id", "plain"]}
    assert journal.words == ["sent", "and fails"]


def test_an_async_effect_that_was_cancelled_is_uncertain(place: Place) -> None:
    async def phase(ctx: AsyncContext) -> None:
        await ctx.once("slow", lambda: asyncio.sleep(5))

    async def main() -> None:
        running = asyncio.create_task(place.open().run_task_async("t", [("p", phase)]))
        await asyncio.sleep(0.05)
        running.cancel()
        await running

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert place.open().session("task/t").history[-1]["state"] == "interrupted"
    with pytest.raises(UncertainEffect):
        asyncio.run(place.open().run_task_async("t", [("p", phase)]))
