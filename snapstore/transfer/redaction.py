"""A transcript without its secrets, before anything of it is kept.

Rows that hold none stay as they are, byte for byte. The same transcript comes out the same each
time, so that one that has grown goes on in its session.
"""

from __future__ import annotations

import json

from snapstore.formats.jsonl import Row, load
from snapstore.maintenance.redact import redact, redact_bytes


def without_secrets(data: bytes) -> bytes:
    """The bytes of a transcript with the secrets taken out of every text in its rows.

    What is no row is searched as plain text.
    """
    pieces: list[bytes] = []
    at = 0
    for row in load(data).rows:
        pieces += [redact_bytes(data[at : row.offset]), _redacted(row)]
        at = row.offset + len(row.raw)
    return b"".join((*pieces, redact_bytes(data[at:])))


def _redacted(row: Row) -> bytes:
    try:
        value = redact(row.value)
        if value == row.value:
            return row.raw
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return json.dumps(value, separators=(",", ":")).encode()
    except RecursionError:
        return redact_bytes(row.raw)
