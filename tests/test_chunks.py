"""Large content in pieces: every content comes back, and an edit costs its neighbourhood."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.chunks import WHOLE, objects_of, pieces_of, stream
from snapstore.engine import Kind, Obj
from snapstore.errors import Corrupt, ObjectMissing
from snapstore.ids import SIZE, object_id

MEGABYTE = 1 << 20


def noise(size: int, seed: int = 1) -> bytes:
    """Bytes that no cutting finds a pattern in."""
    return random.Random(seed).randbytes(size)


def joined(objects: list[Obj]) -> bytes:
    """The content of the last of these objects, read back out of all of them."""
    known = {o.id: o for o in objects}
    return b"".join(stream(objects[-1], known.__getitem__))


def bytes_added(kept: list[Obj], before: list[Obj]) -> int:
    """Bytes in the objects that were not there before."""
    known = {o.id for o in before}
    return sum(len(o.payload) for o in kept if o.id not in known)


@pytest.mark.parametrize("size", [0, 1, WHOLE - 1, WHOLE])
def test_content_up_to_the_limit_is_one_object(size: int) -> None:
    content = noise(size)
    assert objects_of(content) == [Obj(object_id(content), Kind.CONTENT, content)]


@pytest.mark.parametrize(
    "content",
    [noise(WHOLE + 1), bytes(WHOLE + 1), b"lorem ipsum " * 100_000, noise(12 * MEGABYTE)],
    ids=["just above", "zeros", "text", "12 MB"],
)
def test_larger_content_comes_back_from_pieces_of_bounded_size(content: bytes) -> None:
    kept = objects_of(content)
    assert kept[-1].id == object_id(content)
    assert kept[-1].kind == Kind.CHUNKED
    assert joined(kept) == content
    assert max(len(o.payload) for o in kept if o.kind == Kind.CONTENT) <= WHOLE
    assert max(len(o.payload) for o in kept if o.kind == Kind.CHUNKED) <= 256 * SIZE


def test_every_id_is_the_hash_of_the_content_that_it_stands_for() -> None:
    kept = objects_of(noise(12 * MEGABYTE))
    known = {o.id: o for o in kept}
    assert any(o.kind == Kind.CHUNKED for o in kept[:-1])  # many chunks make lists of lists
    for o in kept:
        assert object_id(b"".join(stream(o, known.__getitem__))) == o.id


@given(at=st.integers(0, MEGABYTE), cut=st.integers(0, 2000), put=st.binary(max_size=2000))
@settings(max_examples=25, deadline=None)
def test_an_edit_costs_its_neighbourhood(at: int, cut: int, put: bytes) -> None:
    old = noise(MEGABYTE)
    new = old[:at] + put + old[at + cut :]
    before, after = objects_of(old), objects_of(new)
    assert joined(after) == new
    assert bytes_added(after, before) <= 4 * WHOLE


def test_an_edit_in_twelve_megabytes_costs_a_short_path_of_lists() -> None:
    old = noise(12 * MEGABYTE)
    new = old[: 6 * MEGABYTE] + b"edit" + old[6 * MEGABYTE :]
    assert bytes_added(objects_of(new), objects_of(old)) <= 4 * WHOLE


def test_what_is_put_in_front_leaves_the_lists_behind_it_as_they_are() -> None:
    old = noise(12 * MEGABYTE)
    before, after = (
        {o.id for o in objects_of(content) if o.kind == Kind.CHUNKED}
        for content in (old, noise(3 * WHOLE, seed=2) + old)
    )
    assert len(before) > 6
    assert len(after - before) <= 4


@given(size=st.integers(WHOLE + 1, 4 * WHOLE), seed=st.integers(0, 3))
@settings(max_examples=20, deadline=None)
def test_equal_content_is_cut_alike(size: int, seed: int) -> None:
    assert objects_of(noise(size, seed)) == objects_of(noise(size, seed))


def test_an_id_that_the_caller_knows_is_used() -> None:
    content = noise(100)
    assert objects_of(content, object_id(content)) == objects_of(content)


@pytest.mark.parametrize("payload", [b"", bytes(SIZE - 1), bytes(SIZE + 1)])
def test_bytes_that_are_no_chunk_list_are_damage(payload: bytes) -> None:
    with pytest.raises(Corrupt, match="no chunk list"):
        pieces_of(payload, bytes(SIZE))


def test_a_chunk_list_that_contains_itself_is_damage() -> None:
    circle = Obj(bytes(SIZE), Kind.CHUNKED, bytes(SIZE))
    with pytest.raises(Corrupt, match="contains itself"):
        list(stream(circle, lambda _: circle))


def test_a_missing_chunk_is_named() -> None:
    kept = objects_of(noise(2 * WHOLE))

    def read(object_id: bytes) -> Obj:
        raise ObjectMissing(object_id)

    with pytest.raises(ObjectMissing) as missing:
        list(stream(kept[-1], read))
    assert missing.value.id == kept[0].id
