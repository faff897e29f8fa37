"""Maps: the content of a plain dict, one root for one content, small changes, fixed bytes."""

from __future__ import annotations

import random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import Corrupt, ObjectMissing
from snapstore.ids import object_id
from snapstore.model.maps import (
    LEAF_ENTRIES,
    Branch,
    Change,
    Inline,
    Leaf,
    Link,
    Maps,
    Value,
    decode,
    encode,
)
from snapstore.model.wire import pack

A, B = bytes([1]) * 32, bytes([2]) * 32


def link(number: int) -> Link:
    return Link(object_id(b"value %d" % number))


def key(number: int) -> bytes:
    return b"key-%d" % number


def numbered(start: int, stop: int) -> dict[bytes, Value]:
    return {key(number): link(number) for number in range(start, stop)}


# --- against a plain dict --------------------------------------------------------------------

KEYS = st.one_of(st.binary(max_size=2), st.integers(0, 300).map(key))
VALUES = st.one_of(st.none(), st.binary(max_size=5).map(Inline), st.integers(0, 9).map(link))
SPANS = st.tuples(st.integers(0, 300), st.integers(0, 150), st.booleans())


@settings(deadline=None, max_examples=80)
@given(st.lists(st.one_of(st.dictionaries(KEYS, VALUES, max_size=6), SPANS), max_size=12))
def test_any_updates_give_what_a_plain_dict_holds(new_memory: Any, steps: list[Any]) -> None:
    memory = new_memory()
    maps, model, root = Maps(memory.read), dict[bytes, Value](), None
    for step in steps:
        if isinstance(step, tuple):
            start, size, present = step
            span = numbered(start, start + size)
            changes: dict[bytes, Value | None] = {
                k: v if present else None for k, v in span.items()
            }
        else:
            changes = step
        before, was = dict(model), root
        root = maps.update(root, changes, memory.put)
        for name, value in changes.items():
            if value is None:
                model.pop(name, None)
            else:
                model[name] = value
        assert list(maps.diff(was, root)) == [
            Change(name, before.get(name), model.get(name))
            for name in sorted(before.keys() | model.keys())
            if before.get(name) != model.get(name)
        ]
    reader = Maps(memory.read)
    assert reader.items(root) == sorted(model.items())
    assert reader.count(root) == len(model)
    for name in [*list(model)[:20], b"not there"]:
        assert reader.get(root, name) == model.get(name)
    assert reader.update(None, model, new_memory().put) == root


@settings(deadline=None, max_examples=30)
@given(size=st.integers(0, 400), seed=st.integers(0, 1000))
def test_the_root_does_not_tell_in_which_order_entries_came_and_went(
    new_memory: Any, size: int, seed: int
) -> None:
    memory, order = new_memory(), random.Random(seed)
    maps, wanted = Maps(memory.read), numbered(0, size)
    names = list(numbered(0, size + 100))
    order.shuffle(names)
    root = None
    for at in range(0, len(names), 37):
        part = {name: wanted.get(name, link(-1)) for name in names[at : at + 37]}
        root = maps.update(root, part, memory.put)
    order.shuffle(names)
    root = maps.update(
        root, dict.fromkeys(name for name in names if name not in wanted), memory.put
    )
    assert root == Maps(memory.read).update(None, wanted, memory.put)


# --- shape -----------------------------------------------------------------------------------


def test_the_empty_map_is_nothing(new_memory: Any) -> None:
    memory = new_memory()
    maps = Maps(memory.read)
    assert maps.update(None, {b"a": None}, memory.put) is None
    root = maps.update(None, {b"a": Inline(b"")}, memory.put)
    assert maps.update(root, {b"a": None}, memory.put) is None
    assert maps.items(None) == []
    assert maps.count(None) == 0
    assert maps.get(None, b"a") is None


@pytest.mark.parametrize("size", [1, LEAF_ENTRIES])
def test_a_small_map_is_one_object(new_memory: Any, size: int) -> None:
    memory = new_memory()
    Maps(memory.read).update(None, numbered(0, size), memory.put)
    assert memory.puts == 1


def test_one_entry_more_than_a_leaf_holds_makes_a_branch_and_one_less_a_leaf_again(
    new_memory: Any,
) -> None:
    memory = new_memory()
    maps = Maps(memory.read)
    leaf = maps.update(None, numbered(0, LEAF_ENTRIES), memory.put)
    branch = maps.update(leaf, {b"one more": Inline(b"")}, memory.put)
    assert leaf is not None
    assert branch is not None
    assert isinstance(maps.node(branch), Branch)
    puts = memory.puts
    assert maps.update(branch, {b"one more": None}, memory.put) == leaf
    assert memory.puts == puts + 1  # The leaf itself, and no node that nothing refers to.


def test_an_update_that_changes_nothing_puts_nothing(new_memory: Any) -> None:
    memory = new_memory()
    maps = Maps(memory.read)
    root = maps.update(None, numbered(0, 1000), memory.put)
    puts = memory.puts
    assert maps.update(root, {**numbered(5, 50), b"not there": None}, memory.put) == root
    assert maps.update(root, {}, memory.put) == root
    assert memory.puts == puts


def test_reachable_nodes_are_all_that_was_put_and_stop_at_what_is_known(new_memory: Any) -> None:
    memory = new_memory()
    maps = Maps(memory.read)
    old = maps.update(None, numbered(0, 1000), memory.put)
    nodes = dict(maps.reachable(old))
    assert nodes.keys() == memory.objects.keys()
    links = {id for node in nodes.values() if isinstance(node, Leaf) for id in node.links}
    assert links == {value.id for value in numbered(0, 1000).values() if isinstance(value, Link)}
    new = maps.update(old, {key(3): Inline(b"new")}, memory.put)
    fresh = [node_id for node_id, _ in maps.reachable(new, nodes)]
    assert set(fresh) == memory.objects.keys() - nodes.keys()
    assert new is not None
    assert list(maps.reachable(new, {new})) == []


