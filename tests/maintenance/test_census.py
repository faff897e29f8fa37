"""That nobody needs to follow links in a whole store, and that nothing missing is overlooked for
it: what counting leaves in doubt is what following finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgpack
import pytest
from stores import Place, place_on
from transcripts import TALK, written

from snapstore import Store, formats
from snapstore.engine import Kind, Obj, Problem, Update
from snapstore.ids import object_id
from snapstore.maintenance import verify as module
from snapstore.maintenance.census import Census
from snapstore.model import extents, maps
from snapstore.model.snapshot import Record
from snapstore.transfer.imports import import_transcript


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with place_on("log", iter([tmp_path])) as made:
        yield made


@pytest.fixture
def rich(place: Place, tmp_path: Path) -> Store:
    """A store with everything in it that can refer to something."""
    store = place.open()
    project = tmp_path / "project"
    (project / "many").mkdir(parents=True)
    (project / "large").write_bytes(bytes(range(256)) * 1200)
    for n in range(70):
        (project / "many" / f"{n}").write_text(f"file {n}")
    session = store.session("main")
    session.worktree = project
    session.history.append({"role": "user", "content": "first"})
    session.save()
    session.scratchpad["long"] = "value " * 100
    session.history.append({"role": "user", "content": "large " * 20_000})
    session.save()
    for n in range(70):
        session.scratchpad[f"key {n}"] = n
    session.save()
    session.fork("other", at=1).history.append("elsewhere")
    (project / "large").write_text("changed")
    session.rewind(1, files=True)
    store.tag("kept", store.resolve("main@1"))
    import_transcript(store, formats.read(written(TALK), "t.jsonl"), name="t")
    return store


def by_following(store: Store) -> list[Problem]:
    """What is found when counting settles nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Census, "settle", lambda *_: False)
        return store.verify()


@pytest.fixture
def no_following(monkeypatch: pytest.MonkeyPatch) -> None:
    def follow(*_: object) -> None:
        raise AssertionError("links were followed")

    monkeypatch.setattr(module, "follow", follow)


@pytest.mark.usefixtures("no_following")
class TestAWholeStore:
    def test_is_judged_without_following_a_link(self, rich: Store) -> None:
        assert rich.verify() == []
        assert rich.verify(quick=True) == []
        assert rich.verify(share=0.5) == []

    def test_also_when_it_was_packed(self, rich: Store) -> None:
        rich.gc(apply=True)
        assert rich.verify() == []

    def test_also_when_what_is_built_on_came_last(self, place: Place) -> None:
        """A collection may write an object again behind those that refer to it."""
        store = place.open()
        message, node, turn = turn_of(b"\xa2hi")
        store.engine.commit([node])
        store.engine.commit([turn], move(turn.id))
        store.engine.commit([message])
        assert store.verify() == []


def test_whatever_is_lost_is_found_as_by_following(rich: Store, place: Place) -> None:
    lost = [i for i, _ in rich.engine.ids(b"", 0)]
    assert len(lost) > 100
    for one in lost:
        found = place.lacking(one).verify()
        assert found, one
        assert found == by_following(place.lacking(one))


# --- what is there, and not what its link says -------------------------------------------------


def content(data: bytes) -> Obj:
    return Obj(object_id(data), Kind.CONTENT, data)


def structure(data: bytes, kind: Kind = Kind.NODE) -> Obj:
    return Obj(object_id(data), kind, data)


def extent(prev: Obj | None, depth: int, total: int, *items: Obj) -> Obj:
    ids = b"".join(item.id for item in items)
    before = prev.id if prev else None
    return structure(extents.Node(before, None, depth, total, ids).encode())


def snapshot(turn: int = 1, parent: Obj | None = None, **parts: bytes | None) -> Obj:
    nothing: dict[str, bytes | None] = {"history": None, "scratchpad": None, "files": None}
    record = Record(
        parent=parent.id if parent else None, turn=turn, label="", time=1, meta=b"", worktree="",
        partial=False, jump=None, **{**nothing, **parts},  # type: ignore[arg-type]
    )  # fmt: skip
    return structure(record.encode(), Kind.SNAPSHOT)


def turn_of(data: bytes) -> tuple[Obj, Obj, Obj]:
    message = content(data)
    node = extent(None, 1, 1, message)
    return message, node, snapshot(history=node.id)


def move(head: bytes) -> Update:
    return Update("sessions/s", head, None, "save", 1)


