"""Times as the store keeps them, microseconds since the epoch (UTC), and as datetimes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def moment(microseconds: int) -> datetime:
    """A time as a datetime in UTC; the nearest one there is outside the years 1 to 9999.

    A clock may have been wrong by any amount when a turn was saved, and the turn is still good.
    """
    return _EPOCH + timedelta(microseconds=min(max(microseconds, _FIRST), _LAST))
