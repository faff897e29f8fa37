"""Sessions in one file: what it holds, and that a damaged one does nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from between import filled, heads, is_whole
from blake3 import blake3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import Place

from snapstore import Corrupt, NotFound, Refused, SnapstoreError, Store, UnsupportedFormat
from snapstore.engine import Obj
from snapstore.engines.memory import MemoryEngine
from snapstore.ids import object_id
from snapstore.transfer import bundle as bundles
from snapstore.transfer.bundle import BundleEngine, bundle, is_bundle, open_bundle, selected
from snapstore.transfer.carry import carry


class Lax(NamedTuple):
    """A move as somebody may write it who means no good."""

    ref: str
    gen: int
    new: bytes | None
    op: str
    time: int
    base: int
    redo: int
    born: int
    info: Any


def in_memory() -> Store:
    return Store(MemoryEngine())


def written(store: Store, path: Path, *names: str, since: str | None = None) -> Path:
    """A bundle of these sessions and tags, or of all."""
    left_out = [store.resolve(since).raw_id] if since else []
    path.write_bytes(b"".join(bundle(store, selected(store, names), left_out)))
    return path


def read(path: Path, into: Store) -> None:
    with open_bundle(path, into) as found:
        carry(found, into)


@pytest.fixture
def full(store: Store, tmp_path: Path) -> Store:
    """A store with files, a fork, a tag, large values, and what only undo reaches."""
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "large").write_bytes(os.urandom(200_000))
    session = store.session("s")
    session.worktree = tmp_path / "w"
    session.scratchpad["k"] = "x" * 100_000
    for n in range(5):
        session.history.append({"n": n})
        session.save(f"turn {n}")
    store.tag("t", session.log()[2])
    filled(store, "other", "a", "b")
    session.fork("f", at=2).save("forked")
    session.rewind(4)
    return store


def test_it_brings_everything_with_the_same_ids(full: Store, tmp_path: Path) -> None:
    target = in_memory()
    read(written(full, tmp_path / "all.bundle"), target)
    assert heads(target) == heads(full)
    assert is_whole(target)
    mine, theirs = full.resolve("s").files, target.resolve("s").files
    assert mine is not None
    assert theirs is not None
    assert mine.read("large") == theirs.read("large")


def test_it_holds_the_turn_that_was_named_and_nothing_of_later_ones(
    full: Store, tmp_path: Path
) -> None:
    target = in_memory()
    path = written(full, tmp_path / "s.bundle", "s@3")
    read(path, target)
    assert heads(target) == {"sessions/s": full.resolve("s@3").id}
    later = object_id(b"\x81\xa1n\x03")
    assert full.engine.contains(later)
    assert not BundleEngine(path, target.engine).contains(later)


def test_a_tag_is_bundled_under_its_name(full: Store, tmp_path: Path) -> None:
    target = in_memory()
    read(written(full, tmp_path / "t.bundle", "t"), target)
    assert heads(target) == {"tags/t": full.tags()["t"]}


def test_a_turn_without_a_name_is_not(full: Store) -> None:
    with pytest.raises(NotFound, match="no session or tag"):
        selected(full, [full.resolve("s@1").id])


def test_the_same_turns_make_the_same_bytes(full: Store, place: Place) -> None:
    moves = selected(full, ["s"])
    assert b"".join(bundle(full, moves)) == b"".join(bundle(place.open(), moves))


def test_since_leaves_out_what_a_turn_leads_to(full: Store, tmp_path: Path) -> None:
    whole = written(full, tmp_path / "whole", "s")
    rest = written(full, tmp_path / "rest", "s", since="s@2")
    assert rest.stat().st_size < whole.stat().st_size / 10
    target = in_memory()
    with pytest.raises(Refused, match="goes on from turn"):
        read(rest, target)
    assert heads(target) == {}
    read(written(full, tmp_path / "first", "s@2"), target)
    read(rest, target)
    assert heads(target) == {"sessions/s": full.resolve("s").id}
    assert is_whole(target)


def test_reading_it_again_changes_nothing(full: Store, tmp_path: Path) -> None:
    path, target = written(full, tmp_path / "b"), in_memory()
    read(path, target)
    moves = len(list(target.engine.reflog()))
    read(path, target)
    assert len(list(target.engine.reflog())) == moves


def test_it_is_known_by_how_it_begins(full: Store, tmp_path: Path) -> None:
    assert is_bundle(written(full, tmp_path / "b").read_bytes()[:20])
    assert not is_bundle(b'{"type":"user"}')


def test_it_cannot_be_written_to(full: Store, tmp_path: Path) -> None:
    with open_bundle(written(full, tmp_path / "b"), in_memory()) as found, pytest.raises(Refused):
        found.session("new").save()


# --- damage ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a small bundle."""
    path = tmp_path_factory.mktemp("bundle") / "b"
    return written(filled(in_memory(), "s", "one", "two"), path).read_bytes()


