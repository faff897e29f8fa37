"""Model objects as bytes: one msgpack array an object, and the two functions that move them.

Decoding is where damaged or hostile bytes come in, so it allocates no more than the array that the
caller expects and knows a single failure, Corrupt. What the fields mean is for the caller to check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack

from snapstore.errors import Corrupt
from snapstore.ids import SIZE

Read = Callable[[bytes], bytes]
"""Id -> verified content of that object; raises ObjectMissing.

It must also find objects that a Put took and no commit has made durable yet.
"""

Put = Callable[[bytes], bytes]
"""Content -> its id; keeps the object for the next commit."""


def pack(fields: list[Any]) -> bytes:
    """The array as msgpack, each field in its shortest form; lone surrogates in text are kept."""
    packed: bytes = msgpack.packb(fields, unicode_errors="surrogatepass")
    return packed


def unpack(content: bytes, object_id: bytes, *, most: int) -> tuple[Any, ...]:
    """The fields of a packed array of at most `most` fields; object_id is for the message only.

    Raises Corrupt when the content is anything else.
    """
    try:
        fields = msgpack.unpackb(
            content,
            use_list=False,
            max_array_len=most,
            max_map_len=0,
            unicode_errors="surrogatepass",
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise damaged(object_id, f"no array of at most {most} fields ({error})") from error
    if type(fields) is not tuple:
        raise damaged(object_id, "no array")
    return fields


def damaged(object_id: bytes, reason: str) -> Corrupt:
    """The error for an object whose bytes are intact but do not mean what their link says."""
    return Corrupt(f"object {object_id.hex()} is not what refers to it expects: {reason}")


def is_link(field: object) -> bool:
    """Whether a decoded field is an id, or nil where a link may be absent."""
    return field is None or (type(field) is bytes and len(field) == SIZE)
