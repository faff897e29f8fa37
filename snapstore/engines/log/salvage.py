"""Salvage: a new generation of all that still verifies, when acknowledged data is damaged.

All of it is done with the lock held, for while data is damaged nobody can save anyway:

    1. every batch that verifies is looked for, behind damaged parts too
    2. segments with a damaged part, and the active one, are packed again from these batches
    3. so are the objects that only trash/ still holds whole: what a collection replaced lately may
       be what was damaged since. What nothing leads to is let go of again by the next collection
    4. the refs are where the last move says that was found, or page of refs
    5. the manifest names the new segments; the old ones go to damaged/ as they are

Whether what the refs lead to is whole is for ``maintenance.repair`` to find out afterwards.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from snapstore.engine import Kind, Move, Obj, Problem
from snapstore.engines.log import batch as fmt
from snapstore.engines.log import trash
from snapstore.engines.log.batch import Batch, Header, Writer
from snapstore.engines.log.damage import ends_sealed
from snapstore.engines.log.layout import Manifest
from snapstore.engines.log.pack import Packer
from snapstore.engines.log.records import decode_page, moves_in
from snapstore.engines.log.rewrite import Rewrite
from snapstore.engines.log.segment import Segment
from snapstore.errors import Corrupt, SnapstoreError, UnsupportedFormat
from snapstore.ids import object_id

# What is looked for is mostly near, and a file full of false beginnings must not cost its square.
_FIRST_WINDOW, _WINDOW = 4096, 1 << 20


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a segment that do not verify."""

    path: str
    offset: int
    length: int
    """0: the segment should go on there, and was cut off."""

    def __str__(self) -> str:
        return f"{self.length} bytes do not verify" if self.length else "what follows is gone"


class Everything:
    """Nothing is to go: what ``Rewrite`` asks, answered."""

    def begin(self) -> None:
        """See ``Selection``."""

    def meet(self, objects: Sequence[Obj], moves: Sequence[Move]) -> Collection[bytes]:
        """See ``Selection``."""
        return ()

    def keeps(self, object_id: bytes) -> bool:
        """See ``Selection``."""
        return True

    def becomes(self, move: Move) -> Move | None:
        """See ``Selection``."""
        return move

    def confirm(self, tips: Sequence[Move]) -> None:
        """See ``Selection``."""


