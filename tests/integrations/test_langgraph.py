"""The LangGraph saver: what its conformance suite does not ask, and that threads are sessions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph", reason="langgraph is not installed")

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages

import snapstore
from snapstore.integrations.langgraph import SnapstoreSaver
from snapstore.integrations.langgraph.index import PAGE_TURNS

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[snapstore.Store]:
    with snapstore.open(tmp_path / "store", durable=False) as opened:
        yield opened


@pytest.fixture
def saver(store: snapstore.Store) -> SnapstoreSaver:
    return SnapstoreSaver(store)


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    count: int


def graph_on(saver: Any, schema: Any = State) -> Any:
    """A graph that answers the last message, and counts."""

    def answer(state: Any) -> Any:
        last = state["messages"][-1].content
        return {"messages": [AIMessage("re: " + last)], "count": state.get("count", 0) + 1}

    builder = StateGraph(schema)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver)


def ask(graph: Any, text: str, config: Any = CONFIG) -> list[str]:
    found = graph.invoke({"messages": [HumanMessage(text)]}, config)
    return [message.content for message in found["messages"]]


def at(thread: Any = "t", checkpoint: str | None = None, namespace: str = "") -> Any:
    place = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": {**place, **({"checkpoint_id": checkpoint} if checkpoint else {})}}


def checkpoint(name: str, values: dict[str, Any] | None = None) -> Checkpoint:
    held = values or {}
    made = empty_checkpoint()
    made.update(id=name, channel_values=held, channel_versions=dict.fromkeys(held, 1))
    return made


def put(saver: SnapstoreSaver, config: Any, name: str, **values: Any) -> Any:
    return saver.put(config, checkpoint(name, values), {}, dict.fromkeys(values, 1))


def names(saver: SnapstoreSaver, config: Any, **choice: Any) -> list[str]:
    return [found.checkpoint["id"] for found in saver.list(config, **choice)]


# --- a graph -----------------------------------------------------------------------------------


def test_a_graph_goes_on_where_it_was_after_a_restart(tmp_path: Path) -> None:
    where = str(tmp_path / "store")
    with SnapstoreSaver.from_conn_string(where) as saver:
        ask(graph_on(saver), "one")
    with SnapstoreSaver.from_conn_string(where) as saver:
        assert ask(graph_on(saver), "two") == ["one", "re: one", "two", "re: two"]


def test_one_saver_serves_sync_and_async_graphs() -> None:
    async def talk() -> list[str]:
        async with SnapstoreSaver.from_conn_string(":memory:") as saver:
            graph = graph_on(saver)
            ask(graph, "one")
            found = await graph.ainvoke({"messages": [HumanMessage("two")]}, CONFIG)
            return [message.content for message in found["messages"]]

    assert asyncio.run(talk()) == ["one", "re: one", "two", "re: two"]


def test_a_graph_sees_the_same_as_in_memory(saver: SnapstoreSaver) -> None:
    def told(kept: Any) -> list[Any]:
        graph = graph_on(kept)
        for n in range(3):
            ask(graph, str(n))
        history = list(graph.get_state_history(CONFIG))
        early = history[4].config
        graph.update_state(early, {"count": 70})
        ask(graph, "fork", early)
        return [
            (s.metadata, s.next, s.values.get("count"), len(s.values.get("messages", [])))
            for s in graph.get_state_history(CONFIG)
        ]

    assert told(saver) == told(InMemorySaver())


def test_encrypted_threads_show_nothing(store: snapstore.Store) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    graph = graph_on(SnapstoreSaver(store, serde=serde))
    ask(graph, "my secret")
    assert ask(graph, "again")[0] == "my secret"
    head = store.session("t").head
    assert head is not None
    assert (list(head.history), dict(head.scratchpad)) == ([], {})
    kept = [store.engine.read(i).payload for i, _ in store.engine.ids(b"", 0)]
    assert not any(b"secret" in payload for payload in kept)


# --- a thread is a session ---------------------------------------------------------------------


def test_turns_show_messages_and_state(saver: SnapstoreSaver, store: snapstore.Store) -> None:
    graph = graph_on(saver)
    ask(graph, "one")
    ask(graph, "two")
    head = store.session("t").head
    assert head is not None
    assert [(m["role"], m["content"]) for m in head.history] == [
        ("user", "one"), ("assistant", "re: one"), ("user", "two"), ("assistant", "re: two"),
    ]  # fmt: skip
    assert dict(head.scratchpad) == {"count": 2}
    assert [turn.label for turn in store.session("t").log()][:3] == ["loop 4", "loop 3", "input 2"]
    assert store.verify() == []


def test_tool_calls_are_shown_as_such(saver: SnapstoreSaver, store: snapstore.Store) -> None:
    call = {"name": "look", "args": {"at": 1}, "id": "c1", "type": "tool_call"}
    message = AIMessage("", tool_calls=[call])
    put(saver, at(), "1", messages=[HumanMessage("see?"), message])
    assert [c["name"] for c in store.session("t").pending_tool_calls] == ["look"]


def test_a_rewound_session_is_the_thread_of_then(
    saver: SnapstoreSaver, store: snapstore.Store
) -> None:
    graph = graph_on(saver)
    ask(graph, "one")
    turn = store.session("t").turn
    ask(graph, "two")
    store.session("t").rewind(turn)
    assert ask(graph, "three") == ["one", "re: one", "three", "re: three"]
    store.session("t").undo(9, force=True)


def test_a_fork_of_a_session_is_a_thread_that_goes_on(
    saver: SnapstoreSaver, store: snapstore.Store
) -> None:
    graph = graph_on(saver)
    ask(graph, "one")
    turn = store.session("t").turn
    ask(graph, "two")
    store.session("t").fork("other", at=turn)
    assert ask(graph, "else", at("other")) == ["one", "re: one", "else", "re: else"]
    diff = store.diff("t", "other")
    assert diff.base is not None
    assert diff.base.turn == turn
    assert store.verify() == []


def test_a_deleted_thread_comes_back_with_undo(
    saver: SnapstoreSaver, store: snapstore.Store
) -> None:
    ask(graph_on(saver), "one")
    saver.delete_thread("t")
    assert saver.get_tuple(CONFIG) is None
    store.undo("t")
    assert ask(graph_on(saver), "two")[0] == "one"


def test_turns_that_were_saved_by_other_means_are_passed_over(
    saver: SnapstoreSaver, store: snapstore.Store
) -> None:
    session = store.session("t")
    session.history.append({"role": "user", "content": "before"})
    session.save()
    saver.put_writes(at(checkpoint="1"), [("c", "early")], "task")
    put(saver, at(), "1", c="kept")
    session.reload()
    session.scratchpad["note"] = "between"
    session.save()
    put(saver, at(checkpoint="1"), "2", c="later")
    found = saver.get_tuple(at(checkpoint="1"))
    assert found is not None
    assert found.pending_writes == [("task", "c", "early")]
    assert names(saver, at()) == ["2", "1"]


@pytest.mark.parametrize("thread", [7, "user:1", "a b", "…", "x" * 400, "thread/1"])
def test_any_thread_id_is_kept(saver: SnapstoreSaver, thread: Any) -> None:
    put(saver, at(thread), "1")
    found = saver.get_tuple(at(thread))
    assert found is not None
    assert found.config["configurable"]["thread_id"] == thread
    everything = [t.config["configurable"]["thread_id"] for t in saver.list(None)]
    assert everything == [str(thread)]


# --- what the contract says and no suite asks ---------------------------------------------------

VALUES: list[Any] = [
    None, True, 2**64 - 1, 1.5, "text", b"bytes", bytearray(b"array"), [], {}, "x" * 100_000,
    [1] * 5000, b"\x00" * 100_000, {"nested": {"list": [{"a": 1}] * 50}}, {1: "int key"},
    [HumanMessage("y" * 300, id=str(n)) for n in range(40)], {"s"}, (1, 2),
]  # fmt: skip


def test_values_of_every_type_come_back(saver: SnapstoreSaver) -> None:
    values = {f"channel {n}": value for n, value in enumerate(VALUES)}
    put(saver, at(), "1", **values)
    saver.put_writes(at(checkpoint="1"), list(values.items()), "task")
    found = saver.get_tuple(at())
    assert found is not None
    serde = JsonPlusSerializer()
    for name, value in values.items():
        expected = serde.loads_typed(serde.dumps_typed(value))
        assert found.checkpoint["channel_values"][name] == expected
        assert ("task", name, expected) in (found.pending_writes or [])


def test_unknown_keys_of_a_checkpoint_are_kept(saver: SnapstoreSaver) -> None:
    made = {**checkpoint("1"), "pending_sends": ["x"], "later": 1}
    saver.put(at(), made, {}, {})  # type: ignore[arg-type]
    found = saver.get(at())
    assert found is not None
    assert found == made


def test_what_comes_back_is_the_callers_own(saver: SnapstoreSaver) -> None:
    put(saver, at(), "1", c=["kept"])
    for _ in range(2):
        found = saver.get_tuple(at())
        assert found is not None
        assert found.checkpoint["channel_values"] == {"c": ["kept"]}
        found.checkpoint["channel_values"]["c"].append("lost")


def test_the_latest_is_the_greatest_id_not_the_last_put(saver: SnapstoreSaver) -> None:
    put(saver, at(), "2")
    put(saver, at(checkpoint="2"), "1")
    assert names(saver, at()) == ["2", "1"]
    found = saver.get_tuple(at())
    assert found is not None
    assert found.checkpoint["id"] == "2"


def test_a_checkpoint_that_is_put_again_is_replaced(saver: SnapstoreSaver) -> None:
    put(saver, at(), "1", c="old")
    saver.put_writes(at(checkpoint="1"), [("c", "w")], "task")
    put(saver, at(checkpoint="0"), "1", c="new")
    (found,) = saver.list(at())
    assert found.checkpoint["channel_values"] == {"c": "new"}
    assert found.parent_config == at(checkpoint="0")
    assert found.pending_writes == [("task", "c", "w")]


def test_the_first_write_stays_and_the_last_special_one(saver: SnapstoreSaver) -> None:
    put(saver, at(), "1")
    for turn in "ab":
        writes = [("c", turn), ("__error__", turn), ("__interrupt__", turn), ("d", turn)]
        saver.put_writes(at(checkpoint="1"), writes, "task")
    found = saver.get_tuple(at())
    assert found is not None
    assert {(channel, value) for _, channel, value in found.pending_writes or []} == {
        ("c", "a"), ("d", "a"), ("__error__", "b"), ("__interrupt__", "b"),
    }  # fmt: skip


def test_pending_writes_come_in_the_order_of_their_paths(saver: SnapstoreSaver) -> None:
    put(saver, at(), "1")
    for task, path in (("a", "2"), ("z", "1"), ("b", "1"), ("c", "")):
        saver.put_writes(at(checkpoint="1"), [("x", 1), ("y", 2)], task, path)
    found = saver.get_tuple(at())
    assert found is not None
    order = [(task, channel) for task, channel, _ in found.pending_writes or []]
    assert order == [(task, c) for task in "cbza" for c in "xy"]


def test_writes_may_come_before_their_checkpoint(saver: SnapstoreSaver) -> None:
    saver.put_writes(at(checkpoint="1"), [("c", "early")], "task")
    assert saver.get_tuple(at()) is None
    put(saver, at(), "1")
    found = saver.get_tuple(at())
    assert found is not None
    assert found.pending_writes == [("task", "c", "early")]


def test_a_circle_of_parents_is_walked_once(saver: SnapstoreSaver) -> None:
    put(saver, at(), "1")
    put(saver, at(checkpoint="1"), "2")
    put(saver, at(checkpoint="2"), "1")
    saver.put_writes(at(checkpoint="1"), [("c", 1)], "task")
    found = saver.get_delta_channel_history(config=at(), channels=["c"])
    assert found["c"]["writes"] == [("task", "c", 1)]
    saver.prune(["t"])
    assert names(saver, at()) == ["2"]


def test_list_takes_everything_at_once_and_holds_no_lock(saver: SnapstoreSaver) -> None:
    for n in range(3):
        put(saver, at(), str(n))
    listing = saver.list(at())
    assert next(listing).checkpoint["id"] == "2"
    done: list[Any] = []
    writer = threading.Thread(target=lambda: done.append(put(saver, at(), "9")))
    writer.start()
    writer.join(5)
    assert done
    assert [found.checkpoint["id"] for found in listing] == ["1", "0"]
    assert names(saver, at(), before=at(checkpoint="2"), limit=1) == ["1"]
    assert names(saver, at(), limit=0) == []


def test_filters_compare_every_key(saver: SnapstoreSaver) -> None:
    for n in range(4):
        metadata: Any = {"step": n, "a.b": n % 2, "nested": {"x": 1}}
        saver.put(at(), checkpoint(str(n)), metadata, {})
    assert names(saver, at(), filter={"a.b": 1, "nested": {"x": 1}}) == ["3", "1"]
    assert names(saver, None, filter={"step": 2}) == ["2"]
    assert names(saver, at(), filter={"nothing": None}) == []


def test_an_unchanged_channel_is_taken_from_the_parent(saver: SnapstoreSaver) -> None:
    first = checkpoint("1", {"big": ["x" * 300] * 10, "gone": 1})
    saver.put(at(), first, {}, {"big": 1, "gone": 1})

    class Refusing(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            assert obj != first["channel_values"]["big"]
            return super().dumps_typed(obj)

    saver.serde = Refusing()
    second = checkpoint("2", {"big": first["channel_values"]["big"]})
    saver.put(at(checkpoint="1"), second, {}, {})
    found = saver.get(at())
    assert found is not None
    assert found["channel_values"] == second["channel_values"]


def test_versions_go_up_from_any_kind(saver: SnapstoreSaver) -> None:
    first = saver.get_next_version(None, None)
    second = saver.get_next_version(first, None)
    assert first < second < saver.get_next_version(7, None)
    assert saver.get_next_version(first, None) != second


def test_a_copy_with_other_types_allowed_shares_the_threads(store: snapstore.Store) -> None:
    saver = SnapstoreSaver(store, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
    put(saver, at(), "1", c=1)
    clone = saver.with_allowlist([("somewhere", "Thing")])
    assert clone is not saver
    assert isinstance(clone, SnapstoreSaver)
    put(clone, at(checkpoint="1"), "2", c=2)
    assert names(saver, at()) == ["2", "1"]


# --- care ----------------------------------------------------------------------------------------


def test_a_copied_thread_is_the_same_line(saver: SnapstoreSaver, store: snapstore.Store) -> None:
    for n in range(5):
        put(saver, at(), str(n), c=n)
    before = store.engine.stats().objects
    saver.copy_thread("t", "u")
    assert store.engine.stats().objects == before
    assert store.session("u").head == store.session("t").head
    put(saver, at("u"), "9")
    assert names(saver, at("t")) == ["4", "3", "2", "1", "0"]
    saver.copy_thread("nobody", "v")
    assert saver.get_tuple(at("v")) is None


def test_a_copy_onto_a_thread_adds_to_it(saver: SnapstoreSaver) -> None:
    put(saver, at("t"), "1", c="of t")
    saver.put_writes(at("t", "1"), [("c", "w")], "task")
    put(saver, at("u"), "2", c="of u")
    saver.copy_thread("t", "u")
    assert names(saver, at("u")) == ["2", "1"]
    found = saver.get_tuple(at("u", "1"))
    assert found is not None
    assert found.checkpoint["channel_values"] == {"c": "of t"}
    assert found.pending_writes == [("task", "c", "w")]


def test_prune_keeps_what_delta_channels_are_rebuilt_from(saver: SnapstoreSaver) -> None:
    class Delta(TypedDict, total=False):
        messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]
        count: int

    graph = graph_on(saver, Delta)
    for n in range(4):
        ask(graph, str(n))
    before = graph.get_state(CONFIG).values
    saver.prune(["t"])
    assert graph.get_state(CONFIG).values == before
    assert len(before["messages"]) == 8
    assert ask(graph, "more")[-1] == "re: more"


def test_prune_leaves_a_line_of_what_is_kept(saver: SnapstoreSaver, store: snapstore.Store) -> None:
    graph = graph_on(saver)
    for n in range(3):
        ask(graph, str(n))
    saver.prune(["t"])
    assert len(store.session("t").log()) == 1
    assert len(ask(graph, "more")) == 8
    store.undo("t", force=True)
    with pytest.raises(TypeError):
        saver.prune("t")
    with pytest.raises(ValueError, match="strategy"):
        saver.prune(["t"], strategy="some")


def test_a_run_is_deleted_from_every_thread(saver: SnapstoreSaver) -> None:
    for thread in ("t", "u"):
        for n, run in enumerate(("a", "b", "a")):
            saver.put(at(thread), checkpoint(str(n)), {"run_id": run}, {})
    saver.delete_for_runs(["a"])
    assert [names(saver, at(thread)) for thread in ("t", "u")] == [["1"], ["1"]]
    saver.delete_for_runs(["b"])
    assert names(saver, None) == []


# --- long threads, and several writers -----------------------------------------------------------


def test_a_long_thread_is_opened_by_its_pages(
    saver: SnapstoreSaver, store: snapstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = at()
    turns = 5 * PAGE_TURNS
    for n in range(turns):
        config = put(saver, config, f"{n:04}", c=n)
        saver.put_writes(config, [("c", n)], "task")
    read: list[bytes] = []
    engine_read = store.engine.read

    def counted(object_id: bytes) -> Any:
        read.append(object_id)
        return engine_read(object_id)

    monkeypatch.setattr(store.engine, "read", counted)
    fresh = SnapstoreSaver(store)
    found = fresh.get_tuple(at())
    assert found is not None
    assert found.pending_writes == [("task", "c", turns - 1)]
    assert len(read) < 4 * PAGE_TURNS + 5
    assert names(fresh, at()) == [f"{n:04}" for n in reversed(range(turns))]
    early = fresh.get_tuple(at(checkpoint="0003"))
    assert early is not None
    assert early.pending_writes == [("task", "c", 3)]


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    where = tmp_path / "store"
    stores = [snapstore.open(where, durable=False) for _ in range(2)]
    savers = [SnapstoreSaver(store) for store in stores]

    def write(me: int, saver: SnapstoreSaver) -> None:
        config = at()
        for n in range(20):
            config = put(saver, config, str(uuid6(clock_seq=me)), c=[me, n])
            saver.put_writes(config, [("c", n)], f"task {me}")

    writers = [
        threading.Thread(target=write, args=(n, saver))
        for n, saver in enumerate([*savers, *savers])
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = list(savers[0].list(at()))
    values = [tuple(one.checkpoint["channel_values"]["c"]) for one in found]
    assert sorted(values) == [(me, n) for me in range(4) for n in range(20)]
    assert all(len(one.pending_writes or []) == 1 for one in found)
    assert stores[1].verify() == []
    for store in stores:
        store.close()
