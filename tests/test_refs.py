"""Every change of a name is a move, and every move can be undone and done again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from stores import Place, run_machine

from snapstore import InvalidInput, NotFound, NothingToDo, Refused, Store, refs
from snapstore.engine import Engine, Update

REF = refs.SESSIONS + "s"
HEADS = st.sampled_from([bytes([n]) * 32 for n in range(4)])


class Undoing(RuleBasedStateMachine):
    """A ref, and the two stacks that every editor keeps for undo and redo."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.engine = place.engine()
        self.now: bytes | None = None
        self.undoable: list[tuple[str, bytes | None]] = []
        self.redoable: list[tuple[str, bytes | None]] = []
        self.all: list[bytes | None] = []

    def teardown(self) -> None:
        self.place.opened.close()

    def moved(self, to: bytes | None) -> None:
        self.now = to
        self.all.append(to)

    @rule(head=HEADS, op=st.sampled_from(["save", "rewind"]))
    def move(self, head: bytes, op: str) -> None:
        self.engine.commit([], Update(REF, head, self.now, op, 0))
        self.undoable.append((op, self.now))
        self.redoable.clear()
        self.moved(head)

    @rule()
    def delete(self) -> None:
        if self.now is None:
            with pytest.raises(NotFound):
                refs.delete(self.engine, REF, 0)
            return
        refs.delete(self.engine, REF, 0)
        self.undoable.append(("delete", self.now))
        self.redoable.clear()
        self.moved(None)

    @rule()
    def undo(self) -> None:
        if not self.undoable:
            with pytest.raises(NothingToDo):
                refs.step_back(self.engine, REF, 0)
            return
        op, before = self.undoable.pop()
        step = refs.step_back(self.engine, REF, 0)
        assert (step.op, step.info["of"]) == ("undo", op)
        self.redoable.append((op, self.now))
        self.moved(before)

    @rule()
    def redo(self) -> None:
        if not self.redoable:
            with pytest.raises(NothingToDo):
                refs.step_forth(self.engine, REF, 0)
            return
        op, after = self.redoable.pop()
        step = refs.step_forth(self.engine, REF, 0)
        assert (step.op, step.info["of"]) == ("redo", op)
        self.undoable.append((op, self.now))
        self.moved(after)

    @rule()
    def open_again(self) -> None:
        self.engine = self.place.engine()

    @invariant()
    def stands_where_the_stacks_say(self) -> None:
        live = refs.live(self.engine, REF)
        assert (live.new if live else None) == self.now

    @invariant()
    def every_place_it_was_at_is_known(self) -> None:
        for back, head in enumerate(reversed(self.all)):
            was = refs.was_at(self.engine, REF, back)
            assert was is not None
            assert was.new == head
        assert refs.was_at(self.engine, REF, len(self.all)) is None


def test_undo_and_redo_walk_the_moves_of_a_ref(new_place: Callable[[], Place]) -> None:
    run_machine(Undoing, new_place, examples=60, steps=25)


# --- sessions --------------------------------------------------------------------------------


def names(store: Store) -> list[str]:
    """The sessions that there are."""
    return [info.name for info in store.sessions()]


def save(store: Store, name: str, *messages: str) -> None:
    """One more turn for each message."""
    session = store.session(name)
    for message in messages:
        session.history.append(message)
        session.save()


def test_a_deleted_session_comes_back_with_undo_and_goes_with_redo(store: Store) -> None:
    save(store, "s", "one", "two")
    origin = store.session("s").fork("f", at=1)
    store.delete("f")
    assert names(store) == ["s"]
    assert store.session("f").turn == 0
    store.undo("f")
    assert names(store) == ["f", "s"]
    assert store.sessions()[0].forked_from == origin.at(1).id
    store.redo("f")
    assert names(store) == ["s"]
    store.session("f").undo()
    assert store.session("f").history == ["one"]


def test_a_session_made_anew_under_a_deleted_name_hides_nothing(store: Store) -> None:
    save(store, "s", "old")
    store.delete("s")
    save(store, "s", "new")
    assert store.session("s").history == ["new"]
    store.undo("s")
    assert names(store) == []
    store.undo("s")
    assert store.session("s").history == ["old"]


def test_rename_keeps_the_turns_and_the_origin(store: Store) -> None:
    save(store, "s", "one", "two")
    origin = store.session("s").fork("f", at=1).head
    assert origin is not None
    store.rename("f", "g")
    assert names(store) == ["g", "s"]
    assert store.sessions()[0].forked_from == origin.id
    assert store.session("g").history == ["one"]
    store.rename("g", "h")
    assert store.sessions()[0].forked_from == origin.id


def test_undo_and_redo_of_a_rename_move_both_names(store: Store) -> None:
    save(store, "old", "one")
    store.rename("old", "new")
    for back, forth in (("new", "new"), ("old", "old"), ("new", "old"), ("old", "new")):
        store.undo(back)
        assert names(store) == ["old"]
        assert store.session("old").history == ["one"]
        store.redo(forth)
        assert names(store) == ["new"]
        assert store.session("new").history == ["one"]


def test_undo_of_a_rename_brings_the_old_name_back_beside_one_that_went_on(store: Store) -> None:
    save(store, "old", "one")
    store.rename("old", "new")
    save(store, "new", "two")
    store.undo("old")
    assert store.session("old").history == ["one"]
    assert store.session("new").history == ["one", "two"]


