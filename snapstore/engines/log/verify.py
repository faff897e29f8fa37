"""Reading a local store again, byte for byte, and saying exactly what is not as it was written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from snapstore.disk import Disk
from snapstore.engine import Problem, Progress
from snapstore.engines.log import batch as fmt
from snapstore.engines.log.laid import Laid, batches
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.engines.log.records import moves_in
from snapstore.engines.log.segment import Segment
from snapstore.engines.log.sheets import Sheets
from snapstore.engines.log.tail import examine
from snapstore.engines.sheet import Sheet
from snapstore.errors import Corrupt, SnapstoreError

_TOGETHER = 256 << 10
"""Bytes of batches that make a sheet."""


def scan(
    layout: Layout,
    disk: Disk,
    segments: Sequence[Segment],
    damaged: Corrupt | None,
    share: float,
    progress: Progress | None,
) -> Iterator[Problem | Sheet]:
    """See ``snapstore.engines.sheet.Scanned``; in the order of the log."""
    if damaged is not None:
        yield Problem("manifest", damaged.path, damaged.offset, None, str(damaged))
    total = sum(segment.size() for segment in segments)
    done = 0
    for known in segments:
        # Through a descriptor of its own: other threads go on reading, and nothing that the engine
        # remembers stands between verification and the file.
        segment = _again(known, layout, disk)
        if segment is None:
            continue
        try:
            for seen in _segment(segment, segment.size(), share, last=known is segments[-1]):
                if not isinstance(seen, int):
                    yield seen
                elif progress is not None:
                    progress(done + seen, total)
            done += segment.size()
        finally:
            segment.close()
        if share >= 1:
            yield from _indexes(layout, known)
    if share >= 1:
        yield from _modes(layout.root)


def _again(known: Segment, layout: Layout, disk: Disk) -> Segment | None:
    """A segment, opened anew; None when a collection has taken it meanwhile."""
    try:
        return Segment(known.number, known.path, disk)
    except Corrupt:
        if known.number in Manifest.read(layout.manifest).segments:
            raise
        return None


def _segment(
    segment: Segment, stop: int, share: float, *, last: bool
) -> Iterator[Problem | Sheet | int]:
    """The problems and the sheets of one segment up to an offset, between them how far it is."""
    path, start = str(segment.path), 0
    if not stop:
        yield Problem("damaged_batch", path, 0, None, "a segment is empty: all of it is gone")
    previous: Laid | None = None
    while start < stop:
        taken = Sheets(path)
        told = start
        try:
            for offset, laid, wanted in batches(segment, start, stop, share):
                _follows(path, offset, laid, previous)
                yield from taken.add(offset, laid, wanted)
                previous, start = laid, offset + laid.header.size
                if start - told >= _TOGETHER:
                    yield from taken.rest()
                    yield start
                    told = start
            yield from taken.rest()
        except SnapstoreError as error:
            yield from taken.rest()
            number = previous.header.number + 1 if previous else 0
            problem, start = _bad_bytes(segment, start, number, last, error)
            previous = None
            yield problem
        yield start


def _bad_bytes(
    segment: Segment, start: int, number: int, last: bool, error: SnapstoreError
) -> tuple[Problem, int]:
    """What bad bytes from start on mean, and where reading can go on."""
    path, size = str(segment.path), segment.size()
    tail = examine(os.pread(segment.fd, size - start, start), path, start, number)
    if last and not tail.acknowledged:
        message = (f"torn tail: {tail.length} bytes that were never acknowledged; "
                   "the next save sets them aside")  # fmt: skip
        return Problem("torn_tail", path, start, None, message, harmless=True), size
    later = list(segment.whole_batches(start + 1))
    following = later[0] if later else size
    message = f"{following - start} bytes are damaged: {error}"
    if last and later:
        # Of an older segment every batch is found through its index; of the last one none.
        moved = {move.ref for offset in later for move in moves_in(segment.batch(offset))}
        message += f"; later saves are hidden until a repair: {', '.join(sorted(moved))}"
    return Problem("damaged_batch", path, start, None, message), following


def _follows(path: str, offset: int, opened: Laid, previous: Laid | None) -> None:
    """Raises Corrupt for a batch that is whole but stands where it was not written."""
    if previous is None:
        return
    follows = opened.header.number == previous.header.number + 1
    linked = opened.header.previous == previous.digest[: fmt.CHAIN_SIZE]
    if not (follows and linked):
        raise Corrupt("a batch does not follow the one before", path=path, offset=offset)


def _indexes(layout: Layout, segment: Segment) -> Iterator[Problem]:
    for index in segment.indexes:
        if not index.sound():
            message = "an index is damaged; it is made again when needed"
            yield Problem("index", str(layout.index(segment.number)), 0, None, message, True)


def _modes(root: Path) -> Iterator[Problem]:
    for path in sorted([root, *root.rglob("*")]):
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if stat.S_IMODE(mode) & 0o077:
            message = f"others may read it (mode {stat.S_IMODE(mode):04o})"
            yield Problem("mode", str(path), None, None, message, True)
