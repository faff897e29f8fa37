"""A store whose directory is not what it was: nothing is written over, nothing is kept nowhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.errors import Corrupt, StoreNotFound
from snapstore.store import Store


def saved(place: Path, name: str, turns: int) -> None:
    with Store(LogEngine(place)) as store:
        session = store.session(name)
        for n in range(turns):
            session.history.append(n)
            session.save()


def test_a_store_that_has_lost_its_format_is_not_taken_for_an_empty_directory(
    tmp_path: Path,
) -> None:
    saved(tmp_path / "s", "a", 3)
    line = (tmp_path / "s/FORMAT").read_bytes()
    (tmp_path / "s/FORMAT").unlink()
    with pytest.raises(Corrupt, match="FORMAT is missing"):
        LogEngine(tmp_path / "s")
    (tmp_path / "s/FORMAT").write_bytes(line)
    with Store(LogEngine(tmp_path / "s")) as store:
        assert list(store.session("a").history) == [0, 1, 2]


def test_a_store_that_another_process_makes_meanwhile_has_lost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = Layout._holds_turns

    def made_in_between(layout: Layout) -> bool:
        monkeypatch.undo()
        saved(tmp_path / "s", "a", 2)
        return looked(layout)

    monkeypatch.setattr(Layout, "_holds_turns", made_in_between)
    with Store(LogEngine(tmp_path / "s")) as store:
        assert list(store.session("a").history) == [0, 1]


def test_what_an_interrupted_making_left_is_no_store_yet(tmp_path: Path) -> None:
    LogEngine(tmp_path / "s").create()
    (tmp_path / "s/FORMAT").unlink()
    saved(tmp_path / "s", "a", 1)


def test_a_relative_path_is_that_of_the_moment_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        saved(tmp_path / name / "s", name, 3)
    monkeypatch.chdir(tmp_path / "one")
    with Store(LogEngine(Path("s"))) as store:
        session = store.session("one")
        monkeypatch.chdir(tmp_path / "other")
        session.history.append("more")
        session.save()
    for name, turns in (("one", 4), ("other", 3)):
        with Store(LogEngine(tmp_path / name / "s")) as store:
            assert store.session(name).turn == turns


def test_another_store_in_its_place_is_not_written_to(tmp_path: Path) -> None:
    saved(tmp_path / "s", "a", 3)
    with Store(LogEngine(tmp_path / "s")) as store:
        session = store.session("a")
        (tmp_path / "s").rename(tmp_path / "moved")
        saved(tmp_path / "s", "b", 5)
        session.history.append("more")
        with pytest.raises(StoreNotFound, match="replaced"):
            session.save()
    with Store(LogEngine(tmp_path / "s")) as other:
        assert other.session("b").turn == 5
        assert not other.verify()


def test_a_save_into_a_removed_store_is_not_acknowledged(tmp_path: Path) -> None:
    saved(tmp_path / "s", "a", 3)
    with Store(LogEngine(tmp_path / "s")) as store:
        session = store.session("a")
        session.history.append("kept")
        session.save()
        shutil.rmtree(tmp_path / "s")
        session.history.append("nowhere")
        with pytest.raises(StoreNotFound, match="removed"):
            session.save()
        assert session.history[-1] == "nowhere"


def test_a_save_into_what_a_repair_set_aside_is_not_acknowledged(tmp_path: Path) -> None:
    with Store(LogEngine(tmp_path / "s")) as store:
        session = store.session("a")
        for n in range(3):
            session.history.append(n)
            session.save()
        path = tmp_path / "s/log/00000001.seg"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1  # of the last turn: what this handle knows of it is older than that
        path.write_bytes(data)
        with Store(LogEngine(tmp_path / "s")) as other:
            assert other.repair(apply=True).damaged
        session.history.append("nowhere")
        with pytest.raises(StoreNotFound, match="replaced"):
            session.save()
        assert session.history[-1] == "nowhere"


def test_a_store_that_was_moved_as_a_whole_is_still_saved_to(tmp_path: Path) -> None:
    saved(tmp_path / "s", "a", 3)
    with Store(LogEngine(tmp_path / "s")) as store:
        session = store.session("a")
        for n in (3, 4):
            session.history.append(n)
            session.save()
            if n == 3:
                (tmp_path / "s").rename(tmp_path / "moved")
    with Store(LogEngine(tmp_path / "moved")) as store:
        assert list(store.session("a").history) == [0, 1, 2, 3, 4]


def test_another_copy_in_its_place_is_not_written_to(tmp_path: Path) -> None:
    saved(tmp_path / "s", "a", 3)
    with Store(LogEngine(tmp_path / "s")) as store:
        session = store.session("a")
        session.history.append(3)
        session.save()
        (tmp_path / "s").rename(tmp_path / "old")
        shutil.copytree(tmp_path / "old", tmp_path / "s")
        session.history.append(4)
        with pytest.raises(StoreNotFound, match="replaced"):
            session.save()
