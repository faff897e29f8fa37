"""What a harness tells while it works, kept: the files as they change, each turn when it is done.

A harness runs a command at each of its events and hands it the event as JSON. ``read_event`` reads
it, ``handle`` does what it asks for. Settings are what makes a harness run the command at all.
"""

from __future__ import annotations

from snapstore.integrations.hooks.events import Event, read_event
from snapstore.integrations.hooks.handling import Done, Postponed, catch_up, handle

__all__ = ["Done", "Event", "Postponed", "catch_up", "handle", "read_event"]
