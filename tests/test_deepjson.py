"""JSON text of any depth is that of the json module, but for the blanks in front of deep lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapstore import deepjson

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


def nested(depth: int) -> Any:
    """A value of lists and dicts by turns."""
    value: Any = "leaf"
    for level in range(depth):
        value = [value] if level % 2 else {"key": value}
    return value


@pytest.mark.parametrize(
    "how", [{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}], ids=str
)
@given(VALUES)
def test_what_is_written_step_by_step_is_what_json_writes(how: dict[str, Any], value: Any) -> None:
    encoder = json.JSONEncoder(**how)
    assert "".join(deepjson._pieces(value, encoder)) == json.dumps(value, **how)


@given(VALUES)
def test_a_value_of_little_depth_is_written_by_json(value: Any) -> None:
    assert deepjson.dumps(value, indent=2) == json.dumps(value, ensure_ascii=False, indent=2)


def test_any_depth_is_written() -> None:
    text = deepjson.dumps(nested(100_000))
    assert text == '[{"key": ' * 50_000 + '"leaf"' + "}]" * 50_000


def test_indented_text_of_any_depth_grows_by_the_depth_and_is_the_same_value() -> None:
    assert json.loads(deepjson.dumps(nested(900), indent=2)) == nested(900)
    twice = len(deepjson.dumps(nested(20_000), indent=2))
    assert twice < 2.1 * len(deepjson.dumps(nested(10_000), indent=2))


def test_what_is_no_json_is_refused_at_any_depth() -> None:
    for value in ({1, 2}, [{1, 2}], nested(5000)):
        deep = value if not isinstance(value, (dict, list)) else [value, b"bytes"]
        with pytest.raises(TypeError):
            deepjson.dumps(deep)
