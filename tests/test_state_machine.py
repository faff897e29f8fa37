"""Whatever is done to a store, in whatever order: every turn ever made is what it was.

Two and more handles of one store, several session objects of one name, saves that conflict, steps
back and forth, names that come, go and change: all of it runs beside a store in plain Python.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from plainstore import PlainStore, PlainTurn
from stores import Place, run_machine

from snapstore import NotFound, NothingToDo, RefMoved, Refused, Session, Store

NAMES = st.sampled_from(["a", "b", "c"])
LABELS = st.sampled_from([None, "", "x"])
MESSAGES = st.text("mn", min_size=1, max_size=3) | st.just(30_000).map("long ".__mul__)
KEYS = st.sampled_from(["k1", "k2", *(f"many {n}" for n in range(3))])
PICK = st.integers(0, 99)


@dataclass
class Handle:
    """A session object, and what it must hold."""

    session: Session
    head: str | None
    history: list[Any]
    scratchpad: dict[str, Any]


class Sessions(RuleBasedStateMachine):
    """Sessions of a store, beside sessions of a plain one."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.stores: list[Store] = []
        self.handles: list[Handle] = []
        self.plain = PlainStore()

    @initialize()
    def begin(self) -> None:
        self.open_store()
        self.open_session("a", 0)

    def teardown(self) -> None:
        fresh = self.place.open()
        self.check_every_turn(fresh)
        assert fresh.verify() == []
        self.place.opened.close()

    # --- handles ------------------------------------------------------------------------------

    @precondition(lambda self: len(self.stores) < 4)
    @rule()
    def open_store(self) -> None:
        self.stores.append(self.place.open())

    @precondition(lambda self: len(self.handles) < 6)
    @rule(name=NAMES, pick=PICK)
    def open_session(self, name: str, pick: int) -> None:
        session = self.stores[pick % len(self.stores)].session(name)
        handle = Handle(session, None, [], {})
        self.stand(handle, self.plain.head(name))
        self.handles.append(handle)

    def handle(self, pick: int) -> Handle:
        return self.handles[pick % len(self.handles)]

    def stand(self, handle: Handle, head: str | None) -> None:
        """The handle must hold what this turn does."""
        handle.head = head
        turn = self.plain.turns[head] if head else None
        handle.history = list(turn.history) if turn else []
        handle.scratchpad = dict(turn.scratchpad) if turn else {}

    def changed(self, handle: Handle) -> bool:
        turn = self.plain.turns[handle.head] if handle.head else None
        saved = (turn.history, turn.scratchpad) if turn else ([], {})
        return (handle.history, handle.scratchpad) != saved

    # --- changes that are not saved yet -------------------------------------------------------

    @rule(pick=PICK, messages=st.lists(MESSAGES, max_size=3))
    def append(self, pick: int, messages: list[str]) -> None:
        handle = self.handle(pick)
        handle.session.history.extend(messages)
        handle.history.extend(messages)

    @rule(pick=PICK, at=st.slices(6), messages=st.lists(MESSAGES, max_size=2))
    def edit(self, pick: int, at: slice, messages: list[str]) -> None:
        handle = self.handle(pick)
        plain = slice(at.start, at.stop)
        handle.session.history[plain] = messages
        handle.history[plain] = messages

    @rule(pick=PICK, keep=st.integers(0, 5))
    def trim(self, pick: int, keep: int) -> None:
        handle = self.handle(pick)
        cut = max(0, len(handle.history) - keep)
        assert handle.session.trim(keep) == cut
        del handle.history[:cut]

    @rule(pick=PICK, key=KEYS, value=MESSAGES)
    def set_key(self, pick: int, key: str, value: str) -> None:
        handle = self.handle(pick)
        handle.session.scratchpad[key] = value
        handle.scratchpad[key] = value

    @rule(pick=PICK, key=KEYS)
    def unset_key(self, pick: int, key: str) -> None:
        handle = self.handle(pick)
        handle.session.scratchpad.pop(key, None)
        handle.scratchpad.pop(key, None)

    @rule(pick=PICK)
    def reload(self, pick: int) -> None:
        handle = self.handle(pick)
        handle.session.reload()
        self.stand(handle, self.plain.head(handle.session.name))

    # --- saving -------------------------------------------------------------------------------

    @rule(pick=PICK, label=LABELS, on_conflict=st.sampled_from(["raise", "fork"]))
    def save(self, pick: int, label: str | None, on_conflict: Literal["raise", "fork"]) -> None:
        handle = self.handle(pick)
        name, session = handle.session.name, handle.session
        actual = self.plain.head(name)
        turn = self.plain.turns[handle.head] if handle.head else None
        if turn and not self.changed(handle) and label in (None, turn.label):
            if actual != handle.head and on_conflict == "raise":
                self.refused(RefMoved, lambda: session.save(label))
            else:
                assert session.save(label, on_conflict=on_conflict).id == handle.head
            return
        new = PlainTurn(
            handle.head,
            turn.number + 1 if turn else 1,
            copy.deepcopy(handle.history),
            copy.deepcopy(handle.scratchpad),
            label or "",
        )
        if actual != handle.head and (actual is None or self.plain.turns[actual] != new):
            if on_conflict == "raise":
                self.refused(RefMoved, lambda: session.save(label))
                return
            name = self.plain.free_name(name)
        saved = session.save(label, on_conflict=on_conflict).id
        assert session.name == name
        if saved != actual:
            assert saved not in self.plain.turns
            self.plain.turns[saved] = new
            self.plain.move(name, ("save",), saved)
        handle.head = saved

    # --- going back and forth -----------------------------------------------------------------

    @precondition(lambda self: self.plain.turns)
    @rule(pick=PICK, which=PICK, force=st.booleans())
    def rewind(self, pick: int, which: int, force: bool) -> None:
        handle = self.handle(pick)
        target = list(self.plain.turns)[which % len(self.plain.turns)]

        def act() -> object:
            return handle.session.rewind(target, force=force)

        if self.changed(handle) and not force:
            self.refused(Refused, act)
        elif self.plain.head(handle.session.name) != handle.head:
            self.refused(RefMoved, act)
        else:
            act()
            if target != handle.head:  # else it is no move
                self.plain.move(handle.session.name, ("rewind",), target)
            self.stand(handle, target)

    @rule(pick=PICK, back=st.booleans(), force=st.booleans())
    def step(self, pick: int, back: bool, force: bool) -> None:
        handle = self.handle(pick)
        name = handle.session.name
        act = handle.session.undo if back else handle.session.redo
        actual = self.plain.head(name)
        if self.changed(handle) and not force:
            self.refused(Refused, lambda: act())
            return
        if handle.head and actual and actual != handle.head:
            self.refused(RefMoved, lambda: act(force=force))
            return
        self.step_name(name, back, lambda: act(force=force))
        self.stand(handle, self.plain.head(name))

    @rule(name=NAMES, back=st.booleans())
    def step_by_name(self, name: str, back: bool) -> None:
        store = self.stores[-1]
        self.step_name(name, back, lambda: store.undo(name) if back else store.redo(name))

    def step_name(self, name: str, back: bool, act: Callable[[], object]) -> None:
        ref = self.plain.names.get(name)
        if ref is None:
            self.refused(NotFound, act)
        elif not (ref.undoable if back else ref.redoable):
            self.refused(NothingToDo, act)
        else:
            act()
            (self.plain.undo if back else self.plain.redo)(name)

    # --- names --------------------------------------------------------------------------------

    @rule(pick=PICK, name=NAMES, at=PICK)
    def fork(self, pick: int, name: str, at: int) -> None:
        handle = self.handle(pick)
        if handle.head is None:
            self.refused(NotFound, lambda: handle.session.fork(name))
            return
        turn = at % self.plain.turns[handle.head].number + 1
        if self.plain.head(name):
            self.refused(Refused, lambda: handle.session.fork(name, at=turn))
            return
        source = list(self.plain.line(handle.head))[-turn]
        fork = handle.session.fork(name, at=turn)
        assert fork.turn == turn
        assert fork.history == self.plain.turns[source].history
        self.plain.move(name, ("fork",), source)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if self.plain.head(name) is None:
            self.refused(NotFound, lambda: self.stores[-1].delete(name))
            return
        self.stores[-1].delete(name)
        self.plain.move(name, ("delete",), None)

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        def act() -> None:
            self.stores[-1].rename(old, new)

        if self.plain.head(old) is None:
            self.refused(NotFound, act)
        elif self.plain.head(new) is not None:
            self.refused(Refused, act)
        else:
            act()
            self.plain.rename(old, new)

    # --- what always holds --------------------------------------------------------------------

    def refused(self, error: type[Exception], act: Callable[[], object]) -> None:
        with pytest.raises(error):
            act()

    def check_every_turn(self, store: Store) -> None:
        for snapshot_id, turn in self.plain.turns.items():
            snapshot = store.resolve(snapshot_id)
            assert (snapshot.turn, snapshot.parent) == (turn.number, turn.parent)
            assert snapshot.label == turn.label
            assert snapshot.history == turn.history
            assert snapshot.scratchpad == turn.scratchpad

    @invariant()
    def every_turn_ever_made_is_what_it_was(self) -> None:
        if self.stores:
            self.check_every_turn(self.stores[0])

    @invariant()
    def the_sessions_are_those_that_the_moves_left(self) -> None:
        for store in self.stores:
            assert {info.name: info.head for info in store.sessions()} == self.plain.live()

    @invariant()
    def every_log_goes_back_to_turn_one(self) -> None:
        for name, head in self.plain.live().items():
            log = self.stores[-1].session(name).log()
            assert [turn.id for turn in log] == list(self.plain.line(head))
            assert [turn.turn for turn in log] == list(range(len(log), 0, -1))

    @invariant()
    def every_handle_holds_what_it_must(self) -> None:
        for handle in self.handles:
            session = handle.session
            assert (session.head.id if session.head else None) == handle.head
            assert list(session.history) == handle.history
            assert dict(session.scratchpad) == handle.scratchpad
            assert session.unsaved == (handle.head is None or self.changed(handle))


def test_every_turn_ever_made_is_what_it_was(new_place: Callable[[], Place]) -> None:
    run_machine(Sessions, new_place, examples=60, steps=40)


@pytest.mark.slow
def test_every_turn_ever_made_is_what_it_was_in_long_runs(
    new_place: Callable[[], Place],
) -> None:
    run_machine(Sessions, new_place, examples=1000, steps=120)
