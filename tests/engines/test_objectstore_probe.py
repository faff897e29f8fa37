"""A server that does not keep its promise is refused before anything is kept on it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from buckets import Watched, engine_on, store_on
from given import content, turn
from servers import s3

from snapstore import UnsuitableServer, UnsupportedFormat
from snapstore.engines.objectstore import format
from snapstore.engines.objectstore.client import Bucket, Found


class Overwriting(Watched):
    """Ignores that a key must be created, as five of eleven servers do."""

    def create(self, key: str, data: bytes) -> None:
        self.put(key, data)


class Lying(Watched):
    """Says that it refused to overwrite, and does it."""

    def create(self, key: str, data: bytes) -> None:
        try:
            super().create(key, data)
        finally:
            self.put(key, data)


class Forgetful(Watched):
    """Lists nothing of what was just written."""

    def page(self, prefix: str, after: str | None = None) -> list[Found]:
        return []


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (Overwriting, "be written again"),
        (Lying, "says that it refused"),
        (Forgetful, "does not list"),
    ],
)
def test_a_server_that_breaks_a_promise_is_refused_and_left_empty(
    server: type[Watched], why: str
) -> None:
    bucket = Bucket.in_memory()
    engine = engine_on(server(bucket))
    with pytest.raises(UnsuitableServer, match=why):
        engine.commit([content(b"lost")])
    assert not engine.exists()
    assert list(bucket.every("")) == []


def test_a_server_that_keeps_them_says_so_in_the_format_and_is_not_probed_again() -> None:
    bucket = Watched(Bucket.in_memory())
    engine_on(bucket).create()
    probed = json.loads(bucket.get("format.json"))["probed"]
    assert probed == [
        "If-None-Match",
        "read after write",
        "ranges",
        "list after write",
        "one winner",
    ]
    assert [found.key for found in bucket.every("")] == ["format.json"]
    bucket.requests.clear()
    turn(engine_on(bucket), "a", "one")
    assert bucket.requests == {"get": 1, "list": 1, "put": 1, "create": 1}


def test_nanio_is_refused(tmp_path: Path) -> None:
    with s3.nanio(tmp_path) as server:
        store = store_on(server.bucket())
        with pytest.raises(UnsuitableServer, match="be written again"):
            store.session("s").save()


@pytest.mark.parametrize(
    "said",
    [
        b'{"format": 2, "hash": "blake3-256", "store": "00"}',
        b'{"format": 1, "hash": "sha256", "store": "00"}',
        b"{}",
        b"not JSON",
    ],
)
def test_a_store_of_another_format_is_refused_untouched(said: bytes) -> None:
    bucket = Bucket.in_memory()
    bucket.put("format.json", said)
    with pytest.raises(UnsupportedFormat):
        engine_on(bucket)
    assert [(found.key, bucket.get(found.key)) for found in bucket.every("")] == [
        ("format.json", said)
    ]


def test_handles_that_make_the_store_at_the_same_moment_make_one() -> None:
    bucket = Bucket.in_memory()
    engines = [engine_on(bucket) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: turn(engines[n], f"r{n}", f"turn of {n}"), range(4)))
    assert format.identity(bucket) is not None
    assert [tip.ref for tip in engine_on(bucket).tips()] == ["r0", "r1", "r2", "r3"]
