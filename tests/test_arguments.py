"""What callers give by mistake is refused where it comes in, in words that name it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import snapstore
from snapstore import InvalidInput, Session, Store, UnsupportedValue, arguments
from snapstore.tasks import Phase, Task


@pytest.fixture
def store() -> Store:
    store = snapstore.open("memory://")
    session = store.session("s")
    for n in range(3):
        session.history.append({"role": "user", "content": f"question {n}"})
        session.save()
    return store


@pytest.fixture
def session(store: Store) -> Session:
    return store.session("s")


NOT_TEXT = [None, 3, b"s", ["s"]]
NOT_WHOLE = [None, 1.5, True, float("nan"), b"1", [1]]

TAKE_TEXT: dict[str, Callable[[Store, Any], object]] = {
    "session": lambda store, given: store.session(given),
    "exists": lambda store, given: store.exists(given),
    "delete": lambda store, given: store.delete(given),
    "rename": lambda store, given: store.rename(given, "other"),
    "rename to": lambda store, given: store.rename("s", given),
    "undo": lambda store, given: store.undo(given),
    "redo": lambda store, given: store.redo(given),
    "switch": lambda store, given: store.switch(given),
    "tag": lambda store, given: store.tag(given, store.resolve("s")),
    "untag": lambda store, given: store.untag(given),
    "resolve": lambda store, given: store.resolve(given),
    "diff": lambda store, given: store.diff("s", given),
    "fork": lambda store, given: store.session("s").fork(given),
    "run_task": lambda store, given: store.run_task(given, []),
}

TAKE_WHOLE: dict[str, Callable[[Session, Any], object]] = {
    "rewind": lambda session, given: session.rewind(given),
    "at": lambda session, given: session.at(given),
    "restore": lambda session, given: session.restore(given),
    "undo": lambda session, given: session.undo(given),
    "redo": lambda session, given: session.redo(given),
    "trim": lambda session, given: session.trim(given),
    "compact": lambda session, given: session.compact("so far", keep=given),
    "summary": lambda session, given: session.scratchpad.summary(given),
}


@pytest.mark.parametrize("given", NOT_TEXT, ids=repr)
@pytest.mark.parametrize("call", TAKE_TEXT.values(), ids=TAKE_TEXT)
def test_what_is_no_text(store: Store, call: Callable[[Store, Any], object], given: Any) -> None:
    with pytest.raises(InvalidInput, match="is text, not"):
        call(store, given)


@pytest.mark.parametrize("given", NOT_WHOLE, ids=repr)
@pytest.mark.parametrize("call", TAKE_WHOLE.values(), ids=TAKE_WHOLE)
def test_what_is_no_whole_number(
    session: Session, call: Callable[[Session, Any], object], given: Any
) -> None:
    with pytest.raises(InvalidInput, match="is a whole number, not"):
        call(session, given)


def test_whole_numbers_of_other_types_are_taken(session: Session) -> None:
    class Two:
        def __index__(self) -> int:
            return 2

    assert session.rewind(Two()).turn == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, "s", 3], ids=repr)
def test_what_is_no_snapshot(store: Store, given: Any) -> None:
    with pytest.raises(InvalidInput, match="Snapshot"):
        store.fork(given, "other")
    with pytest.raises(InvalidInput, match="Snapshot"):
        store.tag("good", given)


@pytest.mark.parametrize("given", [None, 3, "no hex"], ids=repr)
def test_what_is_no_id(store: Store, given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"an id is text|is no id"):
        store.snapshot(given)


@pytest.mark.parametrize("given", [None, 3, b"s", "", "a\0b"], ids=repr)
def test_what_is_no_path(session: Session, given: Any) -> None:
    with pytest.raises(InvalidInput, match="is a path"):
        snapstore.open(given)
    if given is not None:  # which ends the captures
        with pytest.raises(InvalidInput, match="is a path"):
            session.worktree = given


def test_paths_of_every_kind_are_taken(tmp_path: Path) -> None:
    assert arguments.place(tmp_path, "a worktree") == str(tmp_path)
    assert arguments.place("s3://bucket/x", "the place of a store") == "s3://bucket/x"


@pytest.mark.parametrize("given", [None, 3, "text", b"bytes", {"role": "user"}], ids=repr)
def test_a_history_that_is_no_list_of_messages(session: Session, given: Any) -> None:
    before = list(session.history)
    with pytest.raises(UnsupportedValue, match="not a list of messages"):
        session.history = given
    with pytest.raises(UnsupportedValue, match="not a list of messages"):
        session.history.extend(given)
    assert session.history == before


@pytest.mark.parametrize("given", [None, 3, ["a"]], ids=repr)
def test_a_scratchpad_that_is_no_mapping(session: Session, given: Any) -> None:
    with pytest.raises(UnsupportedValue, match="not a dict"):
        session.scratchpad = given


@pytest.mark.parametrize("given", [None, 3, ["a"]], ids=repr)
def test_a_summary_that_is_no_message(session: Session, given: Any) -> None:
    with pytest.raises(UnsupportedValue, match="neither text nor a message"):
        session.compact(given)
    assert len(session.history) == 3


@pytest.mark.parametrize("given", ["a", None, 1.5], ids=repr)
def test_an_index_that_is_none_is_an_error_as_of_a_list(session: Session, given: Any) -> None:
    with pytest.raises(TypeError, match="integer"):
        session.history[given]
    with pytest.raises(TypeError, match="integer"):
        session.history.insert(given, "x")
    with pytest.raises(TypeError, match="integer"):
        session.log()[given]


@pytest.mark.parametrize("given", ["x", -0.1, 1.1, float("nan"), None], ids=repr)
def test_a_share_that_is_none(store: Store, given: Any) -> None:
    with pytest.raises(InvalidInput, match="share"):
        store.verify(share=given)


def test_a_grace_time_that_is_none(store: Store) -> None:
    with pytest.raises(InvalidInput, match="timedelta"):
        store.gc(grace=90)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, 3, "text", [3], ["ab"], [("a",)]], ids=repr)
def test_phases_that_are_none(store: Store, given: Any) -> None:
    with pytest.raises(InvalidInput, match="phase"):
        store.run_task("release", given)


@pytest.mark.parametrize(
    "options",
    [{"retries": "2"}, {"retries": 1.5}, {"backoff": None}, {"timeout": "5 s"}],
    ids=repr,
)
def test_options_of_a_phase_that_are_no_numbers(store: Store, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"{next(iter(options))} is a"):
        store.run_task("release", [Phase("build", lambda: None, **options)])


@pytest.mark.parametrize("given", ["agents", None], ids=repr)
def test_what_is_no_store(given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"snapstore\.open"):
        Task("release").run(given)