def test_the_current_session_stays_so_by_whatever_name(store: Store) -> None:
    save(store, "old", "one")
    save(store, "other", "one")
    store.switch("old")
    store.rename("old", "new")
    assert store.current == "new"
    store.undo("new")
    assert store.current == "old"
    store.redo("old")
    assert store.current == "new"
    store.switch("other")
    store.undo("new")
    assert store.current == "other"


def test_the_session_saved_last_is_known_by_its_present_name(store: Store) -> None:
    assert store.last_saved() is None
    save(store, "a", "one")
    save(store, "b", "one")
    store.rename("b", "c")
    assert store.last_saved() == "c"
    store.delete("c")
    assert store.last_saved() == "a"


def test_undo_comes_to_a_rename_through_later_moves(store: Store) -> None:
    save(store, "old", "one")
    store.rename("old", "new")
    save(store, "new", "two")
    store.undo("new")
    store.undo("new")
    assert names(store) == ["old"]
    store.redo("new")
    assert names(store) == ["new"]
    store.redo("new")
    assert store.session("new").history == ["one", "two"]


def test_undo_of_a_rename_leaves_an_old_name_alone_that_is_in_use_again(store: Store) -> None:
    save(store, "old", "one")
    store.rename("old", "new")
    save(store, "old", "another")
    store.undo("new")
    assert store.session("old").history == ["another"]
    store.redo("new")
    assert store.session("old").history == ["another"]
    assert store.session("new").history == ["one"]


def test_rename_refuses_a_name_that_is_taken_or_wrong(store: Store) -> None:
    save(store, "a", "one")
    save(store, "b", "two")
    for taken in ("a", "b"):
        with pytest.raises(Refused, match="already"):
            store.rename("a", taken)
    with pytest.raises(InvalidInput):
        store.rename("a", "..")
    with pytest.raises(NotFound):
        store.rename("nope", "c")
    assert names(store) == ["a", "b"]


def test_where_a_session_was_is_known_through_renames(store: Store) -> None:
    save(store, "a", "one", "two")
    store.rename("a", "b")
    save(store, "b", "three")
    store.rename("b", "a")
    save(store, "a", "four")
    was = [store.resolve(f"a@{{{back}}}").turn for back in range(6)]
    assert was == [4, 3, 3, 2, 2, 1]
    with pytest.raises(NotFound, match="nowhere 6 moves ago"):
        store.resolve("a@{6}")


def test_a_move_of_one_session_is_no_move_of_another(store: Store) -> None:
    save(store, "a", "one", "two")
    save(store, "b", "three")
    store.undo("a")
    assert (store.session("a").turn, store.session("b").turn) == (1, 1)
    with pytest.raises(NothingToDo):
        store.redo("b")


@pytest.mark.parametrize("act", ["undo", "redo", "delete"])
def test_a_name_that_never_was_cannot_be_moved(store: Store, act: str) -> None:
    save(store, "fix-login", "one")
    with pytest.raises(NotFound) as missing:
        getattr(store, act)("fix-logn")
    assert "fix-login" in missing.value.hint


def test_every_move_is_in_the_reflog_newest_first(store: Store, place: Place) -> None:
    save(store, "s", "one", "two")
    store.session("s").rewind(1)
    store.session("s").fork("f")
    store.delete("f")
    store.undo("f")
    store.rename("f", "g")
    moves = [(move.ref, move.op) for move in place.open().engine.reflog()]
    assert moves == [
        ("sessions/f", "rename"), ("sessions/g", "rename"), ("sessions/f", "undo"),
        ("sessions/f", "delete"), ("sessions/f", "fork"), ("sessions/s", "rewind"),
        ("sessions/s", "save"), ("sessions/s", "save"),
    ]  # fmt: skip


# --- tags ------------------------------------------------------------------------------------


def test_a_tag_names_a_turn_whatever_becomes_of_the_session(store: Store, place: Place) -> None:
    save(store, "s", "one", "two")
    first = store.resolve("s@1")
    store.tag("v1", first)
    store.delete("s")
    again = place.open()
    assert again.tags() == {"v1": first.id}
    assert again.resolve("v1").history == ["one"]


def test_a_tag_can_be_moved_and_removed(store: Store) -> None:
    save(store, "s", "one", "two")
    for turn in (1, 2):
        store.tag("v", store.resolve(f"s@{turn}"))
        assert store.resolve("v").turn == turn
    before = list(store.engine.reflog())
    store.tag("v", store.resolve("s@2"))
    assert list(store.engine.reflog()) == before
    store.untag("v")
    assert store.tags() == {}
    with pytest.raises(NotFound, match="tag v"):
        store.untag("v")
    store.tag("v", store.resolve("s@1"))
    assert store.resolve("v").turn == 1


def test_a_tag_has_a_valid_name(store: Store) -> None:
    save(store, "s", "one")
    with pytest.raises(InvalidInput):
        store.tag("no space", store.resolve("s"))


def engine_is_used(engine: Engine) -> bool:
    """Whether any ref has ever moved."""
    return any(True for _ in engine.reflog())


def test_a_refused_step_writes_nothing(store: Store) -> None:
    for step in (refs.step_back, refs.step_forth):
        with pytest.raises(NothingToDo):
            step(store.engine, REF, 0)
    assert not engine_is_used(store.engine)
