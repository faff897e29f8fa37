"""Trying out whether a server keeps the promises that a store on it rests on.

The one that matters: of those who create the same key, exactly one succeeds. Of eleven servers that
were tried five take ``PUT`` with ``If-None-Match: *``, ignore it and overwrite, without a word: on
those two writers would each believe that their save was kept. They are refused.
"""

from __future__ import annotations

import contextlib
import secrets
from concurrent.futures import Executor
from itertools import compress

from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.failures import Absent, Taken, Unclear
from snapstore.engines.objectstore.layout import PROBE
from snapstore.errors import SnapstoreError, UnsuitableServer

_WRITERS = 8


def probe(bucket: Bucket, workers: Executor) -> list[str]:
    """What was found to hold, in words. Leaves nothing behind where it may delete.

    Raises UnsuitableServer, and whatever else keeps a store from being made there.
    """
    folder = f"{PROBE}/{secrets.token_hex(16)}"
    keys = [f"{folder}/{n}" for n in range(2)]
    try:
        return [*_once(bucket, keys[0]), _listed(bucket, folder), _raced(bucket, keys[1], workers)]
    finally:
        with contextlib.suppress(SnapstoreError):  # saving does not need the right to delete
            bucket.delete(keys)


def _once(bucket: Bucket, key: str) -> list[str]:
    first, second = b"the first one", b"the second one"
    _create(bucket, key, first)
    if _create(bucket, key, second):
        raise _unsuitable(bucket, "it lets an object that must be written once be written again")
    if _get(bucket, key) != first:
        raise _unsuitable(bucket, "it says that it refused to overwrite an object, and did it")
    if bucket.get_range(key, 4, 9) != first[4:9]:
        raise _unsuitable(bucket, "it does not answer to ranged reads")
    return ["If-None-Match", "read after write", "ranges"]


def _listed(bucket: Bucket, folder: str) -> str:
    if not bucket.page(folder):
        raise _unsuitable(bucket, "it does not list what was just written")
    return "list after write"


def _raced(bucket: Bucket, key: str, workers: Executor) -> str:
    bodies = [b"writer %d" % n for n in range(_WRITERS)]
    won = list(compress(bodies, workers.map(lambda body: _create(bucket, key, body), bodies)))
    if len(won) > 1 or (won and _get(bucket, key) != won[0]):
        raise _unsuitable(bucket, "of several that create an object at once more than one succeeds")
    return "one winner"


def _create(bucket: Bucket, key: str, data: bytes) -> bool:
    try:
        bucket.create(key, data)
    except (Taken, Unclear):
        return False
    return True


def _get(bucket: Bucket, key: str) -> bytes:
    try:
        return bucket.get(key)
    except Absent:
        raise _unsuitable(bucket, "it does not give back what was just written") from None


def _unsuitable(bucket: Bucket, why: str) -> SnapstoreError:
    return UnsuitableServer(f"{bucket.name} cannot hold a store: {why}")
