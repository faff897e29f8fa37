"""format.json: what a store in a bucket is, written once when it is made.

    {"format": 1, "hash": "blake3-256", "store": 32 hex digits, "probed": [...]}

The store id tells apart what caches hold of stores that were at the same address one after the
other. A store of a format that is not known here is refused untouched.
"""

from __future__ import annotations

import json
import secrets
from concurrent.futures import Executor

from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.failures import Absent, Taken, Unclear
from snapstore.engines.objectstore.layout import FORMAT
from snapstore.engines.objectstore.probe import probe
from snapstore.errors import UnsupportedFormat

VERSION = 1
HASH = "blake3-256"


def store_id(bucket: Bucket) -> str | None:
    """The id of the store in a bucket; None when there is none. Raises UnsupportedFormat."""
    try:
        data = bucket.get(FORMAT)
    except Absent:
        return None
    try:
        said = json.loads(data)
        version, hashed, store = said["format"], said["hash"], said["store"]
    except (ValueError, KeyError, TypeError) as error:
        raise UnsupportedFormat(f"{FORMAT} in {bucket.name} is of no known form") from error
    if version != VERSION or hashed != HASH or not isinstance(store, str):
        raise UnsupportedFormat(f"{bucket.name} is of format {version} ({hashed}), not {VERSION}")
    return store


def make(bucket: Bucket, workers: Executor) -> str:
    """Make a store, unless another writer is doing so at this moment; its id.

    The server is tried out first. Raises UnsuitableServer, UnsupportedFormat.
    """
    found = probe(bucket, workers)
    said = {"format": VERSION, "hash": HASH, "store": secrets.token_hex(16), "probed": found}
    lost: Unclear | None = None
    try:
        bucket.create(FORMAT, json.dumps(said, indent=1).encode())
    except Taken:
        pass
    except Unclear as error:
        lost = error
    made = store_id(bucket)
    if made is None:
        raise lost.error if lost else UnsupportedFormat(f"{FORMAT} cannot be made in {bucket.name}")
    return made
