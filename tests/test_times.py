"""Times: to the microsecond where there is such a datetime, and the nearest one elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import Place

from snapstore import Store
from snapstore.times import moment

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


@settings(deadline=None)
@given(st.datetimes(timezones=st.just(UTC)))
def test_every_datetime_is_met_to_the_microsecond(time: datetime) -> None:
    assert moment((time - EPOCH) // timedelta(microseconds=1)) == time


@pytest.mark.parametrize("beyond", [10**18, 2**63 - 1, 10**40])
def test_what_no_datetime_can_say_is_the_first_or_the_last(beyond: int) -> None:
    assert (moment(-beyond), moment(beyond)) == (FIRST, LAST)


@pytest.mark.parametrize(("clock", "told"), [(-(2**63), FIRST), (2**63 - 1, LAST)])
def test_a_session_saved_by_a_wild_clock_is_listed_with_the_others(
    store: Store, place: Place, clock: int, told: datetime
) -> None:
    store.session("good").save()
    wild = place.open()
    wild.clock = lambda: clock
    wild.session("wild").save()
    listed = place.open().sessions()
    assert [info.name for info in listed] == ["good", "wild"]
    assert listed[1].time == told
