"""When packs are merged, and that nothing is lost by it."""

from __future__ import annotations

import secrets

import pytest
from buckets import engine_of, engine_on, store_on
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore import Unreachable
from snapstore.engine import Kind, Obj
from snapstore.engines.objectstore import tiers
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.packs import Ref
from snapstore.engines.objectstore.shelf import Shelf


def content(size: int) -> Obj:
    return Obj(secrets.token_bytes(32), Kind.CONTENT, bytes(size))


class Saves:
    """A session's packs as saves go by: what each holds, and how often it was uploaded."""

    def __init__(self) -> None:
        self.refs: tuple[Ref, ...] = ()
        self.held: dict[bytes, list[int]] = {}
        self.uploads: list[int] = []

    def save(self, size: int) -> None:
        merge = tiers.plan(self.refs, [content(size)])
        held = [n for ref in merge.merged for n in self.held[ref.id]] + [len(self.uploads)]
        self.uploads.append(0)
        for n in held:
            self.uploads[n] += 1
        whole = size + sum(ref.size for ref in merge.merged)
        ref = Ref(secrets.token_bytes(16), whole, 0, b"", merge.tier)
        self.held[ref.id] = held
        self.refs = (*merge.keep, ref)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 3000))
def test_n_small_saves_lie_in_seven_packs_for_each_digit_of_n_in_base_8(n: int) -> None:
    saves = Saves()
    for _ in range(n):
        saves.save(100)
    assert len(saves.refs) == sum(int(digit) for digit in f"{n:o}")
    assert max(saves.uploads) <= len(f"{n:o}")


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from([50, 5_000, 100_000, 3_000_000, 30_000_000]), max_size=200))
def test_every_save_is_in_one_pack_whatever_its_size(sizes: list[int]) -> None:
    saves = Saves()
    for size in sizes:
        saves.save(size)
    assert sorted(n for ref in saves.refs for n in saves.held[ref.id]) == [*range(len(sizes))]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from([50, 100_000, 3_000_000, 30_000_000]), max_size=200))
def test_merged_packs_stay_below_a_size_and_large_ones_are_few(sizes: list[int]) -> None:
    saves = Saves()
    for size in sizes:
        saves.save(size)
    assert all(ref.size <= tiers.LARGEST for ref in saves.refs if len(saves.held[ref.id]) > 1)
    grown = [ref for ref in saves.refs if ref.tier == tiers.GROWN]
    assert len(saves.refs) - len(grown) <= 7 * 4


def test_a_large_save_is_not_uploaded_again_with_the_next_small_ones() -> None:
    saves = Saves()
    saves.save(1_000_000)
    for _ in range(100):
        saves.save(100)
    assert saves.uploads[0] == 1


def test_a_save_goes_on_when_what_is_to_be_merged_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable(*_: object) -> None:
        raise Unreachable("no answer")

    bucket = Bucket.in_memory()
    session = store_on(bucket).session("s")
    for n in range(12):
        monkeypatch.setattr(Shelf, "whole", unreachable)
        session.history.append(n)
        session.save()
    assert list(store_on(bucket).session("s").history) == [*range(12)]
    monkeypatch.undo()
    session.history.append(12)
    session.save()
    fresh = store_on(bucket)
    assert list(fresh.session("s").history) == [*range(13)]
    assert len(engine_of(fresh).log.last("sessions/s").packs) == 1  # it was made good


def test_a_commit_of_more_than_a_pack_may_hold_is_several_packs() -> None:
    bucket = Bucket.in_memory()
    engine = engine_on(bucket)
    objects = [
        Obj(secrets.token_bytes(32), Kind.CHUNKED, secrets.token_bytes(1 << 20)) for _ in range(40)
    ]
    engine.commit(objects)
    assert len(list(bucket.every("packs"))) == 2
    assert engine_on(bucket).contains(objects[0].id) is False  # nothing names it
    assert engine.read_many([o.id for o in objects]) == objects
