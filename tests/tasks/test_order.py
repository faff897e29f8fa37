"""The order of phases, against the plain reading of what they need."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import InvalidInput
from snapstore.tasks.order import Queue, order
from snapstore.tasks.phase import Phase

NAMES = "abcdef"


@st.composite
def phases(draw: st.DrawFn) -> list[Phase]:
    """Phases with any needs, circles among them too."""
    names = NAMES[: draw(st.integers(0, len(NAMES)))]
    needs = st.none() | st.lists(st.sampled_from(names or "a"), max_size=3, unique=True).map(tuple)
    return [Phase(name, dict, needs=draw(needs)) for name in names]


def needed(given_phases: list[Phase]) -> dict[str, set[str]]:
    """What each phase needs, as its documentation says it."""
    names = [phase.name for phase in given_phases]
    return {
        phase.name: set(names[:place] if phase.needs is None else phase.needs)
        for place, phase in enumerate(given_phases)
    }


def in_order(given_phases: list[Phase]) -> list[str] | None:
    """Always the first phase that can run, one at a time; None when that comes to a stop."""
    left, needs, found = [p.name for p in given_phases], needed(given_phases), list[str]()
    while left:
        name = next((name for name in left if needs[name] <= set(found)), None)
        if name is None:
            return None
        left.remove(name)
        found.append(name)
    return found


@settings(deadline=None, max_examples=300)
@given(phases())
def test_phases_stand_after_what_they_need_and_else_as_they_were_given(given_: list[Phase]) -> None:
    expected = in_order(given_)
    try:
        found = [phase.name for phase in order(given_).phases]
    except InvalidInput as error:
        assert expected is None and "wait for each other" in str(error)
    else:
        assert found == expected


@settings(deadline=None, max_examples=300)
@given(phases())
def test_what_a_phase_waits_for_holds_up_all_that_it_needs(given_: list[Phase]) -> None:
    try:
        found = order(given_)
    except InvalidInput:
        return
    reached: dict[str, set[str]] = {}
    for phase in found.phases:
        waits_for = found.waits_for[phase.name]
        reached[phase.name] = set(waits_for).union(*(reached[name] for name in waits_for))
        assert needed(given_)[phase.name] <= reached[phase.name]


@settings(deadline=None, max_examples=200)
@given(phases(), st.data())
def test_a_queue_gives_what_can_begin_whatever_finishes_first(
    given_: list[Phase], data: st.DataObject
) -> None:
    try:
        found = order(given_)
    except InvalidInput:
        return
    queue = Queue(found.phases, found.waits_for)
    under_way: list[str] = []
    finished: set[str] = set()
    while True:
        while (phase := queue.next()) is not None:
            assert needed(given_)[phase.name] <= finished
            under_way.append(phase.name)
        if not under_way:
            break
        name = data.draw(st.sampled_from(under_way))
        under_way.remove(name)
        finished.add(name)
        queue.finished(name)
    assert len(finished) == len(given_)


def test_a_line_of_phases_has_one_link_each() -> None:
    line = order([(f"phase {n}", dict) for n in range(2000)])
    assert sum(map(len, line.waits_for.values())) == 1999
