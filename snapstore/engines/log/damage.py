"""Damage of what was acknowledged: looking for it where it is said to be, and telling of it.

A segment that was only ever appended to is cut off at a place where a batch ends, or not at all,
and nothing in the file tells the difference. What tells it is a SEAL at the end of a sealed one,
and what cache/ knows of the active one (see witness.py).
"""

from __future__ import annotations

import os

from snapstore.engines.log import batch as fmt
from snapstore.engines.log.batch import Batch, Header
from snapstore.engines.log.layout import Layout
from snapstore.engines.log.segment import Segment
from snapstore.engines.log.witness import Durable
from snapstore.errors import Corrupt, UnsupportedFormat


def verifies_at(segment: Segment, offset: int) -> bool:
    """Whether a batch that verifies begins there now, whatever was read of it before."""
    where = (segment.name, offset)
    try:
        header = Header(os.pread(segment.fd, fmt.HEADER_SIZE, offset), where)
        Batch(os.pread(segment.fd, header.size, offset), where, header)
    except (Corrupt, UnsupportedFormat):
        return False
    return True


def ends_sealed(segment: Segment) -> bool:
    """Whether the last batch in the file says that writing goes on in another one."""
    return segment.is_sealed_before(segment.size())


def shorter(segment: Segment, offset: int, end: int) -> Corrupt:
    """A segment ends at an offset and was durable to its end."""
    return _cut_short(f"{end - offset} bytes", segment.name, offset)


def ends_before(layout: Layout, durable: Durable) -> Corrupt:
    """The log ends before a segment that was durable."""
    return _cut_short("bytes", str(layout.segment(durable.number)), 0)


def _cut_short(what: str, path: str, offset: int) -> Corrupt:
    error = Corrupt(
        f"{what} that were durable are gone from the end of the log, and what was acknowledged in "
        "them",
        path=path,
        offset=offset,
    )
    error.hint = (
        "put the file back as it was; or `snapstore repair --apply` gives up what is gone and goes "
        "on with what is there"
    )
    return error


def refusal(path: str, offset: int) -> Corrupt:
    """Why nothing is saved any more once damage was met."""
    error = Corrupt(
        "what was acknowledged is damaged; nothing is saved until it is mended", path=path,
        offset=offset,
    )  # fmt: skip
    error.hint = (
        "copy the store away, then run `snapstore verify` to see what is touched and "
        "`snapstore repair --apply` to go on with what is whole"
    )
    return error
