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
from snapstore.engines.objectstore.layout import (
    REFS,
    log_prefix,
    pack_key,
    record_key,
    record_place,
    ref_dir,
)
from snapstore.engines.objectstore.packs import Pack, Ref
from snapstore.engines.objectstore.records import Record, decode
from snapstore.engines.objectstore.reflog import TRIES
from snapstore.errors import Corrupt, SnapstoreError
from snapstore.ids import object_id

_AT_ONCE = 16
_MISSING = "missing_pack"

T = TypeVar("T")
R = TypeVar("R")


class Verification:
    """One verification. Whatever it asks for, it asks the bucket."""

    def __init__(self, bucket: Bucket, workers: Executor) -> None:
        self._bucket = bucket
        self._workers = workers

    def problems(self, progress: Progress | None) -> Iterator[Problem]:
        """Every problem of the records and of the packs that refs need now.

        What is not there may have been dropped by a purge since it was listed. So what refs need is
        looked at again then, and only what they need still is missing.
        """
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
        absent: dict[bytes, Problem] = {}
        for ref, found in self._in_groups(self._pack, needed.values()):
            absent.update((ref.id, problem) for problem in found if problem.kind == _MISSING)
            yield from (problem for problem in found if problem.kind != _MISSING)
            done += ref.size
            if progress is not None:
                progress(done, total)
        yield from self._still_missing(absent, needed) if absent else ()

    def _still_missing(
        self, absent: dict[bytes, Problem], seen: dict[bytes, Ref]
    ) -> Iterator[Problem]:
        """Of these packs those that refs need still; and the problems of those that they need
        instead of the others."""
        for _ in range(TRIES):
            needed = self._needed()
            others = [ref for ref in needed.values() if ref.id not in seen]
            seen |= needed
            before = len(absent)
            for ref, found in self._in_groups(self._pack, others):
                absent.update((ref.id, problem) for problem in found if problem.kind == _MISSING)
                yield from (problem for problem in found if problem.kind != _MISSING)
            if len(absent) == before:
                break
        yield from (problem for pack, problem in absent.items() if pack in needed)

    def _needed(self) -> dict[bytes, Ref]:
        """The packs that refs name now."""
        newest: dict[str, int] = {}
        for found in self._bucket.every(REFS):
            place = record_place(found.key)
            if place is not None:
                newest.setdefault(*place)
        records = self._in_groups(lambda place: self._record(*place), newest.items())
        return {
            ref.id: ref for _, last in records if isinstance(last, Record) for ref in last.packs
        }

    def _log(self, directory: str, gens: Sequence[int]) -> Generator[Problem, None, Record | None]:
        """The problems of one ref's log, whose moves come newest first; its last record."""
        for _ in range(TRIES):
            found: list[Problem] = []
            last = self._looked_through(directory, gens, found)
            if not found and not (last and last.dropped):
                break
            places = (
                record_place(entry.key) for entry in self._bucket.every(log_prefix(directory))
            )
            now = [place[1] for place in places if place]
            if now == gens or not now:
                break
            gens = now
        yield from found
        return last

    def _looked_through(
        self, directory: str, gens: Sequence[int], problems: list[Problem]
    ) -> Record | None:
        """Its last record, by one look at these; what is wrong is added to the problems."""
        last: Record | None = None
        expected, whole = gens[0], True
        for gen, record in self._in_groups(lambda gen: self._record(directory, gen), gens):
            if isinstance(record, SnapstoreError):
                key = record_key(directory, gen)
                problems.append(Problem("damaged_record", key, None, None, str(record)))
            elif gen == gens[0]:
                last, whole = record, not record.expired
            if gen != expected and whole:
                problems.append(_gap(directory, gen + 1, expected))
            if isinstance(record, Record) and record.begins_anew:
                whole = False
            expected = gen - 1
        if expected > 0 and whole:
            problems.append(_gap(directory, 1, expected))
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
            return [Problem(_MISSING, key, None, None, f"{key} is not there")]
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
