"""Serialised values: where they are cut, and how their bodies are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore import Store
from snapstore.engine import Kind
from snapstore.engines.memory import MemoryEngine
from snapstore.integrations.langgraph.bodies import FAN_OUT, Bodies
from snapstore.integrations.langgraph.cuts import LARGE, SMALL, common_prefix, cut, map_members
from snapstore.integrations.langgraph.turns import Stored, Typed, load, store
from snapstore.objects import Stage

QUICK = settings(deadline=None, max_examples=100)

LEAVES = st.one_of(
    st.none(), st.integers(-5, 5), st.text(max_size=5), st.binary(max_size=300),
    st.builds(lambda n: "x" * n, st.sampled_from([100, SMALL, 400, LARGE + 1])),
    st.builds(msgpack.ExtType, st.integers(0, 9), st.binary(max_size=300)),
    st.builds(
        lambda n: msgpack.ExtType(7, msgpack.packb(["y" * 300] * n)), st.sampled_from([1, 60])
    ),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=40), st.dictionaries(st.text(max_size=3), inner, max_size=20)
    ),
    max_leaves=60,
)
LISTS = st.lists(LEAVES, max_size=60)


def pack(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value)
    return packed


def pieces(data: bytes) -> list[bytes]:
    places = cut(data)
    body, starts = data[places.head :], [0, *places.ends]
    return [body[a:b] for a, b in zip(starts, places.ends, strict=False)]


@QUICK
@given(VALUES)
def test_pieces_joined_are_what_was_cut(value: Any) -> None:
    data = pack(value)
    places = cut(data)
    assert data[: places.head] + b"".join(pieces(data)) == data
    assert places.ends == sorted(set(places.ends))


@QUICK
@given(st.binary(max_size=2000))
def test_any_bytes_are_cut(data: bytes) -> None:
    assert data[: cut(data).head] + b"".join(pieces(data)) == data


@QUICK
@given(LISTS, LISTS, LISTS)
def test_a_list_is_cut_alike_whatever_came_before(
    shared: list[Any], old: list[Any], new: list[Any]
) -> None:
    before, data = pack(shared + old), pack(shared + new)
    places = cut(before)
    assert cut(data, (before[places.head :], places)) == cut(data)


def test_large_members_are_pieces_and_small_ones_go_together() -> None:
    large, small = "l" * 200, "s"
    assert pieces(pack([large, large])) == [pack(large), pack(large)]
    assert pieces(pack([small] * 10 + [large])) == [pack(small) * 10, pack(large)]
    assert len(pieces(pack([small] * 1000))) == 1000 * 2 // SMALL + 1


def test_a_message_is_the_same_piece_in_a_list_a_state_and_an_extension() -> None:
    message = {"role": "user", "content": "m" * 200}
    extension = msgpack.ExtType(7, pack([message] * 100))
    for value in ([message, 1], {"messages": [message]}, extension):
        assert pack(message) in pieces(pack(value))


def test_members_of_a_map_that_is_read_for_its_places() -> None:
    data = pack({"a": 1, "b": {"c": "x"}})
    places = map_members(data, 0, len(data))
    assert {name: msgpack.unpackb(data[a:b]) for name, (a, b) in places.items()} == {
        "a": 1,
        "b": {"c": "x"},
    }
    for wrong in (pack([1]), pack({1: 2}), data + b"\x00"):
        with pytest.raises(ValueError, match=r"map|text|more"):
            map_members(wrong, 0, len(wrong))


@QUICK
@given(st.binary(max_size=50), st.binary(max_size=50), st.binary(max_size=50))
def test_the_common_prefix(shared: bytes, one: bytes, other: bytes) -> None:
    one, other = shared + one, shared + other
    length = common_prefix(one, other)
    assert one[:length] == other[:length]
    assert length in (len(one), len(other)) or one[length] != other[length]


# --- kept --------------------------------------------------------------------------------------


class Shelf:
    """Values as they are kept in a store, one upon the other."""

    def __init__(self, budget: int = 1 << 20) -> None:
        self.store = Store(MemoryEngine())
        self.bodies = Bodies(self.store.objects, budget)

    def keep(self, value: Typed, before: Stored | None = None) -> Stored:
        with Stage(self.store.objects) as stage:
            kept = store(value, self.bodies, stage, before)
            stage.commit()
        return kept

    def count(self) -> int:
        return self.store.engine.stats().objects


@QUICK
@given(st.lists(VALUES, min_size=1, max_size=5), st.sampled_from([0, 1 << 20]))
def test_values_come_back_to_the_byte(values: Sequence[Any], budget: int) -> None:
    shelf = Shelf(budget)
    kept: list[Stored] = []
    for value in values:
        kept.append(shelf.keep(("msgpack", pack(value)), kept[-1] if kept else None))
    for value, stored in zip(values, kept, strict=True):
        for bodies in (shelf.bodies, Bodies(shelf.store.objects)):
            assert load(stored, bodies) == ("msgpack", pack(value))


@pytest.mark.parametrize("size", [0, 10, 5000, 300_000])
def test_what_is_no_msgpack_comes_back_to_the_byte(size: int) -> None:
    shelf = Shelf()
    value = ("msgpack+aes", bytes(n * n % 251 for n in range(size)))
    assert load(shelf.keep(value), shelf.bodies) == value
    kept = shelf.keep(("msgpack", value[1]))
    assert load(kept, Bodies(shelf.store.objects)) == ("msgpack", value[1])


def test_a_body_is_kept_alike_whatever_it_was_built_on() -> None:
    messages = ["x" * 200 + str(n) for n in range(3 * FAN_OUT**2 + 5)]
    grown, at_once = Shelf(), Shelf()
    before: Stored | None = None
    for n in range(1, len(messages) + 1):
        before = grown.keep(("msgpack", pack(messages[:n])), before)
    assert at_once.keep(("msgpack", pack(messages))) == before


def test_a_message_more_costs_a_few_ids() -> None:
    messages = ["x" * 200 + str(n) for n in range(2000)]
    shelf = Shelf(8 << 20)
    before = shelf.keep(("msgpack", pack(messages[:1990])))
    for n in range(1991, 2001):
        objects = shelf.count()
        before = shelf.keep(("msgpack", pack(messages[:n])), before)
        assert shelf.count() - objects <= 5
    ids = shelf.store.engine.ids(b"", 0)
    lists = [shelf.store.engine.read(i) for i, kind in ids if kind == Kind.CHUNKED]
    assert max(len(o.payload) for o in lists) <= 32 * 4 * FAN_OUT


def test_lists_that_differ_in_the_middle_share_the_messages() -> None:
    messages = ["x" * 200 + str(n) for n in range(100)]
    shelf = Shelf()
    before = shelf.keep(("msgpack", pack(messages)))
    objects = shelf.count()
    shelf.keep(("msgpack", pack([*messages[:50], "y" * 300, *messages[51:]])), before)
    assert shelf.count() - objects <= 4
