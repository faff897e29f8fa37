"""What Pydantic AI asks of a ConversationStore: on its own in memory, and on ours."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai.conversation_store", reason="pydantic-ai is not installed")

from pydantic_ai import Agent, UserError
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

import snapstore
from snapstore.integrations.pydantic_ai import SnapstoreConversationStore

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
"""Messages are equal when their times are; the default is the time at which one is made."""


@pytest.fixture(params=["in memory", "snapstore"])
def conversations(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ConversationStore]:
    if request.param == "in memory":
        yield InMemoryConversationStore()
        return
    with snapstore.open(tmp_path / "store", durable=False) as store:
        yield SnapstoreConversationStore(store)


def run(awaited: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(awaited)


def asked(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(text, timestamp=NOON)])


def said(text: str) -> ModelMessage:
    return ModelResponse(parts=[TextPart(text)], timestamp=NOON)


def conversation(name: str, *messages: ModelMessage) -> Conversation:
    return Conversation(conversation_id=name, messages=list(messages))


def test_what_was_saved_is_loaded(conversations: ConversationStore) -> None:
    page = BinaryContent(b"\x00\xff", media_type="application/pdf")
    whole = [
        asked("look at this"),
        ModelResponse(parts=[ToolCallPart("look", {"at": "a.png", "zoom": 1.5}, "call-1")]),
        ModelRequest(parts=[ToolReturnPart("look", {"seen": [1, None, "é"]}, "call-1")]),
        ModelRequest(parts=[UserPromptPart(["a page", page])]),
        said("a cat"),
    ]  # fmt: skip
    saved = Conversation(
        conversation_id="c", messages=list(whole), usage=RunUsage(requests=2, input_tokens=70)
    )
    run(conversations.save(saved, scope="ada"))
    loaded = run(conversations.load("c"))
    assert loaded.messages == whole
    assert loaded.usage == saved.usage
    assert loaded.revision == saved.revision


def test_a_conversation_that_was_never_saved_is_none(conversations: ConversationStore) -> None:
    assert run(conversations.load("nobody")) is None
    assert run(conversations.read_record("nobody")) is None
    with pytest.raises(LookupError):
        run(conversations.read_entry("nothing"))


def test_the_last_messages_are_loaded_with_a_limit(conversations: ConversationStore) -> None:
    run(conversations.save(conversation("c", *[asked(str(n)) for n in range(10)])))
    assert run(conversations.load("c", limit=3)).messages == [asked("7"), asked("8"), asked("9")]
    assert run(conversations.load("c", limit=0)).messages == []


def test_a_save_stores_only_what_is_new(conversations: ConversationStore) -> None:
    going_on = conversation("c", asked("one"), said("1"))
    first = run(conversations.save(going_on))
    going_on.messages += [asked("two"), said("2")]
    second = run(conversations.save(going_on))
    assert [entry.message for entry in second] == [asked("two"), said("2")]
    assert second[0].parent_id == first[-1].id
    assert run(conversations.save(going_on)) == []


def test_the_same_message_twice_is_two_entries(conversations: ConversationStore) -> None:
    run(conversations.save(conversation("c", asked("again"), asked("again"))))
    entries = run(conversations.load_entries("c"))
    assert len({entry.id for entry in entries}) == 2
    assert run(conversations.read_entry(entries[1].id)) == entries[1]


def test_who_loaded_before_another_saved_gets_a_conflict(conversations: ConversationStore) -> None:
    run(conversations.save(conversation("c", asked("one"))))
    mine, theirs = run(conversations.load("c")), run(conversations.load("c"))
    theirs.messages.append(said("theirs"))
    run(conversations.save(theirs))
    mine.messages.append(said("mine"))
    with pytest.raises(ConversationConflict):
        run(conversations.save(mine))
    assert run(conversations.load("c")).messages == [asked("one"), said("theirs")]


def test_a_name_that_is_taken_is_a_conflict(conversations: ConversationStore) -> None:
    run(conversations.save(conversation("c", asked("one"))))
    with pytest.raises(ConversationConflict):
        run(conversations.save(conversation("c", asked("other"))))


def test_a_conversation_made_again_is_another_one(conversations: ConversationStore) -> None:
    run(conversations.save(conversation("c", asked("one"))))
    before = run(conversations.load("c"))
    run(conversations.delete("c"))
    run(conversations.save(conversation("c", asked("new"))))
    with pytest.raises(ConversationConflict):
        run(conversations.save(before))


def test_a_branch_keeps_what_it_leaves(conversations: ConversationStore) -> None:
    run(conversations.save(conversation("c", asked("q"), said("bad"))))
    left = run(conversations.load_entries("c"))[-1]
    revision = run(conversations.load("c")).revision
    again = run(conversations.branch("c", at=1, expected_revision=revision))
    again.messages.append(said("good"))
    run(conversations.save(again))
    assert run(conversations.load("c")).messages == [asked("q"), said("good")]
    record = run(conversations.read_record("c"))
    assert record.branches == [left.id]
    back = run(conversations.branch("c", from_entry=left.id, expected_revision=record.revision))
    assert back.messages == [asked("q"), said("bad")]


def test_a_rewritten_history_becomes_a_branch(conversations: ConversationStore) -> None:
    run(conversations.save(conversation("c", asked("a"), said("b"), asked("c"))))
    record = run(conversations.read_record("c"))
    rewritten = Conversation(
        conversation_id="c", messages=[asked("a"), said("summary")], revision=record.revision
    )
    run(conversations.save(rewritten))
    assert run(conversations.load("c")).messages == [asked("a"), said("summary")]
    assert run(conversations.read_record("c")).branches == [record.head_id]


def test_a_fork_shares_the_entries(conversations: ConversationStore) -> None:
    run(conversations.save(conversation("c", asked("q"), said("a"), asked("more")), scope="ada"))
    forked = run(conversations.fork("c", at=2, new_conversation_id="d"))
    forked.messages.append(said("another way"))
    run(conversations.save(forked))
    source, fork = run(conversations.load_entries("c")), run(conversations.load_entries("d"))
    assert fork[:2] == source[:2]
    assert [entry.message for entry in source] == [asked("q"), said("a"), asked("more")]
    record = run(conversations.read_record("d"))
    assert (record.forked_from, record.forked_at, record.scope) == ("c", source[1].id, "ada")


def test_a_fork_outlives_what_it_was_forked_from(conversations: ConversationStore) -> None:
    run(conversations.save(conversation("c", asked("q"), said("a"))))
    run(conversations.fork("c", at=1, new_conversation_id="d"))
    gone = run(conversations.load_entries("c"))[1]
    run(conversations.delete("c"))
    assert run(conversations.load("c")) is None
    assert run(conversations.load("d")).messages == [asked("q")]
    with pytest.raises(LookupError):
        run(conversations.read_entry(gone.id))


def test_nothing_can_go_on_from_an_entry_that_is_gone(conversations: ConversationStore) -> None:
    record = ConversationRecord(conversation_id="c", head_id="gone")
    with pytest.raises(ConversationConflict):
        run(conversations.write_record(record, expected_revision=None))
    entry = ConversationEntry(parent_id=None, message=asked("q"))
    record = ConversationRecord(conversation_id="c", head_id=entry.id)
    run(conversations.write_record(record, new_entries=[entry], expected_revision=None))
    assert run(conversations.read_history(entry.id)) == [entry]


def test_conversations_are_listed_by_scope_last_saved_first(
    conversations: ConversationStore,
) -> None:
    for name, scope in (("a", "ada"), ("b", "bob"), ("c", "ada")):
        run(conversations.save(conversation(name, asked(name)), scope=scope))
    going_on = run(conversations.load("a"))
    going_on.messages.append(said("more"))
    run(conversations.save(going_on))
    names = [r.conversation_id for r in run(conversations.list_conversations(scope="ada"))]
    assert names == ["a", "c"]
    assert [r.conversation_id for r in run(conversations.list_conversations(limit=1))] == ["a"]
    with pytest.raises(UserError):
        run(conversations.list_conversations(limit=-1))


def test_what_is_changed_after_a_save_is_not_changed_in_the_store(
    conversations: ConversationStore,
) -> None:
    mine = conversation("c", asked("q"))
    run(conversations.save(mine))
    mine.messages.clear()
    run(conversations.load("c")).messages.clear()
    assert run(conversations.load("c")).messages == [asked("q")]


def test_an_agent_goes_on_where_it_was(conversations: ConversationStore) -> None:
    agent = Agent(TestModel(custom_output_text="fine"))

    async def turn(prompt: str) -> None:
        at = await conversations.load("c") or Conversation(conversation_id="c")
        await conversations.save(await agent.run(prompt, conversation=at))

    run(turn("how are you?"))
    run(turn("and now?"))
    loaded = run(conversations.load("c"))
    assert len(loaded.messages) == 4
    assert loaded.usage.requests == 2


# --- what only a snapstore can do --------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[snapstore.Store]:
    with snapstore.open(tmp_path / "store", durable=False) as opened:
        yield opened


def test_any_id_can_name_a_conversation(store: snapstore.Store) -> None:
    conversations = SnapstoreConversationStore(store)
    names = ["user:7/chat 1", "thread/x", "…", "a" * 500, "+41", ""]
    for name in names:
        run(conversations.save(conversation(name, asked(name))))
    again = SnapstoreConversationStore(store)
    assert [run(again.load(name)).messages for name in names] == [[asked(n)] for n in names]
    assert {r.conversation_id for r in run(again.list_conversations())} == set(names)


def test_another_object_sees_what_was_saved(store: snapstore.Store) -> None:
    first, second = SnapstoreConversationStore(store), SnapstoreConversationStore(store)
    run(first.save(conversation("c", asked("q"))))
    going_on = run(second.load("c"))
    going_on.messages.append(said("a"))
    run(second.save(going_on))
    assert run(first.load("c")).messages == [asked("q"), said("a")]


def test_other_conversations_are_not_looked_at(
    store: snapstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        run(SnapstoreConversationStore(store).save(conversation(name, asked(name))))

    def tips(prefix: str = "") -> Any:
        raise AssertionError("all refs were asked for")

    monkeypatch.setattr(store.engine, "tips", tips)
    conversations = SnapstoreConversationStore(store)
    going_on = run(conversations.load("b"))
    going_on.messages.append(said("1"))
    entry = run(conversations.save(going_on))[0]
    assert run(conversations.read_entry(entry.id)) == entry
    forked = run(conversations.fork("b", at=1, new_conversation_id="d"))
    assert run(conversations.load("d")).messages == forked.messages == [asked("b")]


def test_an_entry_is_found_wherever_it_is(store: snapstore.Store) -> None:
    first, second = SnapstoreConversationStore(store), SnapstoreConversationStore(store)
    entry = run(first.save(conversation("c", asked("q"))))[0]
    assert run(second.read_entry(entry.id)) == entry
    store.rename("c", "d")
    assert run(second.read_entry(entry.id)) == entry
    store.delete("d")
    with pytest.raises(LookupError):
        run(second.read_entry(entry.id))


def test_a_rewound_session_is_the_conversation_of_then(store: snapstore.Store) -> None:
    conversations = SnapstoreConversationStore(store)
    going_on = conversation("c", asked("one"))
    run(conversations.save(going_on))
    going_on.messages.append(said("1"))
    run(conversations.save(going_on))
    store.session("c").rewind(1)
    with pytest.raises(ConversationConflict):
        run(conversations.save(going_on))
    assert run(conversations.load("c")).messages == [asked("one")]


def test_a_fork_of_the_session_is_a_conversation(store: snapstore.Store) -> None:
    conversations = SnapstoreConversationStore(store)
    run(conversations.save(conversation("c", asked("one"), said("1"))))
    store.session("c").fork("d")
    other = run(conversations.load("d"))
    other.messages.append(asked("two"))
    run(conversations.save(other))
    assert len(run(conversations.load("d")).messages) == 3
    assert len(run(conversations.load("c")).messages) == 2


def test_turns_show_who_said_what(store: snapstore.Store) -> None:
    run(SnapstoreConversationStore(store).save(conversation("c", asked("why?"), said("because"))))
    head = store.session("c").head
    assert head is not None
    shown = [(message["role"], message["content"]) for message in head.history]
    assert shown == [("user", "why?"), ("assistant", "because")]
    assert head.label == "why?"


def test_a_store_with_conversations_verifies(store: snapstore.Store) -> None:
    conversations = SnapstoreConversationStore(store)
    run(conversations.save(conversation("c", asked("q"), said("a"))))
    run(conversations.fork("c", at=1, new_conversation_id="d"))
    assert store.verify() == []


def test_a_path_is_no_store() -> None:
    with pytest.raises(snapstore.InvalidInput, match=r"snapstore\.open"):
        SnapstoreConversationStore("agents")  # type: ignore[arg-type]
