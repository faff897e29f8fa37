"""Rows out of files in every state that programs leave them in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.formats.jsonl import Rows, load, parse, parse_document

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def values(data: bytes) -> list[Any]:
    return [row.value for row in parse(data).rows]


def notes(data: bytes) -> list[str]:
    return [str(warning) for warning in parse(data).warnings]


def assert_rows_are_slices(data: bytes, rows: Rows) -> None:
    end = 0
    for row in rows.rows:
        assert data[row.offset : row.offset + len(row.raw)] == row.raw
        assert row.line == data.count(b"\n", 0, row.offset) + 1
        assert row.offset >= end
        end = row.offset + len(row.raw)


def test_a_row_knows_its_bytes_and_where_they_stand() -> None:
    first, second = parse(b'{"a": 1}\n{"b":"\xc3\xa9"}\n').rows
    assert (first.value, first.raw, first.line, first.offset) == ({"a": 1}, b'{"a": 1}', 1, 0)
    assert (second.value, second.line, second.offset) == ({"b": "é"}, 2, 9)


@pytest.mark.parametrize(
    "data",
    [
        b"1\n2\n",
        b"1\n2",
        b"\xef\xbb\xbf1\n2\n",
        b"1\r\n2\r\n",
        b"\n\n1\n \t\n2\n\n",
        b"1 2\n",
    ],
    ids=["plain", "no final newline", "byte order mark", "CRLF", "blank lines", "glued"],
)
def test_what_stands_around_values_is_skipped(data: bytes) -> None:
    rows = parse(data)
    assert [row.value for row in rows.rows] == [1, 2]
    assert [row.raw for row in rows.rows] == [b"1", b"2"]
    assert rows.warnings == ()
    assert_rows_are_slices(data, rows)


def test_glued_values_are_rows_of_the_same_line() -> None:
    rows = parse('{"a":"é"}{"b":2}\n'.encode())
    assert [(row.value, row.line, row.offset) for row in rows.rows] == [
        ({"a": "é"}, 1, 0),
        ({"b": 2}, 1, 10),
    ]


def test_values_before_garbage_on_a_line_are_kept() -> None:
    data = b'{"a":1}{"b":\n{"c":3}\n'
    assert values(data) == [{"a": 1}, {"c": 3}]
    (warning,) = parse(data).warnings
    assert (warning.line, warning.offset) == (1, 7)
    assert "5 bytes after the last whole value" in warning.what


@pytest.mark.parametrize(
    ("damaged", "what"),
    [
        (b"{oops}", "not JSON"),
        (b'{"a":"\xff"}', "not valid UTF-8"),
        (b"\0" * 300, "300 NUL bytes"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    ],
)
def test_an_unreadable_line_is_reported_and_costs_only_itself(damaged: bytes, what: str) -> None:
    data = b"1\n" + damaged + b"\n2\n"
    assert values(data) == [1, 2]
    (note,) = notes(data)
    assert note.startswith("line 2: ")
    assert what in note


@pytest.mark.parametrize("last", [b'{"a":"unfinis', b'{"a":"caf\xc3'])
def test_a_line_cut_short_at_the_end_is_called_so(last: bytes) -> None:
    (note,) = notes(b"1\n" + last)
    assert note.startswith("line 2: cut short")


def test_wherever_the_last_row_is_cut_the_rows_before_it_are_read() -> None:
    whole = '{"a":1}\n{"b":"é"}\n'.encode()
    last = '{"text":"naïve 🎉","n":[1,{"x":"\\ud83d"}]}'.encode()
    for cut in range(1, len(last)):
        rows = parse(whole + last[:cut])
        assert [row.value for row in rows.rows] == [{"a": 1}, {"b": "é"}]
        assert [warning.line for warning in rows.warnings] == [3]


def test_rows_need_not_be_objects() -> None:
    assert values(b'null\n42\n"text"\n[1,2]\ntrue\n') == [None, 42, "text", [1, 2], True]


def test_the_last_of_equal_keys_counts_and_the_bytes_hold_both() -> None:
    (row,) = parse(b'{"a":1,"a":2}\n').rows
    assert row.value == {"a": 2}
    assert row.raw == b'{"a":1,"a":2}'


def test_numbers_that_are_not_json_are_read_as_text_and_reported() -> None:
    data = b'{"x":NaN,"y":-Infinity,"z":1e999,"n":1.50}\n'
    assert values(data) == [{"x": "NaN", "y": "-Infinity", "z": "1e999", "n": 1.5}]
    assert notes(data) == ["line 1: NaN, -Infinity, 1e999 is not a JSON number; read as text"]


def test_a_report_of_odd_numbers_is_of_the_row_that_holds_them() -> None:
    assert notes(b'[NaN, oops\n[1]\n"fin\xc3\xa9"\n') == [
        "line 1: not JSON; the line is kept but not read"
    ]


@given(
    st.lists(JSON_VALUES, max_size=6),
    st.lists(st.sampled_from(["\n", "\r\n", "\n\n", " \t", "\n \n"]), min_size=6, max_size=6),
    st.booleans(),
)
@settings(deadline=None)
def test_values_written_in_any_way_are_read_as_they_were(
    written: list[Any], separators: list[str], escaped: bool
) -> None:
    texts = [json.dumps(value, ensure_ascii=escaped) for value in written]
    joined = "".join(map("".join, zip(texts, separators, strict=False)))
    data = joined.encode("utf-8", "surrogatepass" if escaped else "replace")
    rows = parse(data)
    assert rows.warnings == ()
    assert [row.raw.decode() for row in rows.rows] == [
        text.encode("utf-8", "replace").decode() for text in texts
    ]
    assert_rows_are_slices(data, rows)


@given(
    st.lists(st.sampled_from([b"{", b"}", b'"', b"\n", b"1", b"\0", b"\xc3", b"\xa9", b"[", b"]"]))
)
@settings(deadline=None)
def test_no_bytes_make_the_reader_fail(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    assert_rows_are_slices(data, parse(data))


def test_one_document_over_many_lines_is_one_row() -> None:
    data = b'\n{\n  "messages": [\n    1\n  ]\n}\n'
    rows = load(data)
    assert [(row.value, row.line) for row in rows.rows] == [({"messages": [1]}, 2)]
    assert rows.warnings == ()
    assert_rows_are_slices(data, rows)


def test_a_damaged_first_line_does_not_make_a_file_one_document() -> None:
    rows = load(b'{"a":\n{"b":2}\n')
    assert [row.value for row in rows.rows] == [{"b": 2}]
    assert parse_document(b'{"a":\n{"b":2}\n') is None
