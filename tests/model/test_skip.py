"""Skip pointers: the jumps are Myers', and the walks over them are right and short."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import Corrupt
from snapstore.model.skip import at_depth, jump_depth, meet, next_jump


@dataclass(frozen=True)
class Link:
    prev: bytes | None
    jump: bytes | None
    depth: int


class Forest:
    """Chains in a dict, each link named by a number, with a count of what was got."""

    def __init__(self) -> None:
        self.links: dict[bytes, Link] = {}
        self.gets = 0

    def get(self, name: bytes) -> Link:
        self.gets += 1
        return self.links[name]

    def grow(self, tip: bytes | None) -> bytes:
        name = len(self.links).to_bytes(4, "big")
        depth = 1 if tip is None else self.links[tip].depth + 1
        self.links[name] = Link(tip, next_jump(self.get, tip), depth)
        return name

    def chain(self, tip: bytes | None) -> list[bytes]:
        """From the first link to tip, by prev alone."""
        names = []
        while tip is not None:
            names.append(tip)
            tip = self.links[tip].prev
        return names[::-1]


def test_the_first_jumps_are_those_of_the_paper() -> None:
    assert [jump_depth(d) for d in range(1, 16)] == [0, 1, 0, 3, 4, 3, 0, 7, 8, 7, 10, 11, 10, 7, 0]


@given(st.integers(1, 2**70))
def test_a_jump_skips_the_least_term_of_the_greedy_sum(depth: int) -> None:
    rest, term = depth, 0
    while rest:
        term = 2 ** ((rest + 1).bit_length() - 1) - 1
        rest -= term
    assert jump_depth(depth) == depth - term


def test_a_new_links_jump_is_the_ancestor_that_its_depth_names_and_costs_two_gets_at_most() -> None:
    forest, tip = Forest(), None
    chain: list[bytes] = []
    for depth in range(1, 600):
        forest.gets = 0
        tip = forest.grow(tip)
        assert forest.gets <= 2
        far = jump_depth(depth)
        assert forest.links[tip].jump == (chain[far - 1] if far else None)
        chain.append(tip)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 80), st.integers(0, 80), st.integers(0, 80))
def test_two_chains_meet_at_their_deepest_shared_link(shared: int, left: int, right: int) -> None:
    forest, fork = Forest(), None
    for _ in range(shared):
        fork = forest.grow(fork)
    one = other = fork
    for _ in range(left):
        one = forest.grow(one)
    for _ in range(right):
        other = forest.grow(other)
    assert meet(forest.get, one, other) == fork
    assert meet(forest.get, other, one) == fork


def test_every_ancestor_of_a_chain_is_found_at_its_depth() -> None:
    forest, tip = Forest(), None
    for _ in range(130):
        tip = forest.grow(tip)
    assert tip is not None
    chain = forest.chain(tip)
    assert [at_depth(forest.get, tip, depth) for depth in range(1, 131)] == chain


def test_an_ancestor_at_the_end_of_a_jump_costs_two_gets() -> None:
    forest, tip = Forest(), None
    for _ in range(14):
        tip = forest.grow(tip)
    assert tip is not None
    forest.gets = 0
    assert at_depth(forest.get, tip, 7) == forest.links[tip].jump
    assert forest.gets == 2


@pytest.mark.parametrize("depth", [-1, 0, 4])
def test_a_depth_outside_of_the_chain_is_refused(depth: int) -> None:
    forest = Forest()
    tip = forest.grow(forest.grow(forest.grow(None)))
    with pytest.raises(ValueError, match="no ancestor"):
        at_depth(forest.get, tip, depth)


def test_walks_over_100_000_links_are_logarithmic() -> None:
    forest, tip = Forest(), None
    for depth in range(1, 100_001):
        tip = forest.grow(tip)
        if depth == 70_001:
            fork = other = tip
    for _ in range(9_999):
        other = forest.grow(other)
    assert tip is not None
    for depth in (1, 2, 31_337, 65_535, 99_999):
        forest.gets = 0
        at_depth(forest.get, tip, depth)
        assert forest.gets <= 3 * 17
    forest.gets = 0
    assert meet(forest.get, tip, other) == fork
    assert forest.gets <= 2 * 3 * 17


@pytest.mark.parametrize("lie", [0, 2, 5, 6, 7])
def test_a_link_that_lies_about_its_depth_ends_the_walk(lie: int) -> None:
    forest, tip = Forest(), None
    for _ in range(6):
        tip = forest.grow(tip)
    assert tip is not None
    third = forest.links[tip].jump
    assert third is not None
    forest.links[third] = Link(tip, tip, lie)
    with pytest.raises(Corrupt, match="depth"):
        at_depth(forest.get, tip, 1)


def test_a_missing_pointer_ends_the_walk() -> None:
    forest = Forest()
    forest.links = {b"b": Link(None, None, 2), b"a": Link(None, None, 1)}
    with pytest.raises(Corrupt, match="leads to nothing"):
        at_depth(forest.get, b"b", 1)
