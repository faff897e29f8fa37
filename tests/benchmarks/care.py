"""What the care of a store costs: verifying, counting, collecting, and reading what was collected.

    python -m tests.benchmarks.care [--quick] [--large]

The floor of a verification reads the segments, hashes them with BLAKE3 and decompresses their
blocks, as it finds them in a table made beforehand. It knows nothing of objects. The second floor
also hashes each object by itself, which is what verifying them takes at least.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3
from zstandard import ZstdDecompressor

import snapstore
from snapstore import NotATranscript, formats
from snapstore.disk import DISK
from snapstore.engines.log.codec import RAW, ZSTD_DICT
from snapstore.engines.log.laid import batches
from snapstore.engines.log.segment import Segment
from snapstore.engines.sheet import Scanned, Sheet
from snapstore.store import Store
from snapstore.transfer.imports import import_transcript
from tests.benchmarks.workload import best, bytes_in, pair, scratch, show

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
Row = tuple[str, str, str]


# --- the floors ------------------------------------------------------------------------------


class Block(NamedTuple):
    """Where a compressed block lies in its file."""

    start: int
    end: int
    codec: int


class Floor:
    """The segments of a store, and where the compressed blocks of each are."""

    def __init__(self, root: Path) -> None:
        self._files: list[tuple[Path, Segment, list[Block]]] = []
        for path in sorted((root / "log").glob("*.seg")):
            segment = Segment(int(path.stem), path, DISK)
            self._files.append((path, segment, _blocks(segment)))

    def bytes_read(self) -> None:
        """Read, hash and decompress all of it."""
        for path, segment, blocks in self._files:
            data = memoryview(path.read_bytes())
            blake3(data).digest()
            plain = ZstdDecompressor().decompress
            for start, end, codec in blocks:
                inflate = segment.dictionary().decompress if codec == ZSTD_DICT else plain
                inflate(data[start:end])


def _blocks(segment: Segment) -> list[Block]:
    found: list[Block] = []
    for offset, laid, _ in batches(segment, 0, segment.size(), 0.0):
        for entry, start in laid._blocks:
            codec, length = entry & 3, entry >> 2
            if codec != RAW:
                found.append(Block(offset + start, offset + start + length, codec))
    return found


def _hash_objects(contents: list[bytes]) -> None:
    for content in contents:
        blake3(content).digest()


def _contents(store: Store) -> list[bytes]:
    assert isinstance(store.engine, Scanned)
    found: list[bytes] = []
    for seen in store.engine.scan(1.0):
        if isinstance(seen, Sheet):
            found += seen.contents
            found += [o.payload for o in seen.others]
    return found


# --- the figures -----------------------------------------------------------------------------


def looking(root: Path, what: str, times: int = 3) -> list[Row]:
    """Verifying and counting a store against the floors."""
    floor = best(Floor(root).bytes_read, times)
    with snapstore.open(root) as store:
        held = _contents(store)
    hashes, objects = best(lambda: _hash_objects(held), times), len(held)
    held.clear()

    def opened(act: Callable[[Store], object]) -> Callable[[], None]:
        def run() -> None:
            with snapstore.open(root) as fresh:
                act(fresh)

        return run

    verify = best(opened(lambda store: store.verify()), times)
    quick = best(opened(lambda store: store.verify(quick=True)), times)
    counted = best(opened(lambda store: store.stats()), times)
    return [
        (f"verify {what}, {objects:,} objects / read, hash, decompress its files",
         f"{verify / floor:.1f} ({verify:.2f} s / {floor:.2f} s)", "1.5"),
        ("  the same / with every object hashed too", f"{verify / (floor + hashes):.1f}", ""),
        ("  verify --quick; stats", f"{quick:.2f} s; {counted:.2f} s", ""),
    ]  # fmt: skip


def turns(root: Path, count: int) -> list[Row]:
    """A session of turns of two messages, 2 KB each, before and after it was compacted."""
    where = root / "turns"
    with snapstore.open(where, durable=False) as store:
        session = store.session("long")
        for n in range(count):
            session.history.extend(pair(n))
            session.save()
    rows = looking(where, f"{count:,} turns of 2 KB")
    before = best(lambda: _read_back(where))
    with snapstore.open(where) as store:
        store.gc(apply=True)
    after = best(lambda: _read_back(where))
    return [
        *rows,
        *looking(where, "the same, compacted"),
        ("read a history after compaction / before",
         f"{after / before:.2f} ({after:.2f} s / {before:.2f} s)", "1.3"),
    ]  # fmt: skip


def _read_back(where: Path) -> None:
    with snapstore.open(where) as store:
        list(store.session("long").history)


def corpus(root: Path) -> list[Row]:
    """The transcripts beside this checkout, imported and compacted."""
    where, total = root / "corpus", 0
    with snapstore.open(where, durable=False) as store:
        for number, path in enumerate(sorted(CORPUS.rglob("*.json*"))):
            try:
                told = formats.read(path.read_bytes(), path.name)
            except NotATranscript:
                continue
            import_transcript(store, told, name=f"t{number}", source=path.name)
            total += path.stat().st_size
    rows = looking(where, "imported transcripts")
    with snapstore.open(where) as store:
        store.gc(apply=True, grace=timedelta(0))
    kept = bytes_in(where) / total
    return [*rows, ("imported transcripts, compacted / their files", f"{kept:.3f}", "0.20")]


_COLLECT = """
import sys, resource, time, snapstore
from datetime import timedelta
with snapstore.open(sys.argv[1]) as store:
    start = time.perf_counter()
    found = store.gc(apply=True, grace=timedelta(0))
    took = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(found.objects, took, peak // 1024)
"""
_VERIFY = """
import sys, resource, time, snapstore
with snapstore.open(sys.argv[1]) as store:
    start = time.perf_counter()
    assert store.verify() == []
    took = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(0, took, peak // 1024)
"""


def large(root: Path, objects: int) -> list[Row]:
    """Verifying a store of so many objects, and collecting the half of them."""
    where, each = root / "large", 10  # a turn of eight messages, a list node and a snapshot
    with snapstore.open(where, durable=False) as store:
        sessions = [store.session("kept"), store.session("gone")]
        for n in range(objects // each):
            session = sessions[n % 2]
            session.history.extend(f"message {n} {k}" for k in range(each - 2))
            session.save()
        store.delete("gone")
    _, verify, most = _alone(_VERIFY, where)
    dropped, collect, peak = _alone(_COLLECT, where)
    return [
        (f"verify {objects:,} objects", f"{verify:.0f} s, {most:.0f} MB", "500 MB"),
        (f"gc of {objects:,} objects, {dropped:,.0f} of them dead",
         f"{collect:.0f} s, {peak:.0f} MB", "60 s, 500 MB"),
    ]  # fmt: skip


def _alone(program: str, where: Path) -> list[float]:
    """What a program prints that has a process for itself, so that its memory is its own."""
    told = subprocess.run(
        [sys.executable, "-c", program, str(where)], capture_output=True, text=True, check=True
    )
    return list(map(float, told.stdout.split()))


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--large", action="store_true", help="a million objects as well: minutes")
    chosen = parser.parse_args()
    scale = 10 if chosen.quick else 1
    rows: list[Row] = []
    with scratch() as root:
        rows += turns(root, 30_000 // scale)
        rows += corpus(root) if CORPUS.exists() else []
        rows += large(root, 1_000_000 // scale) if chosen.large else []
    show(rows)


if __name__ == "__main__":
    main()