def refused(data: bytes, path: Path) -> type[SnapstoreError]:
    """How a bundle of these bytes is refused; nothing of it may be in the store."""
    path.write_bytes(data)
    target = in_memory()
    with pytest.raises((Corrupt, UnsupportedFormat)) as raised:
        read(path, target)
    assert target.engine.stats().objects == 0
    assert heads(target) == {}
    return raised.type


def test_every_changed_byte_is_found(small: bytes, tmp_path: Path) -> None:
    for at in range(len(small)):
        refused(small[:at] + bytes([small[at] ^ 1]) + small[at + 1 :], tmp_path / "b")


def test_every_cut_and_anything_behind_its_end_is_found(small: bytes, tmp_path: Path) -> None:
    for at in range(len(small)):
        assert refused(small[:at], tmp_path / "b") is Corrupt
    assert refused(small + b"\0", tmp_path / "b") is Corrupt


def test_a_later_version_is_not_read(small: bytes, tmp_path: Path) -> None:
    later = small.replace(b"bundle 1\n", b"bundle 2\n", 1)
    assert refused(later, tmp_path / "b") is UnsupportedFormat


def test_a_version_of_any_length_is_refused(small: bytes, tmp_path: Path) -> None:
    endless = small.replace(b"bundle 1\n", b"bundle " + b"9" * 5000 + b"\n", 1)
    assert refused(endless, tmp_path / "b") is Corrupt


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cuts=st.lists(st.integers(0, 10_000), min_size=1, max_size=4), junk=st.binary(max_size=60))
def test_no_bytes_end_in_anything_but_a_refusal(
    small: bytes, tmp_path: Path, cuts: list[int], junk: bytes
) -> None:
    data = small
    for cut in cuts:
        at = cut % (len(data) + 1)
        data = data[:at] + junk + data[at + len(junk) // 2 :]
    if data != small:
        refused(data, tmp_path / "b")


def test_one_that_lacks_an_object_is_refused_whole(tmp_path: Path) -> None:
    store = filled(in_memory(), "s", "one", "two")
    lost = object_id(b"\xa3one")

    def without(objects: Store, *rest: object) -> list[Obj]:
        return [o for o in whole(objects, *rest) if o.id != lost]  # type: ignore[arg-type]

    whole = bundles._objects
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "_objects", without)
        data = written(store, tmp_path / "b").read_bytes()
    assert refused(data, tmp_path / "b") is Corrupt


def test_one_whose_pieces_make_up_something_else_is_refused_whole(tmp_path: Path) -> None:
    store = filled(in_memory(), "s", os.urandom(50_000).hex())

    def swapped(objects: Store, *rest: object) -> list[Obj]:
        found = list(whole(objects, *rest))  # type: ignore[arg-type]
        lists = [o for o in found if o.kind == 2]
        assert lists
        swap = {o.id: o.payload[32:64] + o.payload[:32] + o.payload[64:] for o in lists}
        return [o._replace(payload=swap.get(o.id, o.payload)) for o in found]

    whole = bundles._objects
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "_objects", swapped)
        data = written(store, tmp_path / "b").read_bytes()
    assert refused(data, tmp_path / "b") is Corrupt


@pytest.mark.parametrize(
    "strange",
    [
        {"ref": "sessions/../escape"},
        {"ref": "state/current"},
        {"ref": "sessions/"},
        {"new": None},
        {"gen": 7},
        {"info": {"forked_from": 5}},
        {"info": {"source": {}, "layout": b"short"}},
        {"info": {"source": "text"}},
    ],
    ids=str,
)
def test_a_ref_that_no_store_would_have_written_is_refused(
    tmp_path: Path, strange: dict[str, Any]
) -> None:
    store = filled(in_memory(), "s", "one")
    (move,) = selected(store, ["s"])
    packer = bundles._Packer()
    objects = list(bundles._objects(store, [move], ()))
    data = b"snapstore bundle 1\n\n" + packer.pack(objects)
    fields = dict(zip(move._fields, move, strict=True)) | strange
    data += packer.pack_refs([Lax(**fields)])
    assert refused(data + blake3(data).digest(), tmp_path / "b") is Corrupt


def test_the_last_32_bytes_are_the_hash_of_all_before(small: bytes) -> None:
    assert blake3(small[:-32]).digest() == small[-32:]
