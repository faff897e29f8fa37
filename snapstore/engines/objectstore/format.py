"""format.json: what a store in a bucket is, written when it is made.

    {"format": 1, "hash": "blake3-256", "store": 32 hex digits, "probed": [...],
     "purged": 16 hex digits}

The store id tells apart what caches hold of stores that were at the same address one after the
other. ``purged`` is there once something was dropped for good, and is then new each time: what a
cache holds from before may hold it too. A store of a format that is not known here is refused
untouched.
"""

from __future__ import annotations

import json
import secrets
from concurrent.futures import Executor
from typing import Any, NamedTuple

from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.failures import Absent, Taken, Unclear
from snapstore.engines.objectstore.layout import FORMAT
from snapstore.engines.objectstore.probe import probe
from snapstore.errors import UnsupportedFormat

VERSION = 1
HASH = "blake3-256"


class Identity(NamedTuple):
    """Which store it is."""

    store: str
    purged: str
    """Empty for a store that nothing was dropped from for good."""


def identity(bucket: Bucket) -> Identity | None:
    """Which store is in a bucket; None when there is none. Raises UnsupportedFormat."""
    try:
        data = bucket.get(FORMAT)
    except Absent:
        return None
    try:
        said = json.loads(data)
        version, hashed, store = said["format"], said["hash"], said["store"]
        purged = str(said.get("purged", ""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnsupportedFormat(f"{FORMAT} in {bucket.name} is of no known form") from error
    if version != VERSION or hashed != HASH or not isinstance(store, str):
        raise UnsupportedFormat(f"{bucket.name} is of format {version} ({hashed}), not {VERSION}")
    return Identity(store, purged)


def note_purge(bucket: Bucket) -> None:
    """Let everybody who opens the store from now on forget what was fetched of it."""
    said = json.loads(bucket.get(FORMAT)) | {"purged": secrets.token_hex(8)}
    bucket.put(FORMAT, _encoded(said))


def make(bucket: Bucket, workers: Executor) -> Identity:
    """Make a store, unless another writer is doing so at this moment; which it is.

    The server is tried out first. Raises UnsuitableServer, UnsupportedFormat.
    """
    found = probe(bucket, workers)
    said = {"format": VERSION, "hash": HASH, "store": secrets.token_hex(16), "probed": found}
    lost: Unclear | None = None
    try:
        bucket.create(FORMAT, _encoded(said))
    except Taken:
        pass
    except Unclear as error:
        lost = error
    made = identity(bucket)
    if made is None:
        raise lost.error if lost else UnsupportedFormat(f"{FORMAT} cannot be made in {bucket.name}")
    return made


def _encoded(said: dict[str, Any]) -> bytes:
    return json.dumps(said, indent=1).encode()
