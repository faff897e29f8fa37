"""Files that go along with HEAD: rewind, restore, undo and redo, any number of steps."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from overdisk import OpenStore
from pictures import Picture, differing, fill, picture, stamps
from stores import lacking_engine

import snapstore
from snapstore import NothingToDo, RefMoved, Refused, Session, Store, refs
from snapstore.engine import Update
from snapstore.transfer.carry import carry


def test_a_rewind_with_files_is_one_move_of_one_ref(
    session: Session, work: Path, store: Store
) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    session.save()
    before = len(list(store.engine.reflog()))
    session.rewind(1, files=True)
    assert len(list(store.engine.reflog())) == before + 1
    session.undo()
    assert len(list(store.engine.reflog())) == before + 2


def test_a_restore_is_undone_and_head_stays(session: Session, work: Path) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    session.save()
    fill(work, {"a": "by hand"})
    session.restore(1)
    assert session.turn == 2 and (work / "a").read_text() == "1"
    session.undo()
    assert session.turn == 2 and (work / "a").read_text() == "by hand"
    session.redo()
    assert session.turn == 2 and (work / "a").read_text() == "1"


def test_a_rewind_without_files_touches_none_and_neither_does_its_undo(
    session: Session, work: Path
) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    session.save()
    before = stamps(work)
    session.rewind(1)
    session.undo()
    session.redo()
    session.undo(2)  # the rewind, and the second save
    assert stamps(work) == before and session.turn == 1
    assert session.restored is None


def test_undoing_a_save_leaves_the_files(session: Session, work: Path) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    session.save()
    session.undo()
    assert session.turn == 1 and (work / "a").read_text() == "2"


def test_fifty_steps_back_and_forth_pass_every_state(session: Session, work: Path) -> None:
    fill(work, {"a": "0"})
    session.save()
    fill(work, {"a": "1", "b": "1"})
    session.save()
    states = [picture(work)]
    for n in range(50):
        session.restore(n % 2 + 1)
        states.append(picture(work))
    for state in reversed(states[:-1]):
        session.undo()
        assert picture(work) == state
    for state in states[1:]:
        session.redo()
        assert picture(work) == state
    with pytest.raises(NothingToDo):
        session.redo()


def test_edits_between_steps_come_back_too(session: Session, work: Path) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    session.save()
    session.rewind(1, files=True)
    fill(work, {"a": "after the rewind"})
    session.undo()
    assert (work / "a").read_text() == "2"
    fill(work, {"a": "after the undo"})
    session.redo()
    assert (work / "a").read_text() == "after the rewind"
    session.undo()
    assert (work / "a").read_text() == "after the undo"


def test_several_steps_at_once_tell_what_became_of_the_files_in_all(
    session: Session, work: Path
) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2", "b": "2"})
    session.save()
    session.restore(1)
    session.restore(2)
    session.undo(2)
    assert session.restored is not None
    assert session.restored.written == ("a", "b") and session.restored.deleted == ()


def test_a_save_after_an_undo_starts_over_from_there(session: Session, work: Path) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    session.save()
    session.rewind(1, files=True)
    session.undo()
    fill(work, {"a": "3"})
    session.save()
    with pytest.raises(NothingToDo):
        session.redo()
    session.undo()  # the save: no file
    assert (work / "a").read_text() == "3"
    session.undo()  # the second save: where HEAD stood before the rewind
    assert session.turn == 1 and (work / "a").read_text() == "3"


def test_where_another_writer_moved_head_the_files_stay_as_they_are(
    session: Session, work: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    two = session.save()
    before = picture(work)
    from snapstore.worktree.apply import Applier

    run = Applier.run

    def overtaken(self: Applier) -> None:
        update = Update(refs.SESSIONS + "s", session.at(1).raw_id, two.raw_id, "rewind", 0)
        store.engine.commit([], update)
        run(self)

    monkeypatch.setattr(Applier, "run", overtaken)
    with pytest.raises(RefMoved):
        session.rewind(1, files=True)
    assert picture(work) == before


def test_two_sessions_may_be_bound_to_one_directory(store: Store, work: Path) -> None:
    one, other = store.session("one"), store.session("other")
    one.worktree = other.worktree = work
    fill(work, {"a": "1"})
    one.save()
    fill(work, {"a": "2", "b": "2"})
    other.save()
    one.restore(1)
    assert picture(work).keys() == {"a"}, "b is known: a turn of the other session holds it"
    assert (work / "a").read_text() == "1"
    one.undo()
    assert (work / "b").read_text() == "2"


def test_a_fork_has_the_files_of_where_it_started(session: Session, work: Path) -> None:
    fill(work, {"a": "1"})
    one = session.save()
    fork = session.fork("fork")
    assert fork.head == one and fork.worktree == work
    fill(work, {"a": "2"})
    fork.save()
    assert session.head == one


def test_captures_that_only_undo_needs_are_checked_by_verify(
    session: Session, work: Path, store: Store
) -> None:
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "no turn holds this"})
    session.restore(1)
    assert store.verify() == []
    move = store.engine.tip("sessions/s")
    assert move is not None
    captured = snapstore.worktree.files.Files(store.objects, move.info["back"]["tree"])
    lacking = lacking_engine(store.engine, {bytes.fromhex(captured["a"].id)})
    assert [p.kind for p in Store(lacking, clock=store.clock).verify()] == ["missing"]


def test_a_directory_that_is_gone_is_made_again_only_when_forced(
    session: Session, work: Path
) -> None:
    (work / "deep/er").mkdir(parents=True)
    fill(work, {"deep/er/a": "1"})
    session.worktree = work / "deep/er"
    session.save()
    session.save("two")
    session.rewind(1, files=True)
    shutil.rmtree(work / "deep")
    for step in (session.undo, partial(session.restore, 1), partial(session.rewind, 1, files=True)):
        with pytest.raises(Refused, match="is not there") as gone:
            step()
        assert "--force" in gone.value.hint and "--to" in gone.value.hint
        assert not (work / "deep").exists()
    session.undo(force=True)
    assert session.turn == 2 and (work / "deep/er/a").read_text() == "1"


def test_undo_and_redo_pass_a_restored_path_that_was_removed_since(
    session: Session, work: Path
) -> None:
    fill(work, {"a": "1", "d/b": "1"})
    session.save()
    shutil.rmtree(work / "d")
    (work / "a").unlink()
    session.restore(1, ["a", "d/b"])
    shutil.rmtree(work / "d")
    (work / "a").unlink()
    session.undo()
    assert picture(work).keys() == set()
    session.redo()
    assert picture(work).keys() == set(), "as the undo found it"
    session.undo(2)
    assert session.head is None


@pytest.mark.parametrize("instead", ["file", "link", "nothing"])
def test_undo_passes_a_restored_path_whose_directory_is_something_else_by_now(
    session: Session, work: Path, instead: str
) -> None:
    fill(work, {"d/b": "1"})
    session.save()
    fill(work, {"d/b": "2"})
    session.restore(1, ["d/b"])
    shutil.rmtree(work / "d")
    if instead == "file":
        (work / "d").write_text("a file")
    elif instead == "link":
        (work / "d").symlink_to("nowhere")
    session.undo()
    assert (work / "d/b").read_text() == "2"
    session.redo()
    assert session.turn == 1


def test_a_directory_that_only_another_store_captured_is_refused_unless_forced(
    session: Session, work: Path, store: Store
) -> None:
    fill(work, {"a": "1"})
    session.save()
    session.save("two")
    with snapstore.open("memory://") as other:
        carry(store, other, ["s"])
        pulled = other.session("s")
        fill(work, {"a": "of this machine"})
        for step in (partial(pulled.restore, 1), partial(pulled.rewind, 1, files=True)):
            with pytest.raises(Refused, match="never captured") as foreign:
                step()
            assert "--to" in foreign.value.hint
        assert (work / "a").read_text() == "of this machine"
        pulled.rewind(1, files=True, force=True)
        assert (work / "a").read_text() == "1"
        pulled.undo()
        assert (work / "a").read_text() == "of this machine"
        pulled.restore(1)


def test_a_handle_opened_later_undoes_what_another_process_did(
    open_store: OpenStore, work: Path
) -> None:
    session = open_store().session("s")
    session.worktree = work
    fill(work, {"a": "1"})
    session.save()
    fill(work, {"a": "2"})
    session.save()
    open_store().session("s").rewind(1, files=True)
    open_store().session("s").undo()
    assert (work / "a").read_text() == "2"


# --- against a model ------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
MODES = st.sampled_from([0o600, 0o644, 0o755])


class FilesAndTurns(RuleBasedStateMachine):
    """Random changes of a tree, saves, and steps: every state that was left can be come back to.

    The model: the picture of each turn, and what HEAD and the files were before each move that
    touched files. Files that no turn knows would stay, so whatever comes or goes is saved before
    the next move; only contents are also edited by hand between moves.
    """

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(mkdtemp(prefix="snapstore-moves-"))
        self.work = self.root / "work"
        self.work.mkdir()
        self.store = snapstore.open(self.root / "store", durable=False)
        self.session = self.store.session("s")
        self.session.worktree = self.work
        self.session.save()
        self.turns: dict[str, Picture] = {self.head: picture(self.work)}
        self.back: list[tuple[str, Picture]] = []
        self.forth: list[tuple[str, Picture]] = []
        self.unsaved = False

    @property
    def head(self) -> str:
        assert self.session.head is not None
        return self.session.head.id

    def _clear(self, path: Path) -> None:
        self.unsaved = True
        for above in [*reversed(path.relative_to(self.work).parents)][1:]:
            if (self.work / above).is_symlink() or (self.work / above).is_file():
                (self.work / above).unlink()
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)

    @rule(path=PATHS, content=st.binary(max_size=8), mode=MODES, mtime=st.integers(0, 2**61))
    def write(self, path: str, content: bytes, mode: int, mtime: int) -> None:
        target = self.work / path
        self._clear(target)
        target.write_bytes(content)
        target.chmod(mode)
        os.utime(target, ns=(mtime, mtime))

    @rule(path=PATHS, mode=MODES)
    def make_directory(self, path: str, mode: int) -> None:
        self._clear(self.work / path)
        (self.work / path).mkdir()
        (self.work / path).chmod(mode | 0o700)

    @rule(path=PATHS, to=PATHS)
    def link(self, path: str, to: str) -> None:
        self._clear(self.work / path)
        (self.work / path).symlink_to(to)
        os.utime(self.work / path, ns=(0, 0), follow_symlinks=False)

    @rule(path=PATHS)
    def remove(self, path: str) -> None:
        self._clear(self.work / path)

    @rule()
    def save(self) -> None:
        before = self.head
        self.session.save()
        self.unsaved = False
        self.turns.setdefault(self.head, picture(self.work))
        if self.head != before:
            self.back, self.forth = [], []

    def _moved(self) -> None:
        assert differing(picture(self.work), self.turns[self.head]) == []

    @rule(which=st.integers(0, 99))
    def rewind(self, which: int) -> None:
        self.save()
        goal = list(self.turns)[which % len(self.turns)]
        if goal != self.head:  # else it is no move
            self.back.append((self.head, picture(self.work)))
            self.forth = []
        self.session.rewind(goal, files=True)
        assert self.head == goal
        self._moved()

    @rule(path=PATHS, content=st.binary(max_size=8))
    @precondition(lambda self: self.back and not self.unsaved)
    def edit_by_hand_and_undo(self, path: str, content: bytes) -> None:
        target = self.work / path
        if target.is_file() and not target.is_symlink():
            target.write_bytes(content)
            os.utime(target, ns=(1, 1))
        self.undo()

    @rule()
    @precondition(lambda self: self.back and not self.unsaved)
    def undo(self) -> None:
        self.forth.append((self.head, picture(self.work)))
        head, state = self.back.pop()
        self.session.undo()
        assert self.head == head
        assert differing(picture(self.work), state) == []

    @rule()
    @precondition(lambda self: self.forth and not self.unsaved)
    def redo(self) -> None:
        self.back.append((self.head, picture(self.work)))
        head, state = self.forth.pop()
        self.session.redo()
        assert self.head == head
        assert differing(picture(self.work), state) == []

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = snapstore.open(self.root / "store", durable=False)
        self.session = self.store.session("s")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.root)


def test_every_state_that_was_left_can_be_come_back_to() -> None:
    run_state_machine_as_test(
        FilesAndTurns, settings=settings(deadline=None, max_examples=30, stateful_step_count=20)
    )
