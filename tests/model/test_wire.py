"""Arrays on the wire: exact, bounded, and Corrupt is the one way to fail."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore.errors import Corrupt
from snapstore.model.recent import Recent
from snapstore.model.wire import pack, unpack

ID = bytes(32)


def test_lone_surrogates_survive() -> None:
    assert unpack(pack(["cut \ud83d", b"\x00", None, -1]), ID, most=4) == (
        "cut \ud83d",
        b"\x00",
        None,
        -1,
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc0",
        b"\x92\x01",
        b"\x91\x01\x01",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 3000,
        b"\x91\xdb\xff\xff\xff\xffx",
        b"\x91\x81\xa1k\x01",
        b"\x91\xa1\xff",
        b"\xc1",
        pack([1, 2, 3, 4, 5]),
    ],
    ids=[
        "nothing",
        "no array",
        "too short",
        "too long",
        "four billion fields",
        "deep",
        "huge text",
        "a map",
        "no UTF-8",
        "reserved byte",
        "a field too many",
    ],
)
def test_what_is_no_small_array_is_corrupt(content: bytes) -> None:
    with pytest.raises(Corrupt, match=ID.hex()):
        unpack(content, ID, most=4)


@given(st.binary(max_size=200))
def test_any_bytes_give_fields_or_corrupt(content: bytes) -> None:
    with contextlib.suppress(Corrupt):
        assert len(unpack(content, ID, most=5)) <= 5


def test_the_cache_keeps_what_is_used_and_stays_small() -> None:
    recent: Recent[int] = Recent(10)
    keys = [n.to_bytes(2, "big") for n in range(1000)]
    recent.add(b"used", -1)
    for n, key in enumerate(keys):
        recent.add(key, n)
        assert recent.get(b"used") == -1
    remembered = [key for key in keys if recent.get(key) is not None]
    assert keys[-9:] == remembered[-9:]
    assert len(remembered) <= 20
