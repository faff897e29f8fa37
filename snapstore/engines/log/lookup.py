"""Finding refs and abbreviated ids in segments."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from snapstore.engine import Move
from snapstore.engines.log import batch as fmt
from snapstore.engines.log.batch import Batch
from snapstore.engines.log.records import decode_page, find_in_page, first_in_page, moves_in
from snapstore.engines.log.segment import Segment


def tip(active: Segment, ref: str) -> Move | None:
    """The last move of a ref. The active segment starts with all refs, so it alone knows."""
    offset = active.tip_offset(ref)
    if offset is None:
        return None
    opened = active.batch(offset)
    moved = [found for found in moves_in(opened) if found.ref == ref]
    return moved[-1] if moved else _in_pages(opened, ref)


def _in_pages(opened: Batch, ref: str) -> Move | None:
    pages = opened.payloads(fmt.REFS)
    at = bisect.bisect_right(pages, ref, key=first_in_page) - 1
    if at < 0:
        return None
    return find_in_page(pages[at], ref)


def move(segments: Sequence[Segment], ref: str, gen: int) -> Move | None:
    """Move number gen of a ref."""
    for segment in reversed(segments):
        offset = segment.move_offset(ref, gen)
        if offset is None:
            continue
        for found in moves_in(segment.batch(offset)):
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
    yield from moves_in(opened)


def ids(segments: Sequence[Segment], prefix: bytes, digits: int) -> list[tuple[bytes, int]]:
    """(id, kind) of the objects whose id starts with the first hex digits of prefix."""
    text = prefix.hex()[:digits]
    low = int(text[:16].ljust(16, "0"), 16)
    high = int(text[:16].ljust(16, "f"), 16)
    found: dict[bytes, int] = {}
    for segment in segments:
        found.update(segment.between(low, high))
    return sorted(entry for entry in found.items() if entry[0].hex().startswith(text))
