"""The cache on this machine: shared, bounded, and never a reason to fail or to be wrong."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from buckets import Watched

from snapstore import Store
from snapstore.engines.objectstore.cache import PackCache
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.links import links


@pytest.fixture
def bucket() -> Watched:
    return Watched(Bucket.in_memory())


def store(bucket: Bucket, cache: Path) -> Store:
    return Store(ObjectStoreEngine(bucket, links=links, cache=cache))


def saved(bucket: Bucket, cache: Path, turns: int = 5) -> list[int]:
    session = store(bucket, cache).session("s")
    for n in range(turns):
        session.history.append(n)
        session.save()
    return list(range(turns))


def test_keeps_what_was_saved_and_what_was_read(bucket: Watched, tmp_path: Path) -> None:
    expected = saved(bucket, tmp_path / "writer")
    fetched: list[int] = []
    for cache in ("writer", "reader", "reader"):
        bucket.requests.clear()
        assert list(store(bucket, tmp_path / cache).session("s").history) == expected
        fetched.append(bucket.requests["get"] - 2)  # the format and the record come anew
    assert fetched == [0, 5, 0]


def test_is_for_its_owner_only(bucket: Watched, tmp_path: Path) -> None:
    saved(bucket, tmp_path / "cache")
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700


def test_that_is_damaged_counts_as_missing(bucket: Watched, tmp_path: Path) -> None:
    expected = saved(bucket, tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    for n, path in enumerate(files):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data) if n % 2 else b"")
    assert list(store(bucket, tmp_path).session("s").history) == expected
    assert store(bucket, tmp_path).verify() == []


def test_that_cannot_be_written_does_no_harm(bucket: Watched, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    expected = saved(bucket, tmp_path / "file" / "cache")
    assert list(store(bucket, tmp_path / "file" / "cache").session("s").history) == expected


def test_of_a_store_that_was_made_anew_at_the_same_place_is_not_used(tmp_path: Path) -> None:
    for text in ("first", "second"):
        bucket = Bucket.in_memory()  # the same address, and nothing there
        session = store(bucket, tmp_path).session("s")
        session.history.append(text)
        session.save()
        assert list(store(bucket, tmp_path).session("s").history) == [text]


def test_stays_within_its_bound_and_drops_what_was_not_used_for_longest(tmp_path: Path) -> None:
    caches = [PackCache(tmp_path, name, bound=10_000) for name in ("one", "other")]
    caches[0].store("first", bytes(900))
    for n in range(60):
        assert caches[0].load("first") is not None
        caches[n % 2].store(f"pack{n}", bytes(900))
    held = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert held <= 12_000
    assert caches[0].load("first") is not None
    assert caches[1].load("pack1") is None
