"""What verification finds in a bucket, and that damage does not spread."""

from __future__ import annotations

import pytest
from buckets import engine_of, store_on

from snapstore import Corrupt, ObjectMissing, Store
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.layout import PACKS, REFS, pack_key, record_key, ref_dir


@pytest.fixture
def bucket() -> Bucket:
    """Two sessions of five turns."""
    bucket = Bucket.in_memory()
    for name in ("hurt", "whole"):
        session = store_on(bucket).session(name)
        for n in range(5):
            session.history.append(f"{name} {n}")
            session.save()
    return bucket


def newest_pack(store: Store, name: str) -> str:
    return pack_key(engine_of(store).log.last(f"sessions/{name}").packs[-1].id)


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def found(bucket: Bucket) -> list[tuple[str, str | None]]:
    problems = engine_of(store_on(bucket)).verify()
    return [(problem.kind, problem.path) for problem in problems]


def test_nothing_where_all_is_well(bucket: Bucket) -> None:
    assert found(bucket) == []


def test_a_pack_with_a_flipped_bit(bucket: Bucket) -> None:
    key = newest_pack(store_on(bucket), "hurt")
    bucket.put(key, flipped(bucket.get(key)))
    assert found(bucket) == [("damaged_pack", key)]
    with pytest.raises(Corrupt) as damaged:
        list(store_on(bucket).session("hurt").history)
    assert damaged.value.path == key


def test_a_pack_that_is_gone(bucket: Bucket) -> None:
    key = newest_pack(store_on(bucket), "hurt")
    bucket.delete([key])
    assert found(bucket) == [("missing_pack", key)]
    with pytest.raises(ObjectMissing):
        list(store_on(bucket).session("hurt").history)


def test_a_record_with_a_flipped_bit(bucket: Bucket) -> None:
    key = record_key(ref_dir("sessions/hurt"), 3)
    bucket.put(key, flipped(bucket.get(key)))
    assert found(bucket) == [("damaged_record", key)]


def test_a_record_that_is_gone(bucket: Bucket) -> None:
    key = record_key(ref_dir("sessions/hurt"), 3)
    bucket.delete([key])
    assert found(bucket) == [("missing_record", key)]


def test_a_record_under_the_key_of_another(bucket: Bucket) -> None:
    key = record_key(ref_dir("sessions/hurt"), 6)
    bucket.put(key, bucket.get(record_key(ref_dir("sessions/whole"), 5)))
    assert found(bucket) == [("damaged_record", key)]


def test_other_sessions_are_untouched_by_damage_to_one(bucket: Bucket) -> None:
    key = newest_pack(store_on(bucket), "hurt")
    bucket.put(key, flipped(bucket.get(key)))
    store = store_on(bucket)
    assert list(store.session("whole").history) == [f"whole {n}" for n in range(5)]
    session = store.session("whole")
    session.history.append("onward")
    session.save()
    assert [info.name for info in store.sessions()] == ["hurt", "whole"]


def test_progress_comes_to_its_end(bucket: Bucket) -> None:
    seen: list[tuple[int, int]] = []
    assert list(engine_of(store_on(bucket)).verify(lambda *step: seen.append(step))) == []
    size = sum(entry.size for folder in (PACKS, REFS) for entry in bucket.every(folder))
    assert seen[-1] == (size, size)
