"""Where things lie below the root of a store in a bucket.

    format.json                          format, hash, store id, what was probed, the last purge
    packs/<2 hex>/<32 hex>               immutable; named by the first 16 bytes of their BLAKE3
    refs/<32 hex>/log/<10 digits>        one record a move of a ref; each key is written once
    gc/condemned-<time>-<8 hex>          what the next garbage collection may delete
    probe/<32 hex>                       for a moment, while the server's promises are tried out

The directory of a ref is the first 16 bytes of the BLAKE3 of its name: names may be long, hold any
script and lone surrogates, and keys may not. The record says the name itself.

A record's number is 9999999999 - gen, so the newest comes first in every listing, which is in the
order of keys: one page is enough to find it, however long the log.
"""

from __future__ import annotations

from blake3 import blake3

FORMAT = "format.json"
PACKS = "packs"
REFS = "refs"
CONDEMNED = "gc"
PROBE = "probe"

_LAST = 9_999_999_999
_LOG = "log"


def pack_key(pack_id: bytes) -> str:
    """The key of a pack."""
    name = pack_id.hex()
    return f"{PACKS}/{name[:2]}/{name}"


def pack_id(key: str) -> bytes | None:
    """The pack that a key names; None when it is no pack's."""
    try:
        found = bytes.fromhex(key.rpartition("/")[2])
    except ValueError:
        return None
    return found if len(found) == 16 and pack_key(found) == key else None


def ref_dir(ref: str) -> str:
    """The directory of a ref, a single path segment."""
    return blake3(ref.encode("utf-8", "surrogatepass")).digest(16).hex()


def log_prefix(directory: str) -> str:
    """What all keys of a ref's records begin with."""
    return f"{REFS}/{directory}/{_LOG}"


def record_key(directory: str, gen: int) -> str:
    """The key of move number gen of the ref with this directory."""
    return f"{log_prefix(directory)}/{_LAST - gen:010}"


def record_place(key: str) -> tuple[str, int] | None:
    """(directory, gen) of a record's key; None when it is no record's."""
    parts = key.split("/")
    if len(parts) != 4 or parts[0] != REFS or parts[2] != _LOG:
        return None
    if not (parts[3].isascii() and parts[3].isdecimal()):
        return None
    return parts[1], _LAST - int(parts[3])
