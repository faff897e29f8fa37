"""Reading a local store again, byte for byte, and saying exactly what is not as it was written."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from snapstore.disk import Disk
from snapstore.engine import Kind, Problem, Progress
from snapstore.engines.log import batch as fmt
from snapstore.engines.log.batch import HEADER_SIZE, Batch, Header
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.engines.log.records import decode_page, moves_in
from snapstore.engines.log.segment import Segment
from snapstore.engines.log.tail import examine
from snapstore.errors import Corrupt, SnapstoreError
from snapstore.ids import object_id


def verify(
    layout: Layout,
    disk: Disk,
    segments: Sequence[Segment],
    damaged: Corrupt | None,
    progress: Progress | None,
) -> Iterator[Problem]:
    """Every problem of the files, in the order of the log."""
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
            for seen in _segment(segment, last=known is segments[-1]):
                if isinstance(seen, Problem):
                    yield seen
                elif progress is not None:
                    progress(done + seen, total)
            done += segment.size()
        finally:
            segment.close()
        yield from _indexes(layout, known)
    yield from _modes(layout.root)


def _again(known: Segment, layout: Layout, disk: Disk) -> Segment | None:
    """A segment, opened anew; None when a collection has taken it meanwhile."""
    try:
        return Segment(known.number, known.path, disk)
    except Corrupt:
        if known.number in Manifest.read(layout.manifest).segments:
            raise
        return None


def verify_part(
    layout: Layout, disk: Disk, segments: Sequence[Segment], share: float
) -> Iterator[Problem]:
    """The problems of a random part of all batches. Of the others only the headers are read."""
    for known in segments:
        segment = _again(known, layout, disk)
        if segment is None:
            continue
        path, at = str(segment.path), 0
        try:
            while at < known.end:
                header = Header(os.pread(segment.fd, HEADER_SIZE, at), (path, at))
                if random.random() < share:
                    yield from _records(path, at, segment.batch(at))
                at += header.size
        except SnapstoreError as error:
            message = f"bytes are damaged: {error}; `snapstore verify` says how many"
            yield Problem("damaged_batch", path, at, None, message)
        finally:
            segment.close()


def _segment(segment: Segment, *, last: bool) -> Iterator[Problem | int]:
    """The problems of one segment, between them how far reading has come."""
    path, start, size = str(segment.path), 0, segment.size()
    previous: Batch | None = None
    while start < size:
        try:
            for offset, opened in segment.scan(start, size):
                _follows(path, offset, opened, previous)
                yield from _records(path, offset, opened)
                previous, start = opened, offset + opened.header.size
                yield start
        except SnapstoreError as error:
            number = previous.header.number + 1 if previous else 0
            problem, start = _bad_bytes(segment, start, number, last, error)
            previous = None
            yield problem


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


def _follows(path: str, offset: int, opened: Batch, previous: Batch | None) -> None:
    """Raises Corrupt for a batch that is whole but stands where it was not written."""
    if previous is None:
        return
    follows = opened.header.number == previous.header.number + 1
    linked = opened.header.previous == previous.digest[: fmt.CHAIN_SIZE]
    if not (follows and linked):
        raise Corrupt("a batch does not follow the one before", path=path, offset=offset)


def _records(path: str, offset: int, opened: Batch) -> Iterator[Problem]:
    try:
        for slot in range(opened.objects):
            o = opened.object(slot)
            # What a chunk list stands for is hashed where its chunks are read: see the store.
            if o.kind != Kind.CHUNKED and object_id(o.payload) != o.id:
                yield Problem("wrong_content", path, offset, o.id,
                              f"object {o.id.hex()} holds something else")  # fmt: skip
        moves_in(opened)
        for payload in opened.payloads(fmt.REFS):
            decode_page(payload)
    except Corrupt as error:
        yield Problem("damaged_record", path, offset, None, str(error))


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
