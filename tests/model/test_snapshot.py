"""Snapshots: lines of turns that are found again in few reads, and fixed bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import Corrupt, NotFound, ObjectMissing
from snapstore.model.snapshot import Record, Snapshots
from snapstore.model.wire import pack

A, B, C, D, E = (bytes([n]) * 32 for n in range(1, 6))
LOGARITHMIC = 3 * 17


def line_of(snapshots: Snapshots, put: Any, parent: bytes | None, times: range) -> list[bytes]:
    """One snapshot a time on top of parent."""
    ids = []
    for time in times:
        parent, _ = snapshots.create(parent, put, time=time)
        ids.append(parent)
    return ids


# --- lines -----------------------------------------------------------------------------------


def test_turns_count_from_one_and_name_their_parent(new_memory: Any) -> None:
    memory = new_memory()
    snapshots = Snapshots(memory.read)
    first, one = snapshots.create(None, memory.put, time=5)
    second, two = snapshots.create(first, memory.put, time=6, label="b")
    assert (one.turn, one.parent) == (1, None)
    assert (two.turn, two.parent) == (2, first)
    assert Snapshots(memory.read).record(second) == two


def test_equal_snapshots_are_one(new_memory: Any) -> None:
    memory = new_memory()
    snapshots = Snapshots(memory.read)
    first = snapshots.create(None, memory.put, time=5, history=A, meta=b"m")
    assert Snapshots(memory.read).create(None, memory.put, time=5, history=A, meta=b"m") == first


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60))
def test_any_tree_of_turns_is_found_again(new_memory: Any, parents: list[int]) -> None:
    memory = new_memory()
    snapshots = Snapshots(memory.read)
    lines: list[list[bytes]] = [[]]
    for time, choice in enumerate(parents):
        below = lines[choice % len(lines)]
        new, _ = snapshots.create(below[-1] if below else None, memory.put, time=time)
        lines.append([*below, new])
    reader = Snapshots(memory.read)
    for line in lines[1:]:
        assert [id for id, _ in reader.line(line[-1])] == line[::-1]
        assert [reader.at_turn(line[-1], turn) for turn in range(1, len(line) + 1)] == line
        for other in lines[1::7]:
            shared = [id for id, twin in zip(line, other, strict=False) if id == twin]
            expected = shared[-1] if shared else None
            assert reader.common_ancestor(line[-1], other[-1]) == expected
        assert reader.common_ancestor(line[-1], None) is None


@pytest.mark.parametrize("turn", [-1, 0, 4])
def test_a_turn_outside_of_the_line_is_not_found(new_memory: Any, turn: int) -> None:
    memory = new_memory()
    snapshots = Snapshots(memory.read)
    head = line_of(snapshots, memory.put, None, range(3))[-1]
    with pytest.raises(NotFound, match="turns 1 to 3"):
        snapshots.at_turn(head, turn)


def test_an_unknown_id_is_missing(new_memory: Any) -> None:
    with pytest.raises(ObjectMissing):
        Snapshots(new_memory().read).record(A)
    assert list(Snapshots(new_memory().read).line(None)) == []


# --- cost ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def long_line(new_memory: Any) -> tuple[Any, list[bytes]]:
    """100,000 turns."""
    memory = new_memory()
    ids = line_of(Snapshots(memory.read), memory.put, None, range(100_000))
    assert memory.reads < 1000  # A new turn hardly reads, however long the line is.
    return memory, ids


@pytest.mark.parametrize("turn", [1, 2, 31_337, 65_536, 99_999, 100_000])
def test_one_turn_of_100_000_costs_few_reads(long_line: Any, turn: int) -> None:
    memory, ids = long_line
    memory.reads = 0
    assert Snapshots(memory.read).at_turn(ids[-1], turn) == ids[turn - 1]
    assert memory.reads <= LOGARITHMIC


@pytest.mark.parametrize("turn", [1, 50_001, 99_998])
def test_the_common_ancestor_of_long_lines_costs_few_reads(long_line: Any, turn: int) -> None:
    memory, ids = long_line
    fork = ids[turn - 1]
    other = line_of(Snapshots(memory.read), memory.put, fork, range(-3000, 0))[-1]
    memory.reads = 0
    assert Snapshots(memory.read).common_ancestor(ids[-1], other) == fork
    assert memory.reads <= 2 * LOGARITHMIC


# --- bytes -----------------------------------------------------------------------------------

TIME = 1_700_000_000_000_000
TIME_HEX = "cf00060a24181e4000"
BARE = Record(None, 1, None, None, None, "", TIME, b"", "", False, None)
FULL = Record(A, 4, C, D, E, "x \ud83d", TIME, b"\x80", "/w \udcff", True, B)
LABELLED = Record(A, 2, C, None, None, "turn5", TIME, b"", "", False, A)


@pytest.mark.parametrize(
    ("record", "golden"),
    [
        (BARE, "9201" + TIME_HEX),
        (
            LABELLED,
            "9602" + TIME_HEX + "c420" + "01" * 32 + "c0" + "c420" + "03" * 32 + "a57475726e35",
        ),
        (
            FULL,
            "9b04"
            + TIME_HEX
            + "".join(f"c420{n * 32}" for n in ("01", "02", "03"))
            + "a57820eda0bd"
            + "".join(f"c420{n * 32}" for n in ("04", "05"))
            + "a62f7720edb3bf"
            + "c40180"
            + "c3",
        ),
    ],
    ids=["bare", "labelled", "full"],
)
def test_the_bytes_of_a_snapshot_are_fixed(record: Record, golden: str) -> None:
    assert record.encode().hex() == golden
    assert Record.decode(bytes.fromhex(golden), A) == record


TEXT = st.text(st.characters(codec=None), max_size=8)
IDS = st.one_of(st.none(), st.binary(min_size=32, max_size=32))


@settings(deadline=None)
@given(
    history=IDS,
    scratchpad=IDS,
    files=IDS,
    label=TEXT,
    worktree=TEXT,
    meta=st.binary(max_size=8),
    partial=st.booleans(),
    time=st.integers(-(2**63), 2**63),
)
def test_whatever_a_snapshot_holds_is_read_back(new_memory: Any, **fields: Any) -> None:
    memory = new_memory()
    made = Snapshots(memory.read).create(None, memory.put, **fields)
    assert Snapshots(memory.read).record(made[0]) == made[1]
    assert {name: getattr(made[1], name) for name in fields} == fields


def test_fields_of_a_later_version_are_passed_over() -> None:
    padding = [None, None, None, "", None, None, "", b"", False, None, None]
    fields = [1, TIME, *padding, "a later version's field", [1, [2]]]
    assert Record.decode(pack(fields), A) == BARE


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [1],
        [0, TIME],
        [-1, TIME, A],
        [1, TIME, A],
        [2, TIME],
        [True, TIME],
        [1, 1.5],
        [1, None],
        [2, TIME, A[:31]],
        [2, TIME, "a" * 32],
        [3, TIME, A, A + A],
        [1, TIME, None, None, A[:31]],
        [1, TIME, None, None, 7],
        [1, TIME, None, None, None, b"label"],
        [1, TIME, None, None, None, None],
        [1, TIME, None, None, None, "", b""],
        [1, TIME, None, None, None, "", None, False],
        [1, TIME, None, None, None, "", None, None, b"w"],
        [1, TIME, None, None, None, "", None, None, "", "m"],
        [1, TIME, None, None, None, "", None, None, "", b"", 1],
    ],
    ids=str,
)
def test_what_is_no_snapshot_is_corrupt(fields: list[Any]) -> None:
    with pytest.raises(Corrupt):
        Record.decode(pack(fields), A)


@settings(deadline=None)
@given(st.binary(max_size=120), st.integers(0, 200))
def test_damaged_bytes_give_a_snapshot_or_corrupt(noise: bytes, at: int) -> None:
    whole = FULL.encode()
    try:
        record = Record.decode(whole[:at] + noise + whole[at + len(noise) :], A)
    except Corrupt:
        return
    assert record.turn >= 1


def test_a_line_whose_turns_do_not_count_down_is_corrupt(new_memory: Any) -> None:
    memory = new_memory()
    first = memory.put(BARE.encode())
    liar = memory.put(Record(first, 7, None, None, None, "", TIME, b"", "", False, None).encode())
    snapshots = Snapshots(memory.read)
    for walk in (lambda: list(snapshots.line(liar)), lambda: snapshots.at_turn(liar, 1)):
        with pytest.raises(Corrupt):
            walk()
