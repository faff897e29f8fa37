"""The session of the OpenAI Agents SDK: its protocol, and going back and forth."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents.memory.session", reason="openai-agents is not installed")

from agents.memory import Session, SessionSettings

import snapstore
from snapstore import Corrupt, InvalidInput, NotFound, Refused, SnapstoreError
from snapstore.engine import Kind, Obj
from snapstore.errors import ObjectMissing
from snapstore.integrations.openai_agents import SnapstoreSession


def run(awaited: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(awaited)


def asked(text: str) -> Any:
    return {"role": "user", "content": text}


def said(text: str) -> Any:
    return {"role": "assistant", "content": text}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def session(place: Path) -> Iterator[SnapstoreSession]:
    opened = SnapstoreSession("chat", place)
    yield opened
    opened.close()


def test_it_is_a_session(session: SnapstoreSession) -> None:
    assert isinstance(session, Session)


def test_items_come_back_in_order(session: SnapstoreSession) -> None:
    run(session.add_items([asked("hi"), said("hello")]))
    run(session.add_items([asked("bye")]))
    assert run(session.get_items()) == [asked("hi"), said("hello"), asked("bye")]


def test_what_comes_back_is_the_callers_own(session: SnapstoreSession) -> None:
    item = asked("hi")
    run(session.add_items([item]))
    item["content"] = "changed"
    run(session.get_items())[0]["content"] = "changed too"
    assert run(session.get_items()) == [asked("hi")]


@pytest.mark.parametrize(
    ("explicit", "setting", "expected"),
    [(None, None, "0123"), (2, None, "23"), (None, 3, "123"), (1, 3, "3"), (0, 3, ""),
     (-1, 2, "0123"), (9, 1, "0123"), (None, 0, ""), (None, -1, "0123")],
)  # fmt: skip
def test_an_explicit_limit_goes_before_that_of_the_settings(
    place: Path, explicit: int | None, setting: int | None, expected: str
) -> None:
    session = SnapstoreSession("chat", place, session_settings=SessionSettings(limit=setting))
    run(session.add_items([asked(n) for n in "0123"]))
    assert "".join(item["content"] for item in run(session.get_items(explicit))) == expected
    session.close()


def test_a_batch_with_a_bad_item_adds_nothing(session: SnapstoreSession) -> None:
    with pytest.raises(InvalidInput):
        run(session.add_items([asked("good"), {"role": "user", "content": float("nan")}]))
    with pytest.raises(TypeError):
        run(session.add_items([asked("good"), {"role": "user", "content": object()}]))  # type: ignore[typeddict-item]
    assert run(session.get_items()) == []


def test_pop_takes_the_last(session: SnapstoreSession) -> None:
    assert run(session.pop_item()) is None
    run(session.add_items([asked("hi"), said("hello")]))
    assert run(session.pop_item()) == said("hello")
    assert run(session.get_items()) == [asked("hi")]


def test_nothing_that_was_popped_or_cleared_is_lost(session: SnapstoreSession, place: Path) -> None:
    run(session.add_items([asked("hi"), said("hello")]))
    run(session.pop_item())
    run(session.clear_session())
    assert run(session.get_items()) == []
    with snapstore.open(place) as store:
        store.session("chat").undo(2)
    assert run(session.get_items()) == [asked("hi"), said("hello")]


def test_nothing_new_is_no_turn(session: SnapstoreSession, place: Path) -> None:
    run(session.clear_session())
    run(session.add_items([]))
    with snapstore.open(place) as store:
        assert store.sessions() == []


def test_every_method_of_a_closed_session_is_an_error(place: Path) -> None:
    session = SnapstoreSession("chat", place)
    session.close()
    session.close()
    for call in (
        lambda: session.add_items([]),
        lambda: session.add_items([asked("hi")]),
        session.get_items,
        session.pop_item,
        session.clear_session,
        session.turns,
        lambda: session.rewind(0),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            run(call())


def test_a_store_that_was_given_stays_open(place: Path) -> None:
    with snapstore.open(place) as store:
        session = SnapstoreSession("chat", store)
        run(session.add_items([asked("hi")]))
        session.close()
        assert len(store.session("chat").history) == 1


def test_a_mutation_whose_caller_is_cancelled_is_done(session: SnapstoreSession) -> None:
    begun, go_on = threading.Event(), threading.Event()
    change = session._change

    def slow(*given: Any) -> None:
        begun.set()
        assert go_on.wait(5)
        change(*given)

    session._change = slow  # type: ignore[method-assign]

    async def cancelled() -> None:
        adding = asyncio.create_task(session.add_items([asked("hi")]))
        await asyncio.to_thread(begun.wait, 5)
        adding.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await adding

    run(cancelled())
    assert run(session.get_items()) == [asked("hi")]


@pytest.mark.parametrize("damage", [Corrupt("an item is damaged"), ObjectMissing(b"it" * 16)])
def test_damaged_items_hide_no_others(
    place: Path, monkeypatch: pytest.MonkeyPatch, damage: SnapstoreError
) -> None:
    with snapstore.open(place, durable=False) as store:
        session = SnapstoreSession("chat", store)
        run(session.add_items([asked("one"), said("damaged"), said("two"), said("three")]))
        read, read_many = store.engine.read, store.engine.read_many

        def checked(found: Obj) -> Obj:
            if b"damaged" in found.payload:
                raise damage
            return found

        monkeypatch.setattr(store.engine, "read", lambda i: checked(read(i)))
        monkeypatch.setattr(store.engine, "read_many", lambda i: [*map(checked, read_many(i))])
        assert run(session.get_items()) == [asked("one"), said("two"), said("three")]
        assert run(session.get_items(3)) == [asked("one"), said("two"), said("three")]
        assert run(session.get_items(1)) == [said("three")]
        assert [(t.content, t.items) for t in run(session.turns())] == [("one", 4)]
        assert len(run(run(session.fork("other", at=1)).get_items())) == 3
        popped = [run(session.pop_item()) for _ in range(4)]
        assert popped == [said("three"), said("two"), asked("one"), None]


def test_what_is_added_is_kept_without_reading_what_was_said_before(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with snapstore.open(place, durable=False) as store:
        session = SnapstoreSession("chat", store)
        for n in range(20):
            run(session.add_items([asked(f"question {n}"), said("answer")]))
        read: list[Obj] = []
        one, many = store.engine.read, store.engine.read_many
        monkeypatch.setattr(store.engine, "read", lambda i: read.append(one(i)) or read[-1])
        monkeypatch.setattr(
            store.engine, "read_many", lambda ids: read.extend(many(ids)) or many(ids)
        )
        run(session.add_items([said("and")]))
        run(session.add_items([asked("why?"), said("so")]))
        assert [found for found in read if found.kind == Kind.CONTENT] == []
        labels = [turn.label for turn in store.session("chat").log()]
        assert labels[:3] == ["why?", "question 19", "question 19"]


def test_writers_at_once_lose_nothing(place: Path) -> None:
    sessions = [SnapstoreSession("chat", place) for _ in range(4)]

    async def together() -> None:
        await asyncio.gather(
            *(s.add_items([asked(f"{at}.{n}")]) for at, s in enumerate(sessions) for n in range(5))
        )

    run(together())
    kept = {item["content"] for item in run(sessions[0].get_items())}
    assert kept == {f"{at}.{n}" for at in range(4) for n in range(5)}
    for session in sessions:
        session.close()


# --- going back and forth ----------------------------------------------------------------------

TOOL_ROUND: list[Any] = [
    {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "1", "output": "seen"},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
]


@pytest.fixture
def talked(session: SnapstoreSession) -> SnapstoreSession:
    run(session.add_items([asked("one"), *TOOL_ROUND, said("1")]))
    run(session.add_items([asked("two")]))
    run(session.add_items([said("2")]))
    run(session.add_items([asked("three"), said("3")]))
    return session


def test_a_turn_begins_with_the_user_not_with_a_tool(talked: SnapstoreSession) -> None:
    turns = run(talked.turns())
    assert [(t.number, t.content, t.items) for t in turns] == [
        (1, "one", 5),
        (2, "two", 2),
        (3, "three", 2),
    ]


def test_rewind_goes_back_to_the_end_of_a_turn(talked: SnapstoreSession) -> None:
    run(talked.rewind(2))
    assert run(talked.get_items())[-1] == said("2")
    run(talked.rewind(0))
    assert run(talked.get_items()) == []
    with pytest.raises(NotFound):
        run(talked.rewind(1))


def test_rewind_to_where_a_save_ended_is_a_move_of_the_ref(
    talked: SnapstoreSession, place: Path
) -> None:
    run(talked.rewind(1))
    with snapstore.open(place) as store:
        assert store.session("chat").turn == 1
        store.session("chat").undo()
    assert len(run(talked.turns())) == 3


def test_rewind_goes_into_a_batch(session: SnapstoreSession) -> None:
    run(session.add_items([asked("one"), said("1"), asked("two"), said("2")]))
    run(session.rewind(1))
    assert run(session.get_items()) == [asked("one"), said("1")]


def test_a_fork_goes_its_own_way(talked: SnapstoreSession) -> None:
    other = run(talked.fork("shorter", at=1))
    run(other.add_items([asked("instead")]))
    assert [t.content for t in run(other.turns())] == ["one", "instead"]
    assert [t.content for t in run(talked.turns())] == ["one", "two", "three"]
    assert (other.branch, talked.branch) == ("shorter", "main")
    with pytest.raises(Refused):
        run(talked.fork("shorter"))
    with pytest.raises(Refused):
        run(talked.fork("main"))


def test_the_branch_one_is_on_survives_a_reopening(talked: SnapstoreSession, place: Path) -> None:
    run(talked.fork("other", at=1))
    run(talked.switch("other"))
    run(talked.add_items([asked("instead")]))
    again = SnapstoreSession("chat", place)
    assert again.branch == "other"
    assert [t.content for t in run(again.turns())] == ["one", "instead"]
    run(again.switch("main"))
    assert [t.content for t in run(again.turns())] == ["one", "two", "three"]
    with pytest.raises(NotFound):
        run(again.switch("nowhere"))
    again.close()


def test_a_fork_before_the_first_turn_is_empty(talked: SnapstoreSession) -> None:
    other = run(talked.fork("empty", at=0))
    assert run(other.get_items()) == []


def test_turns_are_called_by_their_question(talked: SnapstoreSession, place: Path) -> None:
    with snapstore.open(place) as store:
        assert [turn.label for turn in store.session("chat").log()] == [
            "three",
            "two",
            "two",
            "one",
        ]
        assert [problem for problem in store.verify() if not problem.harmless] == []
