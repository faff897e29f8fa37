"""Several writers of one session: each is told, and nothing that anyone saved is lost."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stores import Place

from snapstore import InvalidInput, RefMoved, Session, Store


def saved(store: Store, name: str, *messages: Any) -> Session:
    """A session with one more turn for each message."""
    session = store.session(name)
    for message in messages:
        session.history.append(message)
        session.save()
    return session


@pytest.fixture
def two(store: Store, place: Place) -> tuple[Session, Session]:
    """Two objects of one session, the first in this store's handle and the second in another's."""
    saved(store, "w", "start")
    return store.session("w"), place.open().session("w")


def test_the_second_of_two_writers_is_told_and_keeps_its_state(
    two: tuple[Session, Session],
) -> None:
    first, second = two
    first.history.append("first's")
    head = first.save()
    second.history.append("second's")
    second.scratchpad["mine"] = True
    for _ in range(2):
        with pytest.raises(RefMoved) as moved:
            second.save()
    assert moved.value.name == "w"
    assert (moved.value.expected, moved.value.actual) == (first.at(1).raw_id, head.raw_id)
    assert second.history == ["start", "second's"]
    assert second.scratchpad == {"mine": True}
    assert second.turn == 1


def test_on_conflict_fork_keeps_both_lines_and_goes_on_in_the_fork(
    two: tuple[Session, Session], place: Place
) -> None:
    first, second = two
    first.history.append("first's")
    first.save()
    second.history.append("second's")
    kept = second.save("mine", on_conflict="fork")
    assert (second.name, second.head, kept.turn, kept.label) == ("w+1", kept, 2, "mine")
    second.history.append("and on")
    second.save()
    store = place.open()
    assert store.session("w").history == ["start", "first's"]
    assert store.session("w+1").history == ["start", "second's", "and on"]
    forked_from = {info.name: info.forked_from for info in store.sessions()}
    assert forked_from == {"w": None, "w+1": store.resolve("w@1").id}


def test_many_conflicts_take_one_name_after_the_other(store: Store, place: Place) -> None:
    saved(store, "w", "start")
    writers = [place.open().session("w") for _ in range(5)]
    for n, writer in enumerate(writers):
        writer.history.append(n)
        writer.save(on_conflict="fork")
    assert [writer.name for writer in writers] == ["w", "w+1", "w+2", "w+3", "w+4"]
    for n, writer in enumerate(writers):
        assert place.open().session(writer.name).history == ["start", n]


def test_a_fork_name_that_was_used_once_is_not_used_again(
    two: tuple[Session, Session], store: Store
) -> None:
    first, second = two
    store.delete(first.fork("w+1").name)
    saved(store, "w", "first's")
    second.history.append("second's")
    second.save(on_conflict="fork")
    assert second.name == "w+2"


def test_a_fork_name_taken_at_the_last_moment_is_passed_over(
    two: tuple[Session, Session], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    saved(store, "w", "first's")
    first.fork("w+1")
    monkeypatch.setattr(Store, "free_names", lambda self, name: iter(["w+1", "w+1", "w+2"]))
    second.history.extend(["second's", "x" * 100_000])
    second.save(on_conflict="fork")
    assert second.name == "w+2"
    assert store.session("w+2").history == ["start", "second's", "x" * 100_000]


def test_the_name_of_a_fork_stays_within_the_limit(store: Store, place: Place) -> None:
    name = "n" * 200
    saved(store, name, "start")
    late = place.open().session(name)
    saved(store, name, "more")
    late.history.append("late")
    late.save(on_conflict="fork")
    assert late.name == "n" * 198 + "+1"


def test_two_empty_sessions_of_one_name_conflict_too(store: Store, place: Place) -> None:
    first, second = store.session("w"), place.open().session("w")
    first.history.append("first's")
    first.save()
    second.history.append("second's")
    with pytest.raises(RefMoved):
        second.save()
    second.save(on_conflict="fork")
    assert second.name == "w+1"
    assert {info.forked_from for info in store.sessions()} == {None}


def test_saving_the_very_same_turn_twice_is_no_conflict(
    two: tuple[Session, Session], store: Store
) -> None:
    first, second = two
    for writer in two:
        writer.history.append("the same")
        writer.scratchpad["k"] = "v"
    assert first.save("label") == second.save("label")
    assert store.session("w").turn == 2
    for writer in two:
        writer.history.append("again")
    first.save("one label")
    with pytest.raises(RefMoved):
        second.save("another label")


def test_an_unchanged_session_that_was_moved_elsewhere_is_told(
    two: tuple[Session, Session], store: Store
) -> None:
    first, second = two
    first.history.append("first's")
    first.save()
    with pytest.raises(RefMoved):
        second.save()
    assert second.save(on_conflict="fork").turn == 1
    assert [info.name for info in store.sessions()] == ["w"]


@pytest.mark.parametrize("step", ["rewind", "undo", "redo"])
def test_nobody_steps_over_a_turn_that_he_has_not_seen(
    two: tuple[Session, Session], store: Store, step: str
) -> None:
    first, second = two
    first.history.append("first's")
    first.save()
    steps: dict[str, Callable[[], object]] = {
        "rewind": lambda: second.rewind(1),
        "undo": second.undo,
        "redo": second.redo,
    }
    with pytest.raises(RefMoved):
        steps[step]()
    assert store.session("w").turn == 2


def test_nor_do_files_go_back_over_it(store: Store, place: Place, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    first = store.session("w")
    first.worktree = tmp_path
    for text in ("one", "two"):
        file.write_text(text)
        first.save(text)
    second = place.open().session("w")
    file.write_text("three")
    first.save("three")
    with pytest.raises(RefMoved):
        second.rewind(1, files=True)
    assert file.read_text() == "three"
    assert store.session("w").turn == 3


def test_a_session_deleted_under_a_writer_is_a_conflict_that_loses_nothing(
    two: tuple[Session, Session], store: Store
) -> None:
    _, second = two
    store.delete("w")
    second.history.append("second's")
    with pytest.raises(RefMoved) as moved:
        second.save()
    assert moved.value.actual is None
    second.save(on_conflict="fork")
    assert [info.name for info in store.sessions()] == ["w+1"]


def test_on_conflict_knows_two_ways(store: Store) -> None:
    with pytest.raises(InvalidInput):
        store.session("s").save(on_conflict="overwrite")  # type: ignore[arg-type]


@pytest.fixture
def eager_switches() -> Iterator[None]:
    """Threads that take turns as often as the interpreter can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("eager_switches")
def test_threads_share_a_store_and_lose_nothing(place: Place) -> None:
    store = place.open()
    turns, failures = 15, []

    def work(n: int) -> None:
        try:
            own = store.session(f"own{n}")
            for turn in range(turns):
                # The same objects in all threads, so that stages overlap.
                own.history.extend([turn, "same large " * 10_000])
                own.scratchpad.update({str(key): turn for key in range(70)})
                own.save()
                shared = store.session("shared")
                shared.history.append(f"{n}-{turn}")
                shared.save(on_conflict="fork")
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    again = place.open()
    for n in range(6):
        own = again.session(f"own{n}")
        assert (own.turn, own.history[::2]) == (turns, list(range(turns)))
        assert own.scratchpad == {str(key): turns - 1 for key in range(70)}
    lines = [info.name for info in again.sessions() if info.name.startswith("shared")]
    kept = {message for name in lines for message in again.session(name).history}
    assert kept == {f"{n}-{turn}" for n in range(6) for turn in range(turns)}
    assert again.verify() == []
