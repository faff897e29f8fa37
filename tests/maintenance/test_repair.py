"""Going on with what is whole: what a repair keeps, moves and says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import Place, place_on

from snapstore import Store
from snapstore.disk import Disk
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.errors import Corrupt, NothingToDo, Refused, SnapstoreError
from snapstore.history import SavedHistory
from snapstore.maintenance.purge import purge
from snapstore.maintenance.repair import repair
from snapstore.store import open_store


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A store whose saves are durable, so that damage can be told from a torn tail."""
    with Place(lambda: LogEngine(tmp_path / "store"), "log") as made:
        yield made


def filled(store: Store, names: str = "ab", turns: int = 6) -> None:
    """Save sessions of random messages, one after the other."""
    rng = random.Random(5)
    for name in names:
        session = store.session(name)
        for n in range(turns):
            session.history.append({"role": "user", "content": f"{n} {rng.randbytes(300).hex()}"})
            session.scratchpad["n"] = n
            session.save(f"turn {n}")
    store.close()


def root_of(place: Place) -> Path:
    engine = place.engine()
    return engine.root  # type: ignore[attr-defined, no-any-return]


def hurt(path: Path, at: int, length: int = 40) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + length] = bytes(length)
    path.write_bytes(data)


def segment(place: Place) -> Path:
    layout = Layout(root_of(place))
    return layout.segment(layout.segments_on_disk()[-1])


def lengths(store: Store) -> dict[str, int]:
    return {info.name: info.messages for info in store.sessions()}


def histories(store: Store) -> list[SavedHistory]:
    """The messages of every turn that the store knows."""
    turns = [move.new for move in store.engine.reflog() if move.new is not None]
    found = []
    for turn in turns:
        with suppress(SnapstoreError):
            found.append(store.snapshot(turn).history)
    return found


def test_a_whole_store_is_left_as_it_is(place: Place) -> None:
    filled(place.open())
    before = segment(place).read_bytes()
    done = repair(place.open(), apply=True)
    assert (done.damaged, done.moved) == ((), ())
    assert segment(place).read_bytes() == before


