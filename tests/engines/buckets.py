"""Buckets in memory that count what is asked of them, or do not do it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from snapstore import Session, Store
from snapstore.engines.objectstore.client import Bucket, Found
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.links import links

Fault = Callable[[str, str], None]
"""Called with what is asked for and the key, before it is done; it may raise."""


class Watched(Bucket):
    """A further handle on a bucket: counts requests and the bytes that are read, and
    lets faults happen before and after requests."""

    def __init__(self, inner: Bucket) -> None:
        super().__init__(inner._store, inner.name)
        self.requests: Counter[str] = Counter()
        self.bytes = 0
        self.before: Fault | None = None
        self.after: Fault | None = None

    def _watch(self, what: str, key: str) -> None:
        self.requests[what] += 1
        if self.before is not None:
            self.before(what, key)

    def _done(self, what: str, key: str) -> None:
        if self.after is not None:
            self.after(what, key)

    def get(self, key: str) -> bytes:
        self._watch("get", key)
        return self._count(super().get(key))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        self._watch("get", key)
        return self._count(super().get_range(key, start, end))

    def _count(self, data: bytes) -> bytes:
        self.bytes += len(data)
        return data

    def _pages(self, prefix: str, after: str | None = None) -> Iterator[list[Found]]:
        self._watch("list", prefix)
        return super()._pages(prefix, after)

    def put(self, key: str, data: bytes) -> None:
        self._watch("put", key)
        super().put(key, data)
        self._done("put", key)

    def create(self, key: str, data: bytes) -> None:
        self._watch("create", key)
        super().create(key, data)
        self._done("create", key)

    def delete(self, keys: Iterable[str]) -> None:
        keys = list(keys)
        self._watch("delete", " ".join(keys))
        super().delete(keys)
        self._done("delete", " ".join(keys))


def store_on(bucket: Bucket, **options: float) -> Store:
    """A further handle on the store in a bucket, with nothing cached."""
    return Store(engine_on(bucket, **options))


def engine_on(bucket: Bucket, **options: float) -> ObjectStoreEngine:
    """A further engine on the store in a bucket."""
    return ObjectStoreEngine(bucket, links=links, **options)


def engine_of(store: Store) -> ObjectStoreEngine:
    """The engine of a store in a bucket."""
    assert isinstance(store.engine, ObjectStoreEngine)
    return store.engine


def saved(store: Store, name: str, *said: str) -> Session:
    """Save a turn for each of these messages."""
    session = store.session(name)
    for text in said:
        session.history.append({"role": "user", "content": text})
        session.save(text[:20])
    return session
