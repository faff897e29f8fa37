"""What a collection takes and what it leaves: sessions, moves, imports, programs that go on."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from stores import Place, place_on

from snapstore import Store, formats
from snapstore.engines.log import rewrite
from snapstore.errors import NothingToDo, ObjectMissing, Refused, SnapstoreError
from snapstore.maintenance.gc import Collected, collect
from snapstore.store import open_store
from snapstore.transfer.imports import import_transcript

NEVER_MIND = timedelta(0)
Meanwhile = Callable[[Callable[[], None]], None]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A store in a directory, whose files can be collected."""
    with place_on("log", iter([tmp_path])) as made:
        yield made


def saved(store: Store, name: str, *messages: str) -> list[str]:
    """Save a turn for each message; the ids of the turns."""
    session, ids = store.session(name), []
    for message in messages:
        session.history.append({"role": "user", "content": message})
        ids.append(session.save().id)
    return ids


def told(store: Store, name: str) -> list[str]:
    return [message["content"] for message in store.session(name).history]


def void(_: object) -> None:
    """What something returns does not matter."""


def gone(store: Store, snapshot_id: str) -> bool:
    return not store.engine.contains(bytes.fromhex(snapshot_id))


class TestWhatGoes:
    def test_only_shown_it_stays(self, store: Store) -> None:
        ids = saved(store, "a", "one", "two")
        store.delete("a")
        shown = store.gc(grace=NEVER_MIND)
        assert shown.objects == 6 and not shown.applied
        assert not gone(store, ids[1])

    def test_applied_exactly_what_was_shown_goes(self, store: Store) -> None:
        ids = saved(store, "a", "one", "two")
        saved(store, "b", "other")
        store.delete("a")
        shown = store.gc(grace=NEVER_MIND)
        done = store.gc(grace=NEVER_MIND, apply=True)
        assert (done.objects, done.bytes) == (shown.objects, shown.bytes)
        assert gone(store, ids[0]) and gone(store, ids[1])
        assert told(store, "b") == ["other"]
        assert store.verify() == []
        assert store.gc(grace=NEVER_MIND).objects == 0

    def test_what_undo_reaches_stays_for_the_grace_time(self, store: Store) -> None:
        saved(store, "a", "one", "two", "three")
        store.session("a").rewind(1)
        saved(store, "b", "other")
        store.delete("b")
        assert store.gc(apply=True).objects == 0
        store.undo("a")
        store.undo("b")
        assert (told(store, "a"), told(store, "b")) == (["one", "two", "three"], ["other"])

    def test_after_the_grace_time_undo_says_that_it_was_collected(self, store: Store) -> None:
        saved(store, "a", "one", "two", "three")
        store.session("a").rewind(1)
        later = store.clock() + timedelta(days=91) // timedelta(microseconds=1)
        assert collect(store, apply=True, now=later).objects == 6
        with pytest.raises(NothingToDo, match="collected"):
            store.undo("a")
        assert told(store, "a") == ["one"]

    def test_turns_that_a_tag_or_a_fork_leads_to_stay(self, store: Store) -> None:
        ids = saved(store, "a", "one", "two", "three")
        store.tag("good", store.snapshot(ids[1]))
        store.fork(store.snapshot(ids[0]), "f")
        store.delete("a")
        store.gc(grace=NEVER_MIND, apply=True)
        assert [gone(store, i) for i in ids] == [False, False, True]
        assert [len(store.snapshot(i).history) for i in ids[:2]] == [1, 2]

    def test_where_a_session_was_forked_from_is_still_known(self, store: Store) -> None:
        ids = saved(store, "a", "one", "two")
        store.fork(store.snapshot(ids[0]), "f")
        saved(store, "f", "two of f", "three of f")
        store.delete("a")
        store.gc(grace=NEVER_MIND, apply=True)
        (info,) = store.sessions()
        assert (info.name, info.forked_from) == ("f", ids[0])

    def test_the_current_session_stays_the_current_one(self, store: Store) -> None:
        saved(store, "a", "one")
        store.switch("a")
        store.gc(grace=NEVER_MIND, apply=True)
        assert store.current == "a"

    def test_large_values_stay_whole(self, store: Store) -> None:
        large = "".join(str(n) for n in range(60_000))
        saved(store, "a", large)
        store.session("b").save()
        store.delete("b")
        store.gc(grace=NEVER_MIND, apply=True)
        assert told(store, "a") == [large]

    def test_an_unmade_store_has_nothing_to_collect(self, tmp_path: Path) -> None:
        with open_store(tmp_path / "none") as store:
            assert store.gc(apply=True) == Collected(0, 0, True, 0)
        assert not (tmp_path / "none").exists()

    def test_in_memory_it_works_too(self) -> None:
        with open_store("memory://") as store:
            ids = saved(store, "a", "one")
            saved(store, "b", "two")
            store.delete("a")
            assert store.gc(grace=NEVER_MIND, apply=True).objects == 3
            assert gone(store, ids[0]) and told(store, "b") == ["two"]


