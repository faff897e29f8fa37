"""Times as they are typed: 90d, 24h, 0."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import click

_UNITS = {"": 86400, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_FORM = re.compile(r"(\d{1,6})([smhdw]?)")


class _Duration(click.ParamType):  # type: ignore[type-arg]
    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = _FORM.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is no time; write 0, 30m, 24h, 7d or 2w", param, ctx)
        return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


DURATION = _Duration()
"""A time span; a number alone is days."""
