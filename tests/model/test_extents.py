"""Lists: the content of a plain list, shared beginnings, few reads, fixed bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import Corrupt, ObjectMissing
from snapstore.ids import object_id
from snapstore.model.extents import NODE_ITEMS, Lists, Node
from snapstore.model.wire import pack


def item(number: int) -> bytes:
    return object_id(b"item %d" % number)


def items(start: int, stop: int) -> list[bytes]:
    return [item(number) for number in range(start, stop)]


# --- against a plain list --------------------------------------------------------------------

EDITS = st.lists(
    st.tuples(
        st.sampled_from(["append", "replace"]),
        st.integers(0, 10**6),
        st.one_of(st.integers(0, 5), st.sampled_from([255, 256, 257, 600])),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=80)
@given(edits=EDITS, window=st.tuples(st.integers(-3, 900), st.integers(-3, 900)))
def test_any_edits_give_what_a_plain_list_holds(
    new_memory: Any, edits: list[tuple[str, int, int]], window: tuple[int, int]
) -> None:
    memory = new_memory()
    lists, model, tip, fresh = Lists(memory.read), list[bytes](), None, 0
    for how, where, size in edits:
        added = items(fresh, fresh + size)
        fresh += size
        if how == "append":
            tip, model = lists.append(tip, added, memory.put), model + added
        else:
            keep = where % (len(model) + 1)
            tip, model = lists.replace(tip, keep, added, memory.put), model[:keep] + added
    for reader in (lists, Lists(memory.read)):
        assert reader.length(tip) == len(model)
        assert reader.slice(tip, 0, len(model)) == model
        assert reader.slice(tip, *window) == model[max(window[0], 0) : max(window[1], 0)]
        for index in range(0, len(model), 1 + len(model) // 20):
            assert reader.item(tip, index) == model[index]


@settings(deadline=None, max_examples=80)
@given(
    shared=st.lists(st.integers(1, 4), max_size=40),
    keep=st.integers(0, 10**6),
    left=st.lists(st.integers(1, 3), max_size=30),
    right=st.lists(st.integers(1, 3), max_size=30),
    alike=st.integers(0, 40),
)
def test_the_common_prefix_is_where_the_items_part(
    new_memory: Any,
    shared: list[int],
    keep: int,
    left: list[int],
    right: list[int],
    alike: int,
) -> None:
    memory = new_memory()
    lists, tip, length = Lists(memory.read), None, 0
    for size in shared:
        tip = lists.append(tip, items(length, length + size), memory.put)
        length += size
    keep %= length + 1
    one, other, at = tip, lists.replace(tip, keep, [], memory.put), length
    for size in left:
        one = lists.append(one, items(at, at + size), memory.put)
        at += size
    at = keep
    for size in right:
        # The first `alike` items repeat what the left side has there, cut as it comes.
        numbers = [n if n - keep < alike else -1 - n for n in range(at, at + size)]
        other = lists.append(other, [item(n) for n in numbers], memory.put)
        at += size
    whole_one = lists.slice(one, 0, lists.length(one))
    whole_other = lists.slice(other, 0, lists.length(other))
    expected = 0
    while (
        expected < min(len(whole_one), len(whole_other))
        and whole_one[expected] == whole_other[expected]
    ):
        expected += 1
    reader = Lists(memory.read)
    assert reader.common_prefix(one, other) == expected
    assert reader.common_prefix(other, one) == expected


def test_lists_cut_differently_from_the_start_have_their_prefix_in_common(new_memory: Any) -> None:
    memory = new_memory()
    lists = Lists(memory.read)
    one, other = None, lists.append(None, [*items(0, 700), item(-1)], memory.put)
    for at in range(0, 1000, 2):
        one = lists.append(one, items(at, at + 2), memory.put)
    assert lists.common_prefix(one, other) == 700


# --- sharing ---------------------------------------------------------------------------------


def test_equal_appends_cut_alike_give_equal_ids(new_memory: Any) -> None:
    tips = []
    for memory in (new_memory(), new_memory()):
        tip = None
        for at in range(0, 40, 2):
            tip = Lists(memory.read).append(tip, items(at, at + 2), memory.put)
        tips.append(tip)
    assert tips[0] == tips[1]


def test_replacing_nothing_is_the_same_list(new_memory: Any) -> None:
    memory = new_memory()
    lists = Lists(memory.read)
    tip = lists.append(None, items(0, 300), memory.put)
    puts = memory.puts
    assert lists.replace(tip, 300, [], memory.put) == tip
    assert lists.append(tip, [], memory.put) == tip
    assert lists.append(None, [], memory.put) is None
    assert lists.replace(tip, 0, [], memory.put) is None
    assert memory.puts == puts


def test_keeping_whole_nodes_goes_back_to_the_older_tip(new_memory: Any) -> None:
    memory = new_memory()
    lists = Lists(memory.read)
    older = lists.append(None, items(0, 10), memory.put)
    newer = lists.append(older, items(10, 20), memory.put)
    assert lists.replace(newer, 10, [], memory.put) == older
    assert lists.replace(newer, 10, items(10, 20), memory.put) == newer


def test_a_cut_through_a_node_repeats_only_that_nodes_items(new_memory: Any) -> None:
    memory = new_memory()
    lists = Lists(memory.read)
    older = lists.append(None, items(0, 10), memory.put)
    newer = lists.append(older, items(10, 20), memory.put)
    tip = lists.replace(newer, 13, [item(99)], memory.put)
    assert tip is not None
    node = lists.node(tip)
    assert node.prev == older
    assert node.ids == b"".join([*items(10, 13), item(99)])


def test_a_long_append_makes_full_nodes(new_memory: Any) -> None:
    memory = new_memory()
    lists = Lists(memory.read)
    tip = lists.append(None, items(0, 2 * NODE_ITEMS + 1), memory.put)
    sizes = [len(node.ids) // 32 for _, node in lists.reachable(tip)]
    assert sizes == [1, NODE_ITEMS, NODE_ITEMS]


def test_reachable_nodes_stop_at_what_is_known(new_memory: Any) -> None:
    memory = new_memory()
    lists, tip = Lists(memory.read), None
    tips = []
    for at in range(5):
        tip = lists.append(tip, [item(at)], memory.put)
        assert tip is not None
        tips.append(tip)
    assert [node_id for node_id, _ in lists.reachable(tip)] == tips[::-1]
    assert [node_id for node_id, _ in lists.reachable(tip, {tips[1]})] == tips[:1:-1]
    assert list(lists.reachable(None)) == []


# --- cost ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_list(new_memory: Any) -> tuple[Any, bytes, list[bytes]]:
    """100,000 items, two a node."""
    memory = new_memory()
    lists, tip = Lists(memory.read), None
    ids = [number.to_bytes(32, "big") for number in range(100_000)]
    for at in range(0, len(ids), 2):
        tip = lists.append(tip, ids[at : at + 2], memory.put)
    assert tip is not None
    assert memory.reads < 1000  # Appending hardly reads, however long the list is.
    return memory, tip, ids


LOGARITHMIC = 3 * 17


@pytest.mark.parametrize("index", [0, 1, 12_345, 65_534, 77_777, 99_999])
def test_an_item_of_100_000_costs_few_reads(long_list: Any, index: int) -> None:
    memory, tip, ids = long_list
    memory.reads = 0
    assert Lists(memory.read).item(tip, index) == ids[index]
    assert memory.reads <= LOGARITHMIC


def test_a_slice_of_100_000_costs_what_it_holds(long_list: Any) -> None:
    memory, tip, ids = long_list
    memory.reads = 0
    assert Lists(memory.read).slice(tip, 40_001, 40_201) == ids[40_001:40_201]
    assert memory.reads <= 101 + LOGARITHMIC


def test_going_on_with_a_list_that_was_just_opened_costs_few_reads(long_list: Any) -> None:
    memory, tip, _ = long_list
    lists = Lists(memory.read)
    memory.reads = 0
    tip = lists.append(tip, [item(0)], memory.put)
    assert memory.reads <= 2
    for at in range(1, 50):
        tip = lists.append(tip, [item(at)], memory.put)
    assert memory.reads <= 17


@pytest.mark.parametrize("fork", [0, 2, 31_002, 65_533, 99_999])
def test_where_two_long_lists_part_costs_few_reads(long_list: Any, fork: int) -> None:
    memory, tip, _ = long_list
    lists = Lists(memory.read)
    other = lists.replace(tip, fork, [], memory.put)
    for at in range(200):
        other = lists.append(other, [item(at)], memory.put)
    memory.reads = 0
    assert Lists(memory.read).common_prefix(tip, other) == fork
    assert memory.reads <= 6 * LOGARITHMIC


# --- what is refused -------------------------------------------------------------------------


def test_bounds_and_sizes_are_checked(new_memory: Any) -> None:
    memory = new_memory()
    lists = Lists(memory.read)
    tip = lists.append(None, items(0, 3), memory.put)
    for index in (-1, 3):
        with pytest.raises(IndexError):
            lists.item(tip, index)
    with pytest.raises(IndexError):
        lists.item(None, 0)
    for keep in (-1, 4):
        with pytest.raises(ValueError, match="cannot keep"):
            lists.replace(tip, keep, [], memory.put)
    with pytest.raises(ValueError, match="32 bytes"):
        lists.append(tip, [bytes(31)], memory.put)
    with pytest.raises(ObjectMissing):
        lists.length(bytes(32))


A, B, C = bytes([1]) * 32, bytes([2]) * 32, bytes([3]) * 32


@pytest.mark.parametrize(
    ("node", "golden"),
    [
        (Node(None, None, 1, 1, C), "95c0c00101c420" + "03" * 32),
        (Node(A, A, 2, 3, C + C), "95c420" + "01" * 32 + "c00203c440" + "03" * 64),
        (Node(A, None, 3, 4, C), "95c420" + "01" * 32 + "c00304c420" + "03" * 32),
        (
            Node(A, B, 70_000, 140_000, C + C),
            "95c420" + "01" * 32 + "c420" + "02" * 32 + "ce00011170ce000222e0c440" + "03" * 64,
        ),
    ],
    ids=["first", "jump is prev", "jump is nothing", "far along"],
)
def test_the_bytes_of_a_node_are_fixed(node: Node, golden: str) -> None:
    assert node.encode().hex() == golden
    assert Node.decode(bytes.fromhex(golden), A) == node


@pytest.mark.parametrize(
    "fields",
    [
        [A, None, 2, 3],
        [A, None, 2, 3, C, None],
        [None, None, 1, 1, b""],
        [None, None, 1, 1, C[:31]],
        [None, None, 1, 257, C * 257],
        [None, None, 1, 1, "c" * 32],
        [A[:31], None, 2, 3, C],
        [A, A + A, 2, 3, C],
        [A, None, True, 3, C],
        [A, None, 2, 3.0, C],
        [A, None, 2, -1, C],
        [A, None, 0, 3, C],
        [A, None, 1, 3, C],
        [None, None, 2, 3, C],
        [None, None, 1, 3, C],
        [A, None, 2, 1, C],
        [A, None, 5, 4, C],
    ],
    ids=str,
)
def test_what_is_no_node_is_corrupt(fields: list[object]) -> None:
    with pytest.raises(Corrupt):
        Node.decode(pack(fields), A)


@settings(deadline=None)
@given(st.binary(max_size=120), st.integers(0, 140))
def test_damaged_bytes_give_a_node_or_corrupt(noise: bytes, at: int) -> None:
    whole = Node(A, B, 70_000, 140_000, C + C).encode()
    try:
        node = Node.decode(whole[:at] + noise + whole[at + len(noise) :], A)
    except Corrupt:
        return
    assert node.start >= 0


def test_a_chain_whose_counts_do_not_add_up_is_corrupt(new_memory: Any) -> None:
    memory = new_memory()
    first = memory.put(Node(None, None, 1, 2, A + B).encode())
    tip = memory.put(Node(first, first, 2, 5, C).encode())
    lists = Lists(memory.read)
    for walk in (
        lambda: lists.slice(tip, 0, 5),
        lambda: lists.item(tip, 2),
        lambda: list(lists.reachable(tip)),
    ):
        with pytest.raises(Corrupt):
            walk()