class TestFiles:
    def test_those_of_turns_stay_and_those_that_undo_would_bring_back_go(
        self, store: Store, tmp_path: Path
    ) -> None:
        work = tmp_path / "work"
        work.mkdir()
        session = store.session("a")
        session.worktree = work
        for content in ("first", "second"):
            (work / "file").write_text(content)
            session.save()
        (work / "file").write_text("in no turn")
        session.rewind(1, files=True)
        assert (work / "file").read_text() == "first"
        store.gc(apply=True)
        session.undo()
        assert (work / "file").read_text() == "in no turn"
        session.rewind(1, files=True)
        store.gc(apply=True, grace=NEVER_MIND)
        assert store.verify() == []
        with pytest.raises(NothingToDo):
            store.undo("a")
        files = store.session("a").head.files  # type: ignore[union-attr]
        assert files is not None
        assert store.objects.content(bytes.fromhex(files["file"].id)) == b"first"


def rows(n: int) -> bytes:
    """A transcript of so many messages."""
    return b"".join(
        json.dumps({"role": "user" if k % 2 == 0 else "assistant", "content": f"m{k}"}).encode()
        + b"\n"
        for k in range(n)
    )


class TestImports:
    def test_a_transcript_that_grew_is_recognised_after_a_collection(self, store: Store) -> None:
        import_transcript(store, formats.read(rows(4), "talk.jsonl"), source="/talk.jsonl")
        name = store.sessions()[0].name
        saved(store, name, "said here", "and here")
        store.session(name).rewind(2)
        store.gc(grace=NEVER_MIND, apply=True)
        import_transcript(store, formats.read(rows(6), "talk.jsonl"), source="/talk.jsonl")
        assert store.verify() == []
        assert [len(store.session(info.name).history) for info in store.sessions()] == [6]


class TestProgramsThatGoOn:
    def test_a_session_that_is_held_open_is_saved_on(self, store: Store) -> None:
        saved(store, "a", "one", "two")
        session = store.session("a")
        session.history.append({"role": "user", "content": "three"})
        saved(store, "b", "gone")
        store.delete("b")
        store.gc(grace=NEVER_MIND, apply=True)
        session.save()
        assert told(store, "a") == ["one", "two", "three"]
        session.undo()
        assert told(store, "a") == ["one", "two"]

    def test_one_whose_turns_were_collected_under_it_never_leaves_half_a_turn(
        self, store: Store, place: Place
    ) -> None:
        saved(store, "a", "one", "two", "three")
        held = place.open().session("a")
        held.history.append({"role": "user", "content": "four"})
        store.session("a").rewind(1)
        store.gc(grace=NEVER_MIND, apply=True)
        with pytest.raises((Refused, ObjectMissing)):
            held.save(on_conflict="fork")
        assert held.history[-1] == {"role": "user", "content": "four"}
        assert [info.name for info in store.sessions()] == ["a"]
        assert store.verify() == []

    def test_a_rewind_to_a_turn_that_was_collected_fails_and_moves_nothing(
        self, store: Store, place: Place
    ) -> None:
        ids = saved(store, "a", "one", "two", "three")
        other = place.open()
        late = other.snapshot(ids[2])
        store.session("a").rewind(1)
        held = other.session("a")
        store.gc(grace=NEVER_MIND, apply=True)
        with pytest.raises(ObjectMissing):
            held.rewind(late)
        assert told(store, "a") == ["one"]


