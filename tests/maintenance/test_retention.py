"""Which sessions a rule keeps, and that what goes is only deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from stores import SECOND

from snapstore import Store
from snapstore.errors import InvalidInput
from snapstore.maintenance.retention import Rule, forget


@pytest.fixture
def four(store: Store) -> Store:
    """Sessions d, c, b, a: a was saved last, a day after the others."""
    start = store.clock()
    for n, name in enumerate("dcba"):
        store.clock = lambda n=n: start + (n + 86_400 * (n == 3)) * SECOND  # type: ignore[misc]
        session = store.session(name)
        session.history.append(name)
        session.save()
    return store


def names(store: Store) -> list[str]:
    return [info.name for info in store.sessions()]


def test_the_last_saved_stay(four: Store) -> None:
    done = forget(four, Rule(last=2))
    assert (done.kept, done.deleted) == (("a", "b"), ("c", "d"))
    assert names(four) == ["a", "b"]


def test_those_saved_within_a_time_stay(four: Store) -> None:
    assert forget(four, Rule(within=timedelta(hours=2))).kept == ("a",)


def test_any_part_of_a_rule_keeps(four: Store) -> None:
    head = four.session("d").head
    assert head is not None
    four.tag("release", head)
    assert forget(four, Rule(last=1, tagged=True)).kept == ("a", "d")


def test_the_current_session_stays_in_any_case(four: Store) -> None:
    four.switch("c")
    assert forget(four, Rule(last=1)).kept == ("a", "c")


def test_a_dry_run_deletes_nothing(four: Store) -> None:
    assert forget(four, Rule(last=1), dry_run=True).deleted == ("b", "c", "d")
    assert names(four) == ["a", "b", "c", "d"]


def test_undo_brings_a_forgotten_session_back(four: Store) -> None:
    forget(four, Rule(last=1))
    four.undo("d")
    assert list(four.session("d").history) == ["d"]


def test_a_rule_that_says_nothing_is_refused(four: Store) -> None:
    with pytest.raises(InvalidInput):
        forget(four, Rule())