# --- cost ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def big_map(new_memory: Any) -> tuple[Any, bytes]:
    """10,000 links."""
    memory = new_memory()
    root = Maps(memory.read).update(None, numbered(0, 10_000), memory.put)
    assert root is not None
    return memory, root


def test_one_changed_key_of_10_000_costs_three_nodes(big_map: Any) -> None:
    memory, root = big_map
    maps = Maps(memory.read)
    memory.reads = memory.puts = 0
    changed = maps.update(root, {key(77): link(-77)}, memory.put)
    assert (memory.reads, memory.puts) == (3, 3)
    memory.reads = 0
    difference = list(Maps(memory.read).diff(root, changed))
    assert difference == [Change(key(77), link(77), link(-77))]
    assert memory.reads == 6


def test_getting_one_key_of_10_000_reads_three_nodes(big_map: Any) -> None:
    memory, root = big_map
    memory.reads = 0
    assert Maps(memory.read).get(root, key(9_999)) == link(9_999)
    assert memory.reads == 3


# --- bytes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "golden"),
    [
        (
            Leaf({b"": Inline(b""), b"\xff/a": Inline(b"x" * 200), b"\xff/b": Link(A)}),
            "9700c400c400c403ff2f61c4c8" + "78" * 200 + "c403ff2f62c72001" + "01" * 32,
        ),
        (
            Branch(65, (None, A, *[None] * 13, B)),
            "940141cd8002c440" + "01" * 32 + "02" * 32,
        ),
    ],
    ids=["leaf", "branch"],
)
def test_the_bytes_of_a_node_are_fixed(node: Leaf | Branch, golden: str) -> None:
    assert encode(node).hex() == golden
    assert decode(bytes.fromhex(golden), A) == node


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [0],
        [0, b"k"],
        [0, b"k", b"v", b"l"],
        [0, "k", b"v"],
        [0, b"k", 1],
        [0, b"k", None],
        [0, b"k", "v"],
        [0, b"k", msgpack.ExtType(1, A[:31])],
        [0, b"k", msgpack.ExtType(2, A)],
        [0, b"k", msgpack.Timestamp(1)],
        [0, b"l", b"", b"k", b""],
        [0, b"k", b"", b"k", b""],
        [0, *[part for n in range(100, 165) for part in (b"%d" % n, b"")]],
        [1, 65, 3],
        [1, 65, 3, A],
        [1, 65, 3, A + B[:31]],
        [1, 65, 0, b""],
        [1, 65, 1 << 16, A],
        [1, 65, -1, A],
        [1, 64, 1, A],
        [1, 65.0, 1, A],
        [1, 65, 1, "a" * 32],
        [2, b"k", b"v"],
        [False, b"k", b"v"],
        [b"k", b"v"],
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_what_is_no_node_is_corrupt(fields: list[Any]) -> None:
    with pytest.raises(Corrupt):
        decode(pack(fields), A)


@settings(deadline=None)
@given(st.binary(max_size=60), st.integers(0, 120))
def test_damaged_bytes_give_a_node_or_corrupt(noise: bytes, at: int) -> None:
    whole = encode(Leaf({b"a": Inline(b"x" * 20), b"b": Link(A), b"c": Link(B)}))
    try:
        node = decode(whole[:at] + noise + whole[at + len(noise) :], A)
    except Corrupt:
        return
    assert node.count >= 1


def test_a_leaf_in_the_wrong_place_is_corrupt(new_memory: Any) -> None:
    memory = new_memory()
    leaf = memory.put(encode(Leaf(dict(sorted(numbered(0, 40).items())))))
    root = memory.put(encode(Branch(80, (leaf, leaf, *[None] * 14))))
    maps = Maps(memory.read)
    for walk in (lambda: maps.items(root), lambda: list(maps.reachable(root))):
        with pytest.raises(Corrupt, match="where its hash belongs"):
            walk()


def test_branches_that_multiply_paths_without_end_are_corrupt(new_memory: Any) -> None:
    memory = new_memory()
    node = memory.put(encode(Leaf({b"k": Inline(b"")})))
    other = memory.put(encode(Leaf({b"k": Inline(b"other")})))
    for _ in range(1100):
        node = memory.put(encode(Branch(65, (node,) * 16)))
        other = memory.put(encode(Branch(65, (other,) * 16)))
    maps = Maps(memory.read)
    for walk in (
        lambda: maps.items(node),
        lambda: maps.get(node, b"k"),
        lambda: list(maps.diff(node, other)),
        lambda: maps.update(node, {b"k": None}, memory.put),
    ):
        memory.reads = 0
        with pytest.raises(Corrupt):
            walk()
        assert memory.reads <= 1101


def test_a_branch_that_miscounts_is_corrupt(new_memory: Any) -> None:
    memory = new_memory()
    root = Maps(memory.read).update(None, numbered(0, 100), memory.put)
    assert root is not None
    branch = decode(memory.objects[root], root)
    assert isinstance(branch, Branch)
    liar = memory.put(encode(Branch(99, branch.children)))
    with pytest.raises(Corrupt, match="counts 99"):
        Maps(memory.read).items(liar)


def test_a_missing_node_is_reported_as_missing(new_memory: Any) -> None:
    with pytest.raises(ObjectMissing):
        Maps(new_memory().read).get(A, b"k")
