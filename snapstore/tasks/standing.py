"""Which of the phases that finished still count.

It is read from the order of the records alone: a phase counts when it is not changed, all that it
waits for counts, and those finished before it did. So a phase that ran again makes those after it
run again, wherever the run was cut off in between.
"""

from __future__ import annotations

from collections.abc import Mapping

from snapstore.tasks.order import Order
from snapstore.tasks.record import Known


def standing(
    known: Known, order: Order, fingerprints: Mapping[str, str] | None = None
) -> dict[str, None]:
    """The names of the finished phases that count, in order; without fingerprints none is taken
    for changed."""
    found: dict[str, None] = {}
    for phase in order.phases:
        done = known.done.get(phase.name)
        if done is None or phase.name in known.taken_back:
            continue
        if fingerprints is not None and done.fingerprint != fingerprints[phase.name]:
            continue
        waits_for = order.waits_for[phase.name]
        if all(name in found and known.done[name].index < done.index for name in waits_for):
            found[phase.name] = None
    return found
