"""Threads of LangGraph under what happens to programs: kills, cancels, damage, other processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.graph", reason="langgraph is not installed")

from langchain_core.messages import HumanMessage
from test_langgraph import CONFIG, ask, at, checkpoint, graph_on, names, put

import snapstore
from snapstore import Corrupt
from snapstore.engine import Kind, Obj
from snapstore.integrations.langgraph import SnapstoreSaver

WRITER = Path(__file__).with_name("langgraph_writer.py")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[snapstore.Store]:
    with snapstore.open(tmp_path / "store", durable=False) as opened:
        yield opened


@pytest.fixture
def saver(store: snapstore.Store) -> SnapstoreSaver:
    return SnapstoreSaver(store)


def writer(where: Path, me: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(where), me, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_what_a_killed_process_was_told_is_there(tmp_path: Path) -> None:
    where = tmp_path / "store"
    process = writer(where, "w", 10_000)
    assert process.stdout is not None
    told = [json.loads(process.stdout.readline()) for _ in range(20)]
    process.kill()
    told += [json.loads(line) for line in process.stdout if line.endswith("\n")]
    process.wait()
    with snapstore.open(where) as store:
        saver = SnapstoreSaver(store)
        found = {one.checkpoint["id"]: one for one in saver.list(at())}
        for name, said in told:
            assert found[name].checkpoint["channel_values"] == {"said": said}
            assert found[name].pending_writes == [("task w", "said", said[-1])]
        assert [problem for problem in store.verify() if not problem.harmless] == []
        put(saver, at(), "z")
        assert names(saver, at())[0] == "z"


def test_two_processes_on_one_thread_lose_nothing(tmp_path: Path) -> None:
    processes = [writer(tmp_path / "store", me, 15) for me in "ab"]
    lines = [line for process in processes for line in process.communicate()[0].splitlines()]
    told = [json.loads(line) for line in lines]
    assert [process.returncode for process in processes] == [0, 0]
    with snapstore.open(tmp_path / "store") as store:
        found = list(SnapstoreSaver(store).list(at()))
        assert sorted(one.checkpoint["id"] for one in found) == sorted(name for name, _ in told)
        assert all(len(one.pending_writes or []) == 1 for one in found)
        assert store.verify() == []


@pytest.mark.parametrize("method", ["aput", "aput_writes"])
def test_a_write_whose_caller_is_cancelled_is_whole_or_absent(
    saver: SnapstoreSaver, store: snapstore.Store, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = put(saver, at(), "1", c=1)
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    commit = store.engine.commit

    def slow(*given: Any) -> Any:
        begun.set()
        assert go_on.wait(5)
        try:
            return commit(*given)
        finally:
            ended.set()

    async def cancelled() -> None:
        monkeypatch.setattr(store.engine, "commit", slow)
        if method == "aput":
            work: Any = saver.aput(config, checkpoint("2", {"c": 2}), {}, {"c": 1})
        else:
            work = saver.aput_writes(config, [("c", 2), ("d", 3)], "task")
        task = asyncio.create_task(work)
        await asyncio.to_thread(begun.wait, 5)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        go_on.set()
        await asyncio.to_thread(ended.wait, 5)

    asyncio.run(cancelled())
    monkeypatch.undo()
    found = saver.get_tuple(at())
    assert found is not None
    if method == "aput":
        assert found.checkpoint["channel_values"] == {"c": 2}
    else:
        assert found.pending_writes == [("task", "c", 2), ("task", "d", 3)]
    put(saver, at(checkpoint="2"), "3", c=3)
    assert names(saver, at())[0] == "3"
    assert store.verify() == []


def test_damage_to_one_checkpoint_is_told_and_hides_no_other(
    saver: SnapstoreSaver, store: snapstore.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "123":
        put(saver, at(), name, c=name * 300)
    read = store.engine.read

    def damaged(object_id: bytes) -> Obj:
        found = read(object_id)
        if found.kind == Kind.CONTENT and b"2" * 300 in found.payload:
            raise Corrupt("damaged here")
        return found

    monkeypatch.setattr(store.engine, "read", damaged)
    fresh = SnapstoreSaver(store)
    with pytest.raises(Corrupt):
        fresh.get_tuple(at(checkpoint="2"))
    for name in "13":
        found = fresh.get_tuple(at(checkpoint=name))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"c": name * 300}


def test_a_listing_that_nobody_ends_holds_up_nobody(saver: SnapstoreSaver) -> None:
    for name in "123":
        put(saver, at(), name)

    async def listing() -> list[str]:
        unfinished = saver.alist(at())
        first = await anext(unfinished)
        await saver.aput(at(), checkpoint("4"), {}, {})
        await saver.adelete_thread("t")
        return [first.checkpoint["id"], *[one.checkpoint["id"] async for one in unfinished]]

    assert asyncio.run(asyncio.wait_for(listing(), 20)) == ["3"]


# --- what a thread takes -------------------------------------------------------------------------


def grown(store: snapstore.Store, turns: int, text: str) -> tuple[int, int]:
    """Bytes that turns of a graph take, and bytes of what was said in them."""
    graph = graph_on(SnapstoreSaver(store))
    before, said = store.engine.stats().bytes, 0
    for n in range(turns):
        question = f"{n} {text}"
        said += len(question) + len(ask(graph, question)[-1])
    return store.engine.stats().bytes - before, said


def test_a_long_thread_takes_a_few_times_what_was_said(store: snapstore.Store) -> None:
    early, said_early = grown(store, 20, "a question of some length " * 40)
    late, said_late = grown(store, 60, "a question of some length " * 40)
    assert late / said_late < 6
    assert late / said_late < 1.5 * early / said_early


def test_a_dict_with_one_key_changed_takes_that_key(
    saver: SnapstoreSaver, store: snapstore.Store
) -> None:
    files = {f"file {n}": f"{n} " * 1000 for n in range(100)}
    config = put(saver, at(), "1", files=files)
    before = store.engine.stats().objects
    made = checkpoint("2", {"files": {**files, "file 50": "changed"}})
    made["channel_versions"] = {"files": 2}
    saver.put(config, made, {}, {"files": 2})
    assert store.engine.stats().objects - before < 20


def test_a_write_shares_what_the_next_checkpoint_holds(
    saver: SnapstoreSaver, store: snapstore.Store
) -> None:
    messages = [HumanMessage(f"{n} " * 500, id=str(n)) for n in range(30)]
    config = put(saver, at(), "1")
    saver.put_writes(config, [("messages", messages)], "task")
    before = store.engine.stats().bytes
    put(saver, config, "2", messages=messages)
    assert store.engine.stats().bytes - before < sum(len(str(m.content)) for m in messages) / 4


def test_a_large_value_changed_in_the_middle_takes_its_neighbourhood(
    saver: SnapstoreSaver, store: snapstore.Store
) -> None:
    image = random.Random(1).randbytes(2 << 20)
    config = put(saver, at(), "1", image=image)
    changed = image[: 1 << 20] + b"inserted" + image[1 << 20 :]
    objects = store.engine.stats().objects
    made = checkpoint("2", {"image": changed})
    made["channel_versions"] = {"image": 2}
    saver.put(config, made, {}, {"image": 2})
    assert store.engine.stats().objects - objects < 15
    found = saver.get_tuple(at())
    assert found is not None
    assert found.checkpoint["channel_values"]["image"] == changed


def test_a_thread_goes_on_after_a_rewind_in_another_process(tmp_path: Path) -> None:
    where = tmp_path / "store"
    with SnapstoreSaver.from_conn_string(where) as saver:
        graph = graph_on(saver)
        ask(graph, "one")
        with snapstore.open(where) as other:
            turn = other.session("t").turn
            ask(graph, "two")
            other.session("t").rewind(turn)
        assert ask(graph, "three", CONFIG) == ["one", "re: one", "three", "re: three"]


def test_a_path_is_no_store() -> None:
    with pytest.raises(snapstore.InvalidInput, match=r"snapstore\.open"):
        SnapstoreSaver("agents")  # type: ignore[arg-type]