class Salvage(Rewrite):
    """A rewriting that passes over what does not verify."""

    def look(self) -> list[Problem]:
        """The damaged parts; nothing is written."""
        self._log.load()
        try:
            spans = [span for segment in self._log.segments for span in self._damaged(segment)]
            found = [Problem("damaged_batch", s.path, s.offset, None, str(s)) for s in spans]
            return self._log.known_problems() + found
        finally:
            self._log.close()

    def whole_ids(self) -> Iterator[tuple[bytes, int]]:
        """(id, kind) of every object in a batch that verifies, as often as it is there."""
        self._log.load()
        try:
            for segment in self._log.segments:
                for _, opened in whole_batches(segment):
                    yield from zip(opened.ids(), opened.kinds, strict=False)
        finally:
            self._log.close()

    def run(self) -> bool:
        """Write the new generation; False when nothing is damaged, and nothing was done."""
        with self._alone():
            try:
                self._appender.lock()
                self._log.load()
                hurt = {s.number for s in self._log.segments if any(self._damaged(s))}
                if not hurt and self._log.refusal is None:
                    return False
                self._salvage(hurt | {self._log.active.number})
                return True
            finally:
                self._appender.unlock()

    def _salvage(self, hurt: set[int]) -> None:
        layout, disk, log = self._layout, self._disk, self._log
        whole = {s.number for s in log.segments} - hurt
        self._require_space(whole)
        packer = Packer(layout, disk, max(layout.segments_on_disk()) + 1, seal_at=self._seal_at)
        for segment in log.segments:
            if segment.number in hurt:
                self._pack(packer, segment)
            else:
                self._names += packer.finish()
                self._leave_alone(segment)
        self._revive(packer)
        self._names += packer.finish()
        names = [self._put_in_place(name, 0) for name in self._names]
        active = max([*names, log.active.number]) + 1
        pieces = self._active_pieces(self._last_moves(), [])
        disk.write_pieces(layout.segment(active), pieces)
        self._seal(log.active)
        # Every generation has made a segment, so no generation before was as high as its number.
        manifest = Manifest(active, (*names, active))
        disk.write_file(layout.manifest, manifest.encode())
        log.witness.forget()
        # With those that a manifest which came back from an older copy does not name.
        aside = trash.stray(layout, manifest.segments)
        trash.set_aside(layout, disk, aside, layout.damaged, self._now)

    def _revive(self, packer: Packer) -> None:
        for path in sorted(self._layout.trash.glob("*.seg")):
            try:
                segment = Segment(0, path, self._disk)
            except (SnapstoreError, OSError):
                continue  # no file, or one that may not be read
            with contextlib.closing(segment):
                if segment.size() < self._disk.free(self._layout.root):
                    for _, opened in whole_batches(segment):
                        packer.add(self._staying(opened), ())

    def _staying(self, opened: Batch) -> list[Obj]:
        """What can be read of a batch, and is what its id says."""
        found: list[Obj] = []
        for slot, wanted in enumerate(opened.ids()):
            if wanted in self._copied:
                continue
            with contextlib.suppress(Corrupt):  # its dictionary may be gone
                o = opened.object(slot, wanted)
                if o.kind == Kind.CHUNKED or object_id(o.payload) == wanted:
                    self._copied.add(wanted)
                    found.append(o)
        return found

    def _damaged(self, segment: Segment) -> Iterator[Span]:
        expected = 0
        for offset, opened in whole_batches(segment):
            if offset != expected:
                yield Span(segment.name, expected, offset - expected)
            expected = offset + opened.header.size
        if expected < segment.size() or not expected:
            yield Span(segment.name, expected, segment.size() - expected)
        elif segment is not self._log.active and not ends_sealed(segment):
            yield Span(segment.name, expected, 0)

    def _batches(self, segment: Segment) -> Iterator[tuple[int, Batch]]:
        return whole_batches(segment)

    def _last_moves(self) -> list[Move]:
        """The refs, as far as any batch tells of them."""
        found: dict[str, Move] = {}
        for segment in self._log.segments:
            for _, opened in whole_batches(segment):
                for payload in opened.payloads(fmt.REFS):
                    for move in decode_page(payload):
                        if move.gen >= found.get(move.ref, move).gen:
                            found[move.ref] = move
                for move in moves_in(opened):
                    if move.gen >= found.get(move.ref, move).gen:
                        found[move.ref] = move
        return [found[ref] for ref in sorted(found)]

    def _seal(self, active: Segment) -> None:
        """Let handles that still stand at its end learn that the segment was replaced.

        Those that stand before a damaged end refuse to write anyway.
        """
        last = None
        for offset, opened in whole_batches(active):
            last = (offset + opened.header.size, opened)
        if last is None or last[0] != active.size() or last[1].header.flags & fmt.SEAL:
            return
        data, _ = Writer().pack(
            [],
            [],
            flags=fmt.SEAL,
            number=last[1].header.number + 1,
            durable_end=0,
            previous=last[1].digest[: fmt.CHAIN_SIZE],
        )
        fd = self._disk.open(active.path, writable=True)
        try:
            self._disk.write_at(fd, data, last[0])
            self._disk.sync(fd)
        finally:
            os.close(fd)


def whole_batches(segment: Segment) -> Iterator[tuple[int, Batch]]:
    """The batches of a segment that verify and can be read, in order, whatever lies between."""
    at, size, number = 0, segment.size(), -1
    while at < size:
        try:
            opened = segment.batch(at)
            moves_in(opened)
        except (Corrupt, UnsupportedFormat):
            at = _behind(segment, at, size)
            continue
        if opened.header.number > number:  # else a remnant of what the disk held before
            number = opened.header.number
            yield at, opened
        at += opened.header.size


def _behind(segment: Segment, at: int, size: int) -> int:
    """Where the next batch may begin behind a bad one: where its header says, if that verifies;
    what looks like a batch within it is content, of somebody who saved the file of a store."""
    try:
        header = os.pread(segment.fd, fmt.HEADER_SIZE, at)
        start = at + int(Header(header, (segment.name, at)).size)
    except (Corrupt, UnsupportedFormat):
        start = at + 1
    window = _FIRST_WINDOW
    while start < size:
        found = os.pread(segment.fd, window, start).find(fmt.MAGIC)
        if found >= 0:
            return start + found
        start += window - len(fmt.MAGIC) + 1
        window = min(2 * window, _WINDOW)
    return size
