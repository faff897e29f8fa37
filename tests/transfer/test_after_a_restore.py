"""A session whose files were restored is still what it was imported as, and goes anywhere."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from transcripts import TALK, written

import snapstore
from snapstore import Store, formats, refs
from snapstore.engine import Update
from snapstore.engines.log import rewrite
from snapstore.maintenance.gc import collect
from snapstore.maintenance.purge import purge
from snapstore.store import open_store
from snapstore.transfer.carry import Outcome, carry
from snapstore.transfer.exports import Wish, export
from snapstore.transfer.imports import import_transcript

DATA = written(TALK)


@pytest.fixture(params=["restored", refs.SOURCE])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An import and, after it, a restore that tells its turn under one of two keys."""
    store = open_store(tmp_path / "store", durable=False)
    import_transcript(store, formats.read(DATA, "t.jsonl"), name="s", source="/t.jsonl")
    head = store.resolve("s").raw_id
    facts = {"turn": 1, request.param: head}
    store.engine.commit([], Update("sessions/s", head, head, "restore", store.clock(), facts))
    return store


def original(store: Store) -> bytes:
    found = store.revision("s")
    made = export(store, found.snapshot, found.session, Wish("claude-code"))
    assert made.is_original
    return made.data


def test_it_goes_out_as_it_came_in(store: Store) -> None:
    assert original(store) == DATA


def test_it_is_found_by_the_next_import(store: Store) -> None:
    (again,) = import_transcript(store, formats.read(DATA, "t.jsonl"), source="/t.jsonl")
    assert (again.name, again.created) == ("s", False)


def test_it_goes_into_another_store(store: Store) -> None:
    other = open_store("memory://")
    (done,) = carry(store, other)
    assert done.outcome is Outcome.NEW
    assert original(other) == DATA


def test_a_collection_keeps_what_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "WORTHWHILE", 1)
    store.session("other").save()
    store.delete("other")
    assert collect(store, apply=True, grace=timedelta(0)).objects
    assert original(store) == DATA


def test_a_purge_keeps_what_it_was(store: Store) -> None:
    session = store.session("s")
    session.history.append("a secret word")
    session.save()
    purge(store, "secret word", apply=True)
    (again,) = import_transcript(store, formats.read(DATA, "t.jsonl"), source="/t.jsonl")
    assert again.name == "s"


def test_a_session_of_files_goes_into_another_store(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a").write_text("one")
    with snapstore.open(tmp_path / "store", durable=False) as store:
        session = store.session("s")
        session.worktree = tmp_path / "work"
        session.save()
        (tmp_path / "work" / "a").write_text("two")
        session.save()
        session.restore(1)
        other = open_store("memory://")
        assert [done.name for done in carry(store, other)] == ["s"]
        assert other.verify() == []