class TestWhatIsDoneMeanwhile:
    """Between the copying and the swap: what is committed then stays, with all it leads to."""

    @pytest.fixture
    def meanwhile(self, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
        """Let something be done while the next collection runs."""
        catch_up = rewrite.Rewrite._catch_up

        def let(something: Callable[[], None]) -> None:
            def first_do_it(self: rewrite.Rewrite) -> None:
                something()
                catch_up(self)

            monkeypatch.setattr(rewrite, "WORTHWHILE", 1)
            monkeypatch.setattr(rewrite.Rewrite, "_catch_up", first_do_it)

        return let

    def test_a_save_can_be_undone(self, store: Store, place: Place, meanwhile: Meanwhile) -> None:
        saved(store, "a", "one", "two")
        other = place.open()
        meanwhile(lambda: void(saved(other, "a", "three")))
        store.gc(grace=NEVER_MIND, apply=True)
        assert told(store, "a") == ["one", "two", "three"]
        store.undo("a")
        assert told(store, "a") == ["one", "two"]

    def test_a_session_that_was_brought_back_is_whole(
        self, store: Store, place: Place, meanwhile: Meanwhile, tmp_path: Path
    ) -> None:
        work, session = tmp_path / "work", store.session("a")
        work.mkdir()
        (work / "file").write_text("of a" * 50_000)
        session.worktree = work
        session.history.append("".join(str(n) for n in range(60_000)))
        session.scratchpad.update({f"key {n}": n for n in range(400)})
        session.save()
        saved(store, "a", "two", "three")
        store.delete("a")
        other = place.open()
        meanwhile(lambda: void(other.undo("a")))
        assert store.gc(grace=NEVER_MIND, apply=True).objects == 0
        assert store.verify() == []
        assert len(store.session("a").history) == 3
        assert len(store.session("a").scratchpad) == 400

    def test_a_fork_of_what_was_to_go_is_whole(
        self, store: Store, place: Place, meanwhile: Meanwhile
    ) -> None:
        ids = saved(store, "a", "one", "two", "three")
        store.delete("a")
        other = place.open()
        meanwhile(lambda: void(other.fork(other.snapshot(ids[1]), "f")))
        assert store.gc(grace=NEVER_MIND, apply=True).objects == 3
        assert store.verify() == []
        assert told(store, "f") == ["one", "two"]

    def test_an_import_that_shares_with_what_was_to_go_is_whole(
        self, store: Store, place: Place, meanwhile: Meanwhile
    ) -> None:
        import_transcript(store, formats.read(rows(300), "talk.jsonl"), source="/talk.jsonl")
        store.delete(store.sessions()[0].name)
        other = place.open()
        longer = formats.read(rows(301), "more.jsonl")
        meanwhile(lambda: void(import_transcript(other, longer, source="/more.jsonl")))
        store.gc(grace=NEVER_MIND, apply=True)
        assert store.verify() == []
        (info,) = store.sessions()
        assert len(store.session(info.name).history) == 301

    def test_writers_that_never_pause_do_not_keep_it_from_its_end(
        self, store: Store, place: Place, meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rewrite, "HOLD", 0.001)  # so that it falls behind at first
        saved(store, "gone", *map(str, range(50)))
        store.delete("gone")
        stop, begun, count = threading.Event(), threading.Event(), [0]

        def save_on() -> None:
            session = place.open().session("w")
            while not stop.is_set():
                session.history.append({"role": "user", "content": str(count[0])})
                session.save()
                count[0] += 1
                if count[0] == 100:
                    begun.set()

        writer = threading.Thread(target=save_on)
        writer.start()
        meanwhile(lambda: void(begun.wait(30)))
        store.gc(grace=NEVER_MIND, apply=True)
        stop.set()
        writer.join()
        assert told(store, "w") == [str(n) for n in range(count[0])]
        assert store.verify() == []


def test_progress_is_told_up_to_the_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrite, "WORTHWHILE", 1)
    for name in "abcd":
        saved(store, name, *(f"{name} {n}" for n in range(30)))
    store.delete("a")
    for apply in (False, True):
        told_of: list[tuple[int, int]] = []
        add = told_of.append
        collect(store, apply=apply, grace=NEVER_MIND, progress=lambda *at, add=add: add(at))
        done, totals = zip(*told_of, strict=True)
        assert len(set(totals)) == 1 and list(done) == sorted(done)
        assert done[0] < totals[0] // 4 and totals[0] * 0.95 < done[-1] <= totals[0]


class CollectedStore(RuleBasedStateMachine):
    """Two handles on one store that is collected now and then, against what was said."""

    NAMES = st.sampled_from(["a", "b", "c"])

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.one, self.two = (
            open_store(Path(self.folder.name) / "s", durable=False) for _ in range(2)
        )
        self.said: dict[str, list[str]] = {}
        self.count = 0

    def teardown(self) -> None:
        self.one.close()
        self.two.close()
        self.folder.cleanup()

    @rule(name=NAMES, turns=st.integers(1, 4), by_two=st.booleans())
    def say(self, name: str, turns: int, by_two: bool) -> None:
        for _ in range(turns):
            self.count += 1
            saved(self.two if by_two else self.one, name, f"message {self.count}")
            self.said.setdefault(name, []).append(f"message {self.count}")

    @precondition(lambda self: self.said)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.said)))
        to = data.draw(st.integers(1, len(self.said[name])))
        self.two.session(name).rewind(to)
        del self.said[name][to:]

    @precondition(lambda self: self.said)
    @rule(data=st.data(), name=NAMES)
    def fork(self, data: st.DataObject, name: str) -> None:
        source = data.draw(st.sampled_from(sorted(self.said)))
        if name not in self.said:
            head = self.one.session(source).head
            assert head is not None
            self.one.fork(head, name)
            self.said[name] = list(self.said[source])

    @precondition(lambda self: self.said)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.said)))
        self.one.delete(name)
        del self.said[name]

    @rule(name=NAMES)
    def undo_and_redo(self, name: str) -> None:
        try:
            self.two.undo(name)
            self.two.redo(name)
        except SnapstoreError:
            pass  # nothing to undo, or it was collected; what the session says is checked below

    @rule(by_two=st.booleans(), all_of_it=st.booleans())
    def collect(self, by_two: bool, all_of_it: bool) -> None:
        store = self.two if by_two else self.one
        grace = NEVER_MIND if all_of_it else timedelta(days=90)
        shown = store.gc(grace=grace)
        assert store.gc(grace=grace, apply=True).objects == shown.objects

    @invariant()
    def every_session_says_what_was_said(self) -> None:
        for store in (self.one, self.two):
            assert {i.name: told(store, i.name) for i in store.sessions()} == self.said

    @invariant()
    def nothing_is_missing(self) -> None:
        assert self.one.verify() == []


CollectedStore.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
TestAnyCourse = CollectedStore.TestCase
