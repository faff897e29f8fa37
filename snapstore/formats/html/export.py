"""A store, or one line of it, as a page that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from snapstore.formats.html.held import collectable, held
from snapstore.formats.html.lines import Branches
from snapstore.formats.html.page import page
from snapstore.formats.html.parts import Redaction
from snapstore.formats.html.payload import Payload
from snapstore.maintenance.redact import redact, redact_bytes

if TYPE_CHECKING:
    from snapstore.store import Store

REDACTED = Redaction(redact, redact_bytes)
"""Secrets taken out of everything that goes out."""


def export(
    store: Store,
    shown: Branches,
    title: str,
    *,
    redacted: bool = True,
    start: str = "",
    whole: bool = False,
) -> Iterator[bytes]:
    """The page of these lines in pieces; at no time is more than a few of them in memory.

    ``start`` is the view that it opens with, the history if none is named. What cannot be read
    is told in its place. ``whole``: the lines are all that the store has, so the page tells what
    gc would let go of.
    """
    payload = Payload(store, REDACTED if redacted else None)

    def data() -> Iterator[tuple[str, bytes]]:
        for number, chunk in enumerate(payload.add(shown.heads)):
            yield f"chunk{number}", chunk
        facts = held(store)
        if whole:
            facts["gc"] = collectable(store)
        yield "index", payload.index(shown, facts)

    yield from page(title, data(), start=start)
