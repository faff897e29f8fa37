"""Finding refs and abbreviated ids in segments."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from snapstore.engine import Move
from snapstore.engines.log import batch as fmt
from snapstore.engines.log.batch import Batch
from snapstore.engines.log.index import ref_key
from snapstore.engines.log.records import decode_move, decode_page, first_in_page
from snapstore.engines.log.segment import Segment


def tip(active: Segment, ref: str) -> Move | None:
    """The last move of a ref. The active segment starts with all refs, so it alone knows."""
    offset = active.tip_offset(ref_key(ref))
    if offset is None:
        return None
    opened = active.batch(offset)
    for payload in reversed(opened.payloads(fmt.MOVE)):
        found = decode_move(payload)
        if found.ref == ref:
            return found
    return _in_pages(opened, ref)


def _in_pages(opened: Batch, ref: str) -> Move | None:
    pages = opened.payloads(fmt.REFS)
    at = bisect.bisect_right(pages, ref, key=first_in_page) - 1
    if at < 0:
        return None
    return next((move for move in decode_page(pages[at]) if move.ref == ref), None)


def move(segments: Sequence[Segment], ref: str, gen: int) -> Move | None:
    """Move number gen of a ref."""
    key = ref_key(ref, gen)
    for segment in reversed(segments):
        offset = segment.move_offset(key)
        if offset is None:
            continue
        for payload in segment.batch(offset).payloads(fmt.MOVE):
            found = decode_move(payload)
            if found.ref == ref and found.gen == gen:
                return found
    last = tip(segments[-1], ref) if segments else None
    return last if last is not None and last.gen == gen else None


def tips(active: Segment, prefix: str) -> list[Move]:
    """The last move of every ref whose name starts with prefix, in no order."""
    found: dict[str, Move] = {}
    for offset in sorted(active.tip_offsets()):
        for seen in _moves_of(active.batch(offset)):
            if seen.ref.startswith(prefix):
                found[seen.ref] = seen
    return list(found.values())


def _moves_of(opened: Batch) -> Iterator[Move]:
    for page in opened.payloads(fmt.REFS):
        yield from decode_page(page)
    for payload in opened.payloads(fmt.MOVE):
        yield decode_move(payload)


def ids(segments: Sequence[Segment], prefix: bytes, digits: int) -> list[tuple[bytes, int]]:
    """(id, kind) of the objects whose id starts with the first hex digits of prefix."""
    text = prefix.hex()[:digits]
    low = int(text[:16].ljust(16, "0"), 16)
    high = int(text[:16].ljust(16, "f"), 16)
    found: dict[bytes, int] = {}
    for segment in segments:
        for o in segment.between(low, high):
            if o.id.hex().startswith(text):
                found[o.id] = o.kind
    return sorted(found.items())
