"""Values go to bytes and come back exactly, or are refused with the place that is to blame."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import Corrupt, UnsupportedValue
from snapstore.frozen import freeze
from snapstore.values import decode, encode, encode_json

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "messages"

any_text = st.text(st.characters(exclude_categories=()), max_size=20)
any_int = st.one_of(st.integers(), st.integers(-(2**70), 2**70), st.integers(-(2**2000), 2**2000))
any_float = st.floats(allow_nan=False, allow_infinity=False)
any_json = st.recursive(
    st.one_of(st.none(), st.booleans(), any_int, any_float, any_text),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(any_text, inner, max_size=5),
    max_leaves=20,
)
any_value = st.recursive(
    st.one_of(st.none(), st.booleans(), any_int, any_float, any_text, st.binary(max_size=20)),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(any_text, inner, max_size=5),
    max_leaves=20,
)


def exactly(value: object) -> str:
    """A text that differs wherever values do: 1, 1.0 and True, 0.0 and -0.0, the order of keys."""
    return repr(value)


def nested(depth: int, core: object = None) -> Any:
    """A value inside lists and dicts in turn, ``depth`` of them."""
    value = core
    for level in range(depth):
        value = {"in": value} if level % 2 else [value]
    return value


def unnested(value: Any, depth: int) -> Any:
    for level in reversed(range(depth)):
        value = value["in"] if level % 2 else value[0]
    return value


# --- the format ------------------------------------------------------------------------------

GOLDEN: list[tuple[object, str]] = [
    (None, "c0"),
    (True, "c3"),
    (False, "c2"),
    (0, "00"),
    (127, "7f"),
    (128, "cc80"),
    (65535, "cdffff"),
    (2**32 - 1, "ceffffffff"),
    (2**64 - 1, "cfffffffffffffffff"),
    (-1, "ff"),
    (-33, "d0df"),
    (-129, "d1ff7f"),
    (-(2**63), "d38000000000000000"),
    (2**64, "c70901010000000000000000"),
    (-(2**63) - 1, "c70901ff7fffffffffffffff"),
    (2**71 - 1, "c709017fffffffffffffffff"),
    (2**71, "c70a0100800000000000000000"),
    (-(2**127), "d80180000000000000000000000000000000"),
    (1.0, "cb3ff0000000000000"),
    (-0.0, "cb8000000000000000"),
    ("a\0é", "a46100c3a9"),
    ("x" * 32, "d920" + "78" * 32),
    ("\ud83d\ude00", "a6eda0bdedb880"),
    ([1, []], "920190"),
    ({"b": 1, "a": {}}, "82a16201a16180"),
]


@pytest.mark.parametrize(("value", "packed"), GOLDEN, ids=lambda part: exactly(part)[:24])
def test_the_format_is_fixed(value: object, packed: str) -> None:
    assert encode(value).hex() == packed
    assert exactly(decode(bytes.fromhex(packed))) == exactly(value)


def test_bytes_are_a_bin() -> None:
    assert encode({"k": b"\0\xff"}, allow_bytes=True).hex() == "81a16bc40200ff"


# --- there and back --------------------------------------------------------------------------


@settings(deadline=None)
@given(any_json)
def test_json_comes_back_exactly(value: object) -> None:
    assert exactly(decode(encode(value))) == exactly(value)


@settings(deadline=None)
@given(any_value)
def test_bytes_come_back_where_they_are_allowed(value: object) -> None:
    assert exactly(decode(encode(value, allow_bytes=True))) == exactly(value)


@settings(deadline=None)
@given(any_json)
def test_a_value_has_the_same_bytes_however_deep_it_stands(value: object) -> None:
    depth = 70
    shallow, deep = encode(value), encode(nested(depth, value))
    assert deep == encode(nested(depth, "mark")).replace(encode("mark"), shallow)


@settings(deadline=None)
@given(any_json)
def test_a_value_reads_the_same_however_deep_it_stands(value: object) -> None:
    found = decode(b"\x91" * 2000 + encode(value))
    for _ in range(2000):
        (found,) = found
    assert exactly(found) == exactly(value)


@settings(deadline=None)
@given(any_json)
def test_freshly_parsed_json_has_the_same_bytes(value: object) -> None:
    parsed = json.loads(json.dumps(value))
    assert encode_json(parsed) == encode(parsed)


def test_nesting_of_any_depth_comes_back() -> None:
    depth = 100_000
    packed = encode(nested(depth, "end"))
    assert unnested(decode(packed), depth) == "end"


@pytest.mark.parametrize("depth", [63, 64, 65, 510, 511, 512, 1023, 1024, 1025])
def test_depths_at_which_the_way_changes(depth: int) -> None:
    value = nested(depth, [1.5, "\ud800", 2**80])
    assert exactly(unnested(decode(encode(value)), depth)) == exactly([1.5, "\ud800", 2**80])


def test_parsed_json_may_be_as_deep_as_the_parser_goes() -> None:
    for depth in (500, 900):
        value = nested(depth, 1)
        assert encode_json(value) == encode(value)


def test_a_string_beyond_100_mib_comes_back_alone_and_beside_bytes() -> None:
    text = "x" * (101 << 20)
    assert decode(encode(text)) == text
    assert decode(encode([text, b""], allow_bytes=True)) == [text, b""]


def test_long_arrays_and_objects_come_back() -> None:
    numbers = [*range(40_000), 0.5, -1e308]
    table = {f"k{n}": n for n in range(20_000)}
    for value in (numbers, table, [b"", *numbers], [2**99, *numbers]):
        assert exactly(decode(encode(value, allow_bytes=True))) == exactly(value)


def test_numbers_that_look_like_a_nan_on_the_way_are_kept() -> None:
    for value in (
        [0xCB7F],
        [0xCBFF, 1.5],
        [1.7976931348623157e308, -1e305],
        ["\u02ff\x7f", 0xCA7F],
    ):
        assert decode(encode(value)) == value
        assert encode_json(value) == encode(value)


def test_a_memoryview_is_read_like_bytes() -> None:
    packed = encode({"a": [1, 2**64]})
    assert decode(memoryview(b"__" + packed)[2:]) == {"a": [1, 2**64]}


def test_threads_do_not_mix_their_values() -> None:
    values = [{"n": n, "text": str(n) * 500} for n in range(200)]
    with ThreadPoolExecutor(4) as pool:
        assert [decode(data) for data in pool.map(encode, values)] == values


@pytest.mark.skipif(not CORPUS.is_dir(), reason="no corpus beside the checkout")
def test_the_messages_of_the_corpus_come_back_exactly() -> None:
    rows = [
        json.loads(line)
        for path in sorted(CORPUS.glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()[:200]
        if line.strip()
    ]
    assert rows
    for row in rows:
        assert exactly(decode(encode_json(row))) == exactly(row)
        assert encode(row) == encode_json(row)


# --- base types ------------------------------------------------------------------------------


class Level(IntEnum):
    HIGH = 3


class Word(str):
    def __str__(self) -> str:
        return "another word"


class Metres(float):
    def __repr__(self) -> str:
        return "metres"


class Names(list[Any]):
    pass


def test_subclasses_are_stored_as_their_base_type() -> None:
    value = {"a": Level.HIGH, Word("yes"): Word("yes"), "m": Metres(1.5), "n": Names([True, {}])}
    assert exactly(decode(encode(value))) == "{'a': 3, 'yes': 'yes', 'm': 1.5, 'n': [True, {}]}"


def test_an_ordered_dict_keeps_its_own_order() -> None:
    value = OrderedDict(a=1, b=2)
    value.move_to_end("a")
    assert list(decode(encode(value))) == ["b", "a"]


def test_frozen_values_are_stored_as_what_they_show() -> None:
    value = {"a": [1, {"b": []}]}
    assert encode(freeze(value)) == encode(value)


# --- refusals --------------------------------------------------------------------------------

REFUSED: list[tuple[Any, str, str]] = [
    ({"content": [{"input": {"when": math.nan}}]}, ".content[0].input.when", "nan"),
    ([1, [2, -math.inf]], "[1][1]", "inf"),
    (math.inf, "", "inf"),
    ({"odd key": {"x": {1}}}, '["odd key"].x', "set"),
    ({"größe": object()}, ".größe", "object"),
    ({"\ud800": object()}, '["\\ud800"]', "object"),
    ({"": object()}, '[""]', "object"),
    ({"a": (1, 2)}, ".a", "tuple"),
    ({"a": [{}, {3: "int key"}]}, ".a[1]", "key 3"),
    ({"a": {None: 1}}, ".a", "key None"),
    ({"a": {b"k": 1}}, ".a", "key b'k'"),
    ({"a": b"x"}, ".a", "bytes"),
    ({"a": bytearray(b"x")}, ".a", "bytearray"),
]


@pytest.mark.parametrize(("value", "place", "reason"), REFUSED, ids=lambda part: str(part)[:24])
def test_what_is_not_json_is_refused_with_its_place(value: Any, place: str, reason: str) -> None:
    with pytest.raises(UnsupportedValue) as refusal:
        encode(value, path="messages[3]")
    assert refusal.value.path == "messages[3]" + place
    assert reason in refusal.value.reason
    assert isinstance(refusal.value, TypeError)


def test_a_refusal_names_places_of_any_depth() -> None:
    with pytest.raises(UnsupportedValue) as refusal:
        encode(nested(2000, math.nan))
    assert refusal.value.path == "value" + ".in[0]" * 1000


@pytest.mark.parametrize("value", [bytearray(b"x"), memoryview(b"x"), math.nan, {b"k": 1}, (b"",)])
def test_allowing_bytes_allows_nothing_else(value: object) -> None:
    with pytest.raises(UnsupportedValue):
        encode([value], allow_bytes=True)


@pytest.mark.parametrize(
    "text", ['{"a": [0, NaN]}', '{"a": [0, Infinity]}', '{"a": [0, -Infinity]}']
)
def test_parsed_json_is_refused_for_its_nans(text: str) -> None:
    with pytest.raises(UnsupportedValue) as refusal:
        encode_json(json.loads(text), path="messages[0]")
    assert refusal.value.path == "messages[0].a[1]"


def test_parsed_json_with_types_of_the_callers_is_refused_where_they_stand() -> None:
    for text, hooks in (
        ('[0, {"k": 1}]', {"object_pairs_hook": tuple}),
        ("[0, 1.5]", {"parse_float": Decimal}),
    ):
        with pytest.raises(UnsupportedValue) as refusal:
            encode_json(json.loads(text, **hooks))
        assert refusal.value.path == "value[1]"


def test_a_value_inside_itself_is_refused_but_one_that_stands_twice_is_not() -> None:
    loop: dict[str, Any] = {"a": [1]}
    loop["a"].append(loop)
    with pytest.raises(UnsupportedValue, match="contains itself") as refusal:
        encode(loop)
    assert refusal.value.path == "value.a[1]"
    shared = OrderedDict(x=1)
    assert decode(encode([shared, shared])) == [{"x": 1}, {"x": 1}]


# --- foreign bytes ---------------------------------------------------------------------------

FOREIGN = {
    "nothing": b"",
    "a form that msgpack does not use": b"\xc1",
    "two values": b"\x01\x02",
    "a short array": b"\x92\x01",
    "a short map": b"\x81\xa1a",
    "a short string": b"\xa5ab",
    "a string that is no UTF-8": b"\xa1\xff",
    "an int as key": b"\x81\x01\x01",
    "bytes as key": b"\x81\xc4\x01a\x01",
    "empty bytes as key": b"\x81\xc4\x00\x01",
    "an array as key": b"\x81\xdd\xff\xff\xff\xff\x01",
    "a wide integer as key": b"\x81" + encode(2**64) + b"\x01",
    "a timestamp": b"\xd6\xff\0\0\0\0",
    "an unknown ext type": b"\xd4\x05a",
    "a wide integer that fits in 64 bits": b"\xd4\x01\x05",
    "a wide integer with a needless byte": bytes.fromhex("c70a0100010000000000000000"),
    "an empty wide integer": b"\xc7\x00\x01",
    "a nan": b"\x91\xcb\x7f\xf8\0\0\0\0\0\0",
    "minus infinity": b"\x91\xcb\xff\xf0\0\0\0\0\0\0",
    "a nan of 32 bits": b"\xca\x7f\xc0\0\0",
    "a nan in a long array": encode([*range(40_000), 1.5])[:-8] + b"\x7f\xf8\0\0\0\0\0\0",
    "an array that is not there": b"\xdd\xff\xff\xff\xff",
    "a map that is not there": b"\xdf\xff\xff\xff\xff",
    "a string that is not there": b"\xdb\xff\xff\xff\xff",
    "nesting without an end": b"\x91" * 100_000,
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN.keys())
def test_foreign_bytes_are_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode(data)


@settings(deadline=None)
@given(any_value, st.data())
def test_cut_or_lengthened_bytes_are_corrupt(value: object, data: st.DataObject) -> None:
    packed = encode(value, allow_bytes=True)
    with pytest.raises(Corrupt):
        decode(packed[: data.draw(st.integers(0, len(packed) - 1))])
    with pytest.raises(Corrupt):
        decode(packed + b"\0")


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60) | st.builds(lambda v, t: encode(v) + t, any_json, st.binary()))
def test_any_bytes_are_corrupt_or_a_value_that_can_be_stored(data: bytes) -> None:
    try:
        value = decode(data)
    except Corrupt:
        return
    assert exactly(decode(encode(value, allow_bytes=True))) == exactly(value)


@settings(deadline=None, max_examples=200)
@given(any_value, st.data())
def test_a_changed_byte_gives_corrupt_or_a_value_that_can_be_stored(
    value: object, data: st.DataObject
) -> None:
    packed = bytearray(encode(value, allow_bytes=True))
    packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode(bytes(packed))
    except Corrupt:
        return
    assert exactly(decode(encode(found, allow_bytes=True))) == exactly(found)


def test_claimed_lengths_reserve_no_memory() -> None:
    claims = b"\xdd\x00\x02\x00\x00" * 1000 + b"\0" * (1 << 17)
    tracemalloc.start()
    try:
        with pytest.raises(Corrupt):
            decode(claims)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Taken at its word, each of the thousand arrays would reserve 1 MiB.
    assert peak < 160 << 20
