"""Skip pointers: any ancestor in a chain, and where two chains part, in O(log n) reads.

Every link of a chain has a depth (the first link 1, nothing 0), the id of the link before it
(`prev`), and the id of one far ancestor (`jump`). How far a jump goes follows from the depth alone
(E. W. Myers, "An applicative random-access stack", Information Processing Letters 17, 1983): write
the depth as a sum of terms 2^k - 1, the greatest that fits first; the jump skips the last term.

    depth   1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
    jump    0  1  0  3  4  3  0  7  8  7 10 11 10  7  0

As links of equal depth jump equally far, two chains can be walked side by side. Every step checks
the depth of the link it reaches: a link that lies about it ends the walk with Corrupt, and a walk
always ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, TypeVar

from snapstore.model.wire import damaged


class Linked(Protocol):
    """A decoded link of a chain. `prev` and `jump` are None where they lead to nothing."""

    @property
    def prev(self) -> bytes | None: ...
    @property
    def jump(self) -> bytes | None: ...
    @property
    def depth(self) -> int: ...


L = TypeVar("L", bound=Linked)
Get = Callable[[bytes], L]
"""Id -> decoded link; raises ObjectMissing or Corrupt."""


@lru_cache(maxsize=4096)
def jump_depth(depth: int) -> int:
    """The depth that the jump of a link at this depth leads to; 0 is nothing. Needs depth >= 1."""
    rest = depth
    while rest & (rest + 1):
        rest -= (1 << (rest + 1).bit_length() - 1) - 1
    return depth - rest


def next_jump(get: Get[L], tip: bytes | None) -> bytes | None:
    """The jump of a new link placed on tip. Gets at most tip and tip's jump."""
    if tip is None:
        return None
    link = get(tip)
    if jump_depth(link.depth + 1) == link.depth:
        return tip
    return step(get, tip, link.jump, jump_depth(link.depth))[1].jump


def at_depth(get: Get[L], start: bytes, depth: int) -> bytes:
    """The id of the ancestor of start, or start itself, at this depth: O(log n) gets.

    Raises ValueError when depth is not between 1 and the depth of start.
    """
    here, link = start, get(start)
    if not 1 <= depth <= link.depth:
        raise ValueError(f"no ancestor at depth {depth} of a link at depth {link.depth}")
    while link.depth > depth:
        far = jump_depth(link.depth)
        if far >= depth:
            here, link = step(get, here, link.jump, far)
        else:
            here, link = step(get, here, link.prev, link.depth - 1)
    return here


def meet(get: Get[L], one: bytes | None, other: bytes | None) -> bytes | None:
    """The id of the deepest link that both chains hold, None for none: O(log n) gets."""
    if one is None or other is None:
        return None
    depth = min(get(one).depth, get(other).depth)
    one, other = at_depth(get, one, depth), at_depth(get, other, depth)
    left, right = get(one), get(other)
    while one != other:
        if depth == 1:
            return None
        if left.jump != right.jump:
            depth = jump_depth(depth)
            one, left = step(get, one, left.jump, depth)
            other, right = step(get, other, right.jump, depth)
        else:
            depth -= 1
            one, left = step(get, one, left.prev, depth)
            other, right = step(get, other, right.prev, depth)
    return one


def step(get: Get[L], here: bytes, onward: bytes | None, expected: int) -> tuple[bytes, L]:
    """The link that `here` leads to and its id; raises Corrupt unless it has the expected depth."""
    if onward is None:
        raise damaged(here, f"it leads to nothing, not to depth {expected}")
    link = get(onward)
    if link.depth != expected:
        raise damaged(onward, f"it says depth {link.depth}, {here.hex()} implies {expected}")
    return onward, link