def test_shown_only_nothing_changes_and_the_place_is_named(place: Place) -> None:
    filled(place.open())
    path = segment(place)
    hurt(path, path.stat().st_size // 2)
    before = path.read_bytes()
    (damaged,) = repair(place.open()).damaged
    assert damaged.path == str(path)
    assert damaged.offset is not None
    assert 0 <= path.stat().st_size // 2 - damaged.offset < 3000
    assert path.read_bytes() == before


def test_what_lies_before_and_behind_the_damage_is_kept(place: Place) -> None:
    filled(place.open())
    path = segment(place)
    hurt(path, path.stat().st_size * 2 // 5)  # in the fifth turn of the first session
    with pytest.raises(Corrupt):
        place.open().session("c").save()
    done = repair(place.open(), apply=True)
    store = place.open()
    assert lengths(store) == {"a": 4, "b": 6}
    assert [moved.ref for moved in done.moved] == ["sessions/a"]
    assert "session a is moved to turn 4" in str(done.moved[0])
    assert store.verify() == []
    session = store.session("a")
    session.history.append("after it")
    session.save()
    assert place.open().verify() == []


def test_the_damaged_file_is_set_aside_as_it_was(place: Place) -> None:
    filled(place.open())
    path = segment(place)
    hurt(path, path.stat().st_size // 2)
    damaged = path.read_bytes()
    repair(place.open(), apply=True)
    (kept,) = Layout(root_of(place)).damaged.iterdir()
    assert kept.read_bytes().startswith(damaged)
    place.open().gc(apply=True)
    assert kept.exists()


def test_undo_does_not_lead_to_what_is_lost(place: Place) -> None:
    filled(place.open())
    path = segment(place)
    hurt(path, path.stat().st_size * 2 // 5)
    repair(place.open(), apply=True)
    with pytest.raises(NothingToDo):
        place.open().undo("a")


def test_a_damaged_manifest_is_made_again(place: Place) -> None:
    filled(place.open())
    Layout(root_of(place)).manifest.write_bytes(b"{}")
    with pytest.raises(Corrupt):
        place.open().session("c").save()
    repair(place.open(), apply=True)
    store = place.open()
    assert lengths(store) == {"a": 6, "b": 6}
    store.session("c").save()
    assert store.verify() == []


def test_a_lost_segment_costs_what_was_in_it(place: Place) -> None:
    root = root_of(place)
    store = Store(LogEngine(root, durable=False, seal_at=4_000), clock=place.clock)
    filled(store, turns=10)
    layout = Layout(root)
    middle = layout.segments_on_disk()[-2]
    layout.segment(middle).unlink()
    repair(place.open(), apply=True)
    store = place.open()
    assert lengths(store)["a"] == 10
    assert store.verify() == []


def test_what_was_damaged_after_a_collection_is_taken_from_the_trash(place: Place) -> None:
    filled(place.open())
    with place.open() as store:
        store.session("gone").save("let go of")
        store.delete("gone")
        for _ in range(60):
            place.clock()
        assert store.gc(apply=True, grace=timedelta(minutes=1)).objects == 1
    layout = Layout(root_of(place))
    assert list(layout.trash.glob("*.seg"))
    packed = layout.segment(layout.segments_on_disk()[0])
    hurt(packed, packed.stat().st_size // 2)
    hurt(packed, 200)
    assert repair(place.open()).moved
    done = repair(place.open(), apply=True)
    assert done.damaged and not done.moved
    mended = place.open()
    assert lengths(mended) == {"a": 6, "b": 6}
    assert list(mended.verify()) == []


class Small(Disk):
    """A disk with hardly any room left."""

    def free(self, path: Path) -> int:
        return 20_000


def test_a_repair_takes_nothing_out_of_the_trash(tmp_path: Path) -> None:
    place = Place(lambda: LogEngine(tmp_path / "store", disk=Small()), "log")
    filled(place.open())
    with place.open() as store:
        store.gc(apply=True, grace=timedelta(seconds=1))
    layout = Layout(tmp_path / "store")
    old = layout.trash / "1-00000001.seg"
    next(layout.trash.glob("*.seg")).rename(old)
    old.write_bytes(old.read_bytes() + bytes(100_000))  # more than there is room for
    packed = layout.segment(layout.segments_on_disk()[0])
    hurt(packed, packed.stat().st_size // 2)
    repair(place.open(), apply=True)
    assert old.exists()


def test_what_is_no_segment_in_the_trash_stops_no_repair(place: Place) -> None:
    filled(place.open())
    layout = Layout(root_of(place))
    layout.trash.mkdir()
    (layout.trash / "1-00000001.seg").symlink_to("nowhere")
    (layout.trash / "2-00000001.seg").symlink_to("2-00000001.seg")
    (layout.trash / "3-00000001.seg").mkdir()
    (layout.trash / "4-00000001.seg").write_bytes(b"snpB" * 100)
    hurt(segment(place), 3000)
    assert repair(place.open(), apply=True).damaged
    assert all(problem.harmless for problem in place.open().verify())


def test_a_repair_goes_on_where_a_dictionary_is_lost(place: Place) -> None:
    with place.open() as store:
        session = store.session("a")
        for n in range(200):
            session.history.append({"role": "user", "content": f"{n} " + "many words " * 900})
        session.save("large enough for a dictionary")
        add_another(store)
        store.gc(apply=True)
    layout = Layout(root_of(place))
    packed = layout.segment(layout.segments_on_disk()[0])
    data = packed.read_bytes()
    hurt(packed, 60)
    hurt(packed, len(data) - 60)
    repair(place.open(), apply=True)
    mended = place.open()
    assert list(mended.verify()) == []
    session = mended.session("new")
    session.history.append({"role": "user", "content": "and on"})
    session.save()


def add_another(store: Store) -> None:
    session = store.session("another")
    session.history.append({"role": "user", "content": "another"})
    session.save()


def test_a_purged_text_does_not_come_back_from_anywhere(place: Place) -> None:
    filled(place.open())
    with place.open() as store:
        session = store.session("a")
        session.history.append("a canary that sings")
        session.save()
        assert store.gc(apply=True) is not None
        purge(store, "canary that sings", apply=True)
    hurt(segment(place), 100)
    repair(place.open(), apply=True)
    assert all("canary" not in str(list(each)) for each in histories(place.open()))


def test_a_handle_that_was_open_sees_the_repaired_store(place: Place) -> None:
    held = place.open()
    filled(place.open())
    assert lengths(held) == {"a": 6, "b": 6}
    path = segment(place)
    hurt(path, path.stat().st_size * 2 // 5)
    repair(place.open(), apply=True)
    session = held.session("new")
    session.history.append("said through the old handle")
    session.save()
    assert lengths(place.open())["new"] == 1


def test_memory_has_nothing_to_repair() -> None:
    with open_store("memory://") as store, pytest.raises(Refused):
        repair(store)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.0, 0.999), st.integers(1, 200), st.integers(0, 2**32))
def test_whatever_is_damaged_the_store_goes_on_and_verifies(
    tmp_path_factory: pytest.TempPathFactory, where: float, length: int, seed: int
) -> None:
    with place_on("log", iter([tmp_path_factory.mktemp("damaged")])) as place:
        filled(place.open())
        path = segment(place)
        data = bytearray(path.read_bytes())
        at = int(where * len(data))
        data[at : at + length] = random.Random(seed).randbytes(min(length, len(data) - at))
        path.write_bytes(data)
        repair(place.open(), apply=True)
        store = place.open()
        session = store.session("after")
        session.history.append("x")
        session.save()
        assert place.open().verify() == []
        kept = lengths(place.open())
        assert kept.get("a", 0) + kept.get("b", 0) >= 4 or at < len(data) // 12
