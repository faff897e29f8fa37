"""Keeping indexes on disk: beside sealed segments, and in cache/ for the active one.

The active segment is covered by a run of index files, each going on where the one before ends. A
run grows by an index of the batches since; when that is not much smaller than the last one, the
two are merged, so there are O(log n) of them and every entry is written O(log n) times. Any
process may write them, readers too; two that do at once write the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from snapstore.disk import Disk
from snapstore.engines.log.damage import ends_sealed
from snapstore.engines.log.index import Index, load
from snapstore.engines.log.layout import Layout
from snapstore.engines.log.segment import Segment
from snapstore.errors import Corrupt

EVERY = 512
"""Batches that opening a store scans at most, and that a writer keeps in memory."""
WORTH_CLOSING = 64
"""Batches from which on closing a store stores an index."""
MERGE_RATIO = 4


class IndexCache:
    """Reads and writes index files. Every failure here only costs time."""

    def __init__(self, layout: Layout, disk: Disk) -> None:
        self._layout = layout
        self._disk = disk
        self._gave_up = False

    # --- reading --------------------------------------------------------------------------------

    def attach_active(self, segment: Segment) -> None:
        """Give the active segment the cached indexes that fit it, checked whole."""
        found: dict[int, list[tuple[int, Path]]] = {}
        for path in self._layout.cache.glob(f"{segment.number:08d}.*.idx"):
            _, span, _ = path.name.split(".", 2)
            first, _, last = span.partition("-")
            if span.isascii() and first.isdecimal() and last.isdecimal():
                found.setdefault(int(first), []).append((int(last), path))
        while segment.end in found:
            longest_first = sorted(found.pop(segment.end), reverse=True)
            for _, path in longest_first:
                index = load(path)
                if index is not None and index.sound() and segment.adopt(index):
                    break

    def attach_sealed(self, segment: Segment) -> int | None:
        """Give a sealed segment its index, or make it again from the segment; the offset at which
        that met damage, if it did."""
        index = load(self._layout.index(segment.number))
        if index is not None and index.cover.first == 0 and index.cover.last == segment.size():
            segment.forget()
            if segment.adopt(index):
                segment.sealed = True
                return None
        return self._rebuild(segment)

    def _rebuild(self, segment: Segment) -> int | None:
        segment.forget()
        self.attach_active(segment)
        for _ in segment.follow():
            pass
        whole, size = segment.end, segment.size()
        # What lies behind a SEAL was never acknowledged.
        is_all = segment.sealed or (whole == size and ends_sealed(segment))
        if whole < size:
            self._skip_damage(segment)
        segment.sealed = True
        self._store_run(segment)
        return None if is_all else whole

    def _skip_damage(self, segment: Segment) -> None:
        """Index what verifies behind a damaged part of a sealed segment."""
        for offset in segment.whole_batches(segment.end + 1):
            segment.take(offset, segment.batch(offset))

    def replace_unsound(self, segments: Sequence[Segment]) -> bool:
        """Make damaged indexes again; True if there were any."""
        replaced = False
        for segment in segments:
            if all(index.proven or index.sound() for index in segment.indexes):
                continue
            replaced = True
            if segment.sealed:
                self._rebuild(segment)
            else:
                segment.forget()
                for _ in segment.follow():
                    pass
        return replaced

    # --- writing --------------------------------------------------------------------------------

    def store_sealed(self, segment: Segment) -> None:
        """Write the index of a segment that was just sealed."""
        _, data = segment.fresh_index(merge=len(segment.indexes))
        path = self._layout.index(segment.number)
        if self._disk.write_cache(path, data):
            self._adopt_merged(segment, path, data, len(segment.indexes))
            for old in self._layout.cache.glob(f"{segment.number:08d}.*.idx"):
                self._disk.remove(old)

    def store_when_worthwhile(self, segment: Segment, *, closing: bool = False) -> bool:
        """Write an index of the newest batches of the active segment, if there are many; whether
        it was written."""
        many = segment.fresh_batches >= (WORTH_CLOSING if closing else EVERY)
        return many and self._store_run(segment)

    def _store_run(self, segment: Segment) -> bool:
        if self._gave_up or not segment.fresh_batches:
            return False
        merge, fresh = 0, len(segment.fresh)
        for index in reversed(segment.indexes):
            if len(index.keys) > MERGE_RATIO * fresh:
                break
            merge += 1
            fresh += len(index.keys)
        try:
            cover, data = segment.fresh_index(merge)
        except Corrupt:
            return False
        replaced = [index.cover for index in segment.indexes[len(segment.indexes) - merge :]]
        path = self._run_path(segment.number, cover.first, cover.last)
        self._layout.remake_cache(self._disk)
        if not self._disk.write_cache(path, data):
            self._gave_up = True  # nothing can be written there: not to be tried at every look
            return False
        self._adopt_merged(segment, path, data, merge)
        for old in replaced:
            self._disk.remove(self._run_path(old.segment, old.first, old.last))
        return True

    def _adopt_merged(self, segment: Segment, path: Path, data: bytes, merge: int) -> None:
        segment.use_fresh_index(load(path) or Index(data), merge)

    def _run_path(self, number: int, first: int, last: int) -> Path:
        return self._layout.cache / f"{number:08d}.{first}-{last}.idx"
