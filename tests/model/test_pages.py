"""Pages: rows of a file, apart and together again; what is damaged is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore import Corrupt
from snapstore.ids import SIZE
from snapstore.model.layout import Layout
from snapstore.model.pages import RAW, PageRow, Part, decode_page, encode_page, parts_of

ID = bytes(SIZE)
PARTS = st.binary(min_size=SIZE, max_size=SIZE).map(Part)
TEXTS = st.text(st.characters(codec=None), max_size=5)
SMALL = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
INLINE = st.recursive(SMALL | PARTS, lambda one: st.lists(one, max_size=2), max_leaves=3)
VALUES: Any = INLINE | st.dictionaries(st.sampled_from("abcd"), INLINE, max_size=4)
GAPS = st.sampled_from([b"\n", b"", b"\r\n", b"\n\n", b"\0\0\n", b"\xef\xbb\xbf"])


@st.composite
def pages(draw: Any) -> list[PageRow]:
    rows, place = [], -1
    for _ in range(draw(st.integers(1, 12))):
        place += draw(st.integers(1, 40))
        gap, beside = draw(GAPS), draw(st.booleans())
        if draw(st.integers(0, 5)):
            rows.append(PageRow(place, gap, draw(st.integers(0, 35)), beside, draw(VALUES)))
        else:
            rows.append(PageRow(place, gap, RAW, beside, draw(st.binary() | PARTS)))
    return rows


@settings(deadline=None)
@given(pages())
def test_rows_come_back_as_they_were(rows: list[PageRow]) -> None:
    again = decode_page(encode_page(rows), ID)
    assert again == rows
    assert [list(row.value) for row in again if isinstance(row.value, dict)] == [
        list(row.value) for row in rows if isinstance(row.value, dict)
    ]


def test_all_parts_are_named_however_deep_they_stand() -> None:
    ids = [bytes([n]) * SIZE for n in range(3)]
    value = {"a": Part(ids[0]), "b": [{"c": Part(ids[1])}]}
    rows = [PageRow(0, b"", 0, False, value), PageRow(1, b"\n", RAW, True, Part(ids[2]))]
    assert set(parts_of(decode_page(encode_page(rows), ID))) == set(ids)


def test_what_rows_have_in_common_stands_in_columns_and_costs_little() -> None:
    row = {"sessionId": "S" * 36, "cwd": "/home/somebody/project", "type": "user"}
    one, many = (
        encode_page([PageRow(n, b"\n", 0, False, {**row, "n": n}) for n in range(count)])
        for count in (1, 100)
    )
    assert many.count(b"sessionId") == one.count(b"sessionId") == 1


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=80) | pages().map(encode_page).map(lambda page: page[:-1]))
def test_bytes_that_are_no_page_are_told_as_damage(content: bytes) -> None:
    try:
        rows = decode_page(content, ID)
    except Corrupt:
        return
    assert all(isinstance(row, PageRow) for row in rows)


def test_a_layout_names_the_ends_of_all_lines() -> None:
    kept: list[bytes] = []

    def put(content: bytes) -> bytes:
        kept.append(content)
        return b"e" * SIZE

    layout = Layout.of([b"a" * SIZE, b"b" * SIZE], None, b"torn", put)
    assert kept == [b"torn"]
    assert Layout.decode(layout.encode(), ID) == layout
    assert Layout.of([b"a" * SIZE], None, b"\n", put).end is None


@pytest.mark.parametrize("content", [b"", b"\xc0", b"\x93\xc4\x00\xc0\xc0", b"\x93\xc0\xc0\xc0"])
def test_bytes_that_are_no_layout_are_told_as_damage(content: bytes) -> None:
    with pytest.raises(Corrupt):
        Layout.decode(content, ID)
