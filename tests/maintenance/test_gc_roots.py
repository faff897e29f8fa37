"""Whatever a ref points at stays, with all that it leads to, whoever made the ref and what for."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from stores import Place, place_on

import snapstore
from snapstore import Store, formats, refs
from snapstore.engine import Engine, Obj, Update
from snapstore.engines.log import rewrite
from snapstore.maintenance.gc import collect
from snapstore.objects import Stage
from snapstore.transfer import arrivals, turns
from snapstore.transfer.carry import carry
from snapstore.transfer.imports import import_transcript

NEVER_MIND = timedelta(0)
OF_SNAPSHOTS = ("sessions/a", "tags/a", "captures/a", "state/arriving/a", "state/branch/a")
OF_CONTENTS = ("state/current", "state/remotes", "state/lease/a", "state/branch/a")
KNOWN = {"sessions/", "tags/", "captures/", "state/arriving/", "state/branch/", "state/current",
         "state/remotes", "state/lease/"}  # fmt: skip


@pytest.fixture(autouse=True)
def packs_small_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "WORTHWHILE", 1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return snapstore.open(tmp_path / "store", durable=False)


def rows(n: int) -> bytes:
    said = ({"role": "user" if k % 2 == 0 else "assistant", "content": f"m{k}"} for k in range(n))
    return b"".join(json.dumps(message).encode() + b"\n" for message in said)


def full_turn(store: Store, work: Path) -> bytes:
    """A turn with large values, a large scratchpad, files and a parent; its id."""
    (work / "folder" / "empty").mkdir(parents=True)
    (work / "folder" / "file").write_text("line\n" * 30_000)
    session = store.session("made")
    session.worktree = work
    session.history.append("".join(map(str, range(60_000))))
    session.save()
    session.history.append("and more")
    session.scratchpad.update({f"key {n}": [n] for n in range(300)})
    return session.save().raw_id


def imported_turn(store: Store) -> bytes:
    """A turn with rows of a transcript; its id."""
    import_transcript(store, formats.read(rows(40), "t.jsonl"), source="/t.jsonl", name="made")
    head = store.session("made").head
    assert head is not None
    return head.raw_id


def only(store: Store, ref: str, target: bytes) -> None:
    """Let nothing but this ref lead there, and collect at once."""
    if ref != refs.SESSIONS + "made":
        refs.create(store.engine, ref, target, "made", store.clock(), {})
        store.delete("made")
    collect(store, apply=True, grace=NEVER_MIND)


def is_whole(store: Store, turn: bytes) -> bool:
    found = store.snapshot(turn)
    for held in (found, *([store.snapshot(found.parent)] if found.parent else [])):
        list(held.history)
        dict(held.scratchpad)
        for entry in (held.files or {}).values():
            if entry.kind == "file" and entry.id is not None:
                store.objects.content(bytes.fromhex(entry.id))
    return [p for p in store.verify() if not p.harmless] == []


@pytest.mark.parametrize("ref", OF_SNAPSHOTS)
def test_a_turn_stays_whole(store: Store, tmp_path: Path, ref: str) -> None:
    turn = full_turn(store, tmp_path / "work")
    only(store, ref, turn)
    assert is_whole(store, turn)
    assert len(store.snapshot(turn).scratchpad) == 300


@pytest.mark.parametrize("ref", OF_SNAPSHOTS)
def test_a_turn_of_an_import_stays_whole(store: Store, ref: str) -> None:
    turn = imported_turn(store)
    only(store, ref, turn)
    assert is_whole(store, turn)


@pytest.mark.parametrize("ref", OF_CONTENTS)
def test_a_content_of_any_size_stays(store: Store, ref: str) -> None:
    large = bytes(range(256)) * 2000
    with Stage(store.objects) as stage:
        target = stage.put_content(large)
        stage.commit(Update(ref, target, None, "made", store.clock()))
    store.session("made").save()
    store.delete("made")
    collect(store, apply=True, grace=NEVER_MIND)
    assert store.objects.content(target) == large


def test_every_kind_of_ref_that_the_library_makes_is_among_these() -> None:
    """One that is added to the library is to be added here, so that it is tested what it keeps."""
    beginnings = ("sessions/", "tags/", "captures/", "state/")
    found = set()
    for path in Path(snapstore.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                if text.startswith(beginnings) and text.isascii() and " " not in text:
                    found.add(text)
    assert found == KNOWN
    tested = OF_SNAPSHOTS + OF_CONTENTS
    assert all(any(ref.startswith(known) for ref in tested) for known in KNOWN)


def test_what_the_layout_of_an_import_needs_to_go_out_as_it_came_in(store: Store) -> None:
    data = rows(30) + b"\n\nno row at all\n"
    import_transcript(store, formats.read(data, "t.jsonl"), source="/t.jsonl")
    store.session("other").save()
    store.delete("other")
    collect(store, apply=True, grace=NEVER_MIND)
    again = import_transcript(store, formats.read(data, "t.jsonl"), source="/t.jsonl")
    assert [found.created for found in again] == [False]
    assert store.verify() == []


class CutOffError(Exception):
    """The process ends here."""


class CutOff:
    """An engine that takes so many commits."""

    def __init__(self, engine: Engine, commits: int) -> None:
        self._engine = engine
        self._left = commits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def commit(self, objects: list[Obj], update: Update | None = None) -> Any:
        if not self._left:
            raise CutOffError
        self._left -= 1
        return self._engine.commit(objects, update)


def after_a_collection(place: Place, do: Callable[[Store], object], commits: int) -> Store:
    """What is there when something was cut off, all was collected, and it was done again."""
    with pytest.raises(CutOffError):
        do(Store(cast(Engine, CutOff(place.engine(), commits))))
    store = place.open()
    store.session("other").save()
    store.delete("other")
    collect(store, apply=True, grace=NEVER_MIND)
    assert store.verify() == []
    do(place.open())
    assert store.verify() == []
    return store


@pytest.mark.parametrize("commits", range(1, 5))
def test_a_pull_that_was_cut_off_goes_on_from_there(
    tmp_path: Path, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "PORTION", 2000)
    source = snapstore.open("memory://")
    session = source.session("s")
    for n in range(12):
        session.history.append("x" * 900 + str(n))
        session.save()
    with place_on("log", iter([tmp_path])) as place:
        brought = []
        store = after_a_collection(place, lambda t: brought.extend(carry(source, t)), commits)
        assert list(store.session("s").history) == list(session.history)
        assert brought[0].bytes < 13_000 - 900 * (commits - 1)


@pytest.mark.parametrize("commits", range(1, 5))
def test_an_import_that_was_cut_off_can_be_made_again(
    tmp_path: Path, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "_MOST_STAGED", 2000)
    transcript = formats.read(rows(60), "t.jsonl")
    with place_on("log", iter([tmp_path])) as place:
        store = after_a_collection(
            place, lambda t: import_transcript(t, transcript, source="/t.jsonl"), commits
        )
        (info,) = store.sessions()
        assert len(store.session(info.name).history) == 60
