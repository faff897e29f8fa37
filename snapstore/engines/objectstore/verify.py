"""Reading a store in a bucket again, byte for byte, past every cache."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import groupby, islice
from typing import TypeVar

from snapstore.engine import Kind, Problem, Progress
from snapstore.engines.objectstore import packs
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.failures import Absent
from snapstore.engines.objectstore.layout import REFS, pack_key, record_key, record_place, ref_dir
from snapstore.engines.objectstore.packs import Pack, Ref
from snapstore.engines.objectstore.records import Record, decode
from snapstore.errors import Corrupt, SnapstoreError
from snapstore.ids import object_id

_AT_ONCE = 16

T = TypeVar("T")
R = TypeVar("R")


class Verification:
    """One verification. Whatever it asks for, it asks the bucket."""

    def __init__(self, bucket: Bucket, workers: Executor) -> None:
        self._bucket = bucket
        self._workers = workers

    def problems(self, progress: Progress | None) -> Iterator[Problem]:
        """Every problem of the records and of the packs that refs need now."""
        listed = [(found, record_place(found.key)) for found in self._bucket.every(REFS)]
        placed = [(place, found.size) for found, place in listed if place is not None]
        done, total = 0, sum(size for _, size in placed)
        needed: dict[bytes, Ref] = {}
        for directory, group in groupby(placed, key=lambda item: item[0][0]):
            sizes = {gen: size for (_, gen), size in group}
            last = yield from self._log(directory, list(sizes))
            needed.update((ref.id, ref) for ref in (last.packs if last else ()))
            done += sum(sizes.values())
            if progress is not None:
                progress(done, total)
        total += sum(ref.size for ref in needed.values())
        for ref, found in self._in_groups(self._pack, needed.values()):
            yield from found
            done += ref.size
            if progress is not None:
                progress(done, total)

    def _log(self, directory: str, gens: Sequence[int]) -> Generator[Problem, None, Record | None]:
        """The problems of one ref's log, whose moves come newest first; its last record."""
        last: Record | None = None
        expected, whole = gens[0], True
        for gen, record in self._in_groups(lambda gen: self._record(directory, gen), gens):
            if isinstance(record, SnapstoreError):
                yield Problem("damaged_record", record_key(directory, gen), None, None, str(record))
            elif gen == gens[0]:
                last, whole = record, not record.expired
            if gen != expected and whole:
                yield _gap(directory, gen + 1, expected)
            if isinstance(record, Record) and record.begins_anew:
                whole = False
            expected = gen - 1
        if expected > 0 and whole:
            yield _gap(directory, 1, expected)
        return last

    def _record(self, directory: str, gen: int) -> Record | SnapstoreError:
        key = record_key(directory, gen)
        try:
            record = decode(self._bucket.get(key), key)
        except Absent:
            return Corrupt("it was listed, and is not there", path=key)
        except Corrupt as error:
            return error
        if (ref_dir(record.move.ref), record.move.gen) != (directory, gen):
            return Corrupt("it is the record of another move", path=key)
        return record

    def _pack(self, ref: Ref) -> list[Problem]:
        key = pack_key(ref.id)
        try:
            data = self._bucket.get(key)
            if not packs.is_whole(data, ref.id):
                raise Corrupt("its bytes are not those that its name stands for", path=key)
            pack = Pack(ref, data, lambda start, end: b"")
            return [_wrong(key, o.id) for o in pack.all() if _differs(o.kind, o.payload, o.id)]
        except Absent:
            return [Problem("missing_pack", key, None, None, f"{key} is not there")]
        except Corrupt as error:
            return [Problem("damaged_pack", key, None, None, str(error))]

    def _in_groups(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[tuple[T, R]]:
        """Each item with what comes of it; a few are worked on at once."""
        waiting = iter(items)
        while group := list(islice(waiting, _AT_ONCE)):
            yield from zip(group, self._workers.map(work, group), strict=True)


def _differs(kind: int, payload: bytes, wanted: bytes) -> bool:
    # What a chunk list stands for is hashed where its chunks are read: see the store.
    return kind != Kind.CHUNKED and object_id(payload) != wanted


def _wrong(key: str, wanted: bytes) -> Problem:
    return Problem(
        "wrong_content", key, None, wanted, f"object {wanted.hex()} holds something else"
    )


def _gap(directory: str, first: int, last: int) -> Problem:
    key = record_key(directory, last)
    what = f"move {first} is" if first == last else f"moves {first} to {last} are"
    return Problem("missing_record", key, None, None, f"{what} not there ({key})")
