"""JSON texts: the style in which a program wrote one, and the same bytes again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from snapstore.formats.jsontext import STYLES, style_of, write

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, categories=("L", "N", "P", "S", "Z", "C"))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


# An indented text without a space behind its colons is a number that no program writes.
WAYS = [style for style in range(STYLES) if style < 4 or style & 2]


@settings(deadline=None)
@given(VALUES, st.sampled_from(WAYS))
def test_what_is_written_in_a_style_is_written_again_as_the_same_bytes(
    value: Any, style: int
) -> None:
    raw = write(value, style)
    read = json.loads(raw)
    assume(read == value)  # two halves of a character that come to stand together are one
    found = style_of(read, raw)
    assert found is not None
    assert write(read, found) == raw


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":1,"b":[]}',
        b'{"a": 1, "b": []}',
        '{"a":"ü 🎉"}'.encode(),
        b'{"a":"\\u00fc"}',
        b'{"half":"\\ud83d"}',
        '{"half":"ü\\ud83d"}'.encode(),
        b'{\n  "a": [\n    1,\n    2\n  ]\n}',
        b'{\n    "a": 1\n}',
        b"[1,2]",
        b"[1, 2]",
        b"null",
        b'{"f":100.0,"g":-0.0}',
        b'{"wide":18446744073709551616}',
    ],
)
def test_the_ways_in_which_programs_write_have_a_style(raw: bytes) -> None:
    value = json.loads(raw)
    style = style_of(value, raw)
    assert style is not None and write(value, style) == raw


@pytest.mark.parametrize(
    "raw",
    [b'{"a":1E2}', b'{"a":1,"a":2}', b'{"a":1 }', b'{"a" :1}', b'{"a":"\\/"}', b'{"a":"\\u00FC"}'],
)
def test_other_ways_have_none(raw: bytes) -> None:
    assert style_of(json.loads(raw), raw) is None