MESSAGE, NODE, TURN = turn_of(b"\xa2hi")
LEAF = structure(maps.encode(maps.Leaf({b"key": maps.Inline(b"\x01")})))
ROOT = structure(msgpack.packb([0o755, LEAF.id]))
MISPLACED = structure(maps.encode(maps.Branch(65, (LEAF.id, LEAF.id, *[None] * 14))))


@pytest.mark.parametrize(
    ("objects", "said"),
    {
        "a message where a list is expected": (
            [MESSAGE, bad := snapshot(history=MESSAGE.id), bad], "not what refers to it expects"
        ),
        "a map where a list is expected": (
            [LEAF, bad := snapshot(history=LEAF.id), bad], "not what refers to it expects"
        ),
        "a list where a map is expected": (
            [MESSAGE, NODE, bad := snapshot(scratchpad=NODE.id), bad],
            "not what refers to it expects",
        ),
        "a scratchpad where a directory is expected": (
            [LEAF, ROOT, bad := snapshot(files=ROOT.id), bad], "entry b'key'"
        ),
        "a list where a turn is expected": ([MESSAGE, NODE, NODE], "not what refers to it expects"),
        "a list that is shorter than it says": (
            [MESSAGE, NODE, short := extent(NODE, 2, 5, MESSAGE),
             bad := snapshot(history=short.id), bad],
            "does not end where the node after it starts",
        ),
        "a list node that contradicts itself": (
            [MESSAGE, odd := extent(None, 3, 1, MESSAGE), bad := snapshot(history=odd.id), bad],
            "contradict each other",
        ),
        "a key that is not where its hash belongs": (
            [LEAF, MISPLACED, bad := snapshot(scratchpad=MISPLACED.id), bad],
            "not where its hash belongs",
        ),
        "a turn that contradicts itself": ([bad := snapshot(turn=2), bad], "contradict each other"),
    }.values(),
    ids=lambda given: given if isinstance(given, str) else None,
)  # fmt: skip
def test_an_object_that_is_not_what_its_link_says_is_damage(
    place: Place, objects: list[Obj], said: str
) -> None:
    *objects, head = objects
    store = place.open()
    store.engine.commit(list({o.id: o for o in sorted(objects, key=lambda o: o.kind)}.values()))
    store.engine.commit([], move(head.id))
    found = store.verify()
    assert [(problem.kind, problem.harmless) for problem in found] == [("damaged", False)]
    assert said in found[0].message and "session s" in found[0].message
    assert store.verify(quick=True) == found


def test_what_nothing_refers_to_may_refer_to_what_is_gone(place: Place) -> None:
    store = place.open()
    store.engine.commit([snapshot(history=NODE.id), NODE])
    store.session("s").save()
    assert store.verify() == []


def test_a_content_that_looks_like_structure_serves_as_that(place: Place) -> None:
    """It may have been kept as a file before it became part of a history."""
    store = place.open()
    store.engine.commit([content(NODE.payload), content(TURN.payload)])
    store.engine.commit([MESSAGE, NODE])
    store.engine.commit([TURN], move(TURN.id))
    assert [kind for i, kind in store.engine.ids(NODE.id, 64)] == [Kind.CONTENT]
    assert store.verify() == []


@pytest.fixture(params=[True, False], ids=["quick", "whole"])
def verified(request: pytest.FixtureRequest) -> Callable[[Store], list[Problem]]:
    return lambda store: store.verify(quick=request.param)


def test_tags_and_past_moves_count_as_refs(
    place: Place, verified: Callable[[Store], list[Problem]]
) -> None:
    store = place.open()
    session = store.session("s")
    heads = []
    for n in range(3):
        session.history.append(f"message {n}")
        heads.append(session.save())
    store.tag("kept", heads[1])
    store.delete("s")
    for head, told in zip(heads, ("tag kept", "tag kept", "session s"), strict=True):
        (problem,) = verified(place.lacking(head.history.ids()[-1]))
        assert told in problem.message


@pytest.mark.usefixtures("no_following")
def test_what_is_saved_meanwhile_puts_nothing_in_doubt(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = place.open(), place.open()
    store.session("s").save()
    settle = Census.settle

    def saved_meanwhile(census: Census) -> bool:
        session = other.session("s")
        session.history.append("meanwhile")
        session.save()
        other.session("new").save()
        return settle(census)

    monkeypatch.setattr(Census, "settle", saved_meanwhile)
    assert store.verify() == []
