"""Saving every turn of a growing session: snapstore beside what people use today.

    pip install langgraph==1.2.24 langgraph-checkpoint-sqlite==3.1.2 openai-agents==0.24.0
    (and this package into the same environment)
    python -m tests.benchmarks.peers [--turns 2000] [engine ...]

Each engine gets the same turns (4 messages, about 2 KB of JSON) and must have each durable before
the next. It runs in a process of its own. "Rewindable" says whether any turn can be gone back to.
An engine whose package is not installed is left out, and said to be. SqliteSaver needs about 4 GB
of disk for 2,000 turns. The graphs, which save three checkpoints a turn, run 500.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.benchmarks.workload import Message, bytes_in, clock, median, scratch, turn

WINDOW = 20


class Peer:
    """One way to keep a session."""

    name = ""
    needs = ""
    rewindable = True
    most_turns = sys.maxsize
    """More would take too long, or too much disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def save(self, number: int, new: list[Message], whole: list[Message]) -> None:
        """Keep turn ``number``: ``new`` messages, ``whole`` with those before."""
        raise NotImplementedError

    def load(self) -> int:
        """Read the newest state; how many messages it has."""
        raise NotImplementedError

    def fork(self, number: int) -> bool:
        """A second session from that turn; False when there is no such thing."""
        return False

    def close(self) -> None:
        """Finish."""


class Snapstore(Peer):
    name = "snapstore"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        import snapstore

        self.store = snapstore.open(root / "store")
        self.session = self.store.session("s")

    def save(self, number: int, new: list[Message], whole: list[Message]) -> None:
        self.session.history.extend(new)
        self.session.save()

    def load(self) -> int:
        return len(list(self.store.session("s").history))

    def fork(self, number: int) -> bool:
        self.session.fork("fork", at=number)
        return True

    def close(self) -> None:
        self.store.close()


class WholeJson(Peer):
    name = "whole JSON, temporary file, fsync, rename"
    rewindable = False

    @property
    def path(self) -> Path:
        return self.root / "session.json"

    def save(self, number: int, new: list[Message], whole: list[Message]) -> None:
        temporary = self.path.with_suffix(".tmp")
        with temporary.open("w") as file:
            json.dump({"history": whole}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)

    def load(self) -> int:
        return len(json.loads(self.path.read_text())["history"])


class JsonLines(Peer):
    name = "JSONL append, fsync"
    rewindable = False

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.file = (root / "session.jsonl").open("a")

    def save(self, number: int, new: list[Message], whole: list[Message]) -> None:
        self.file.writelines(json.dumps(message) + "\n" for message in new)
        self.file.flush()
        os.fsync(self.file.fileno())

    def load(self) -> int:
        with (self.root / "session.jsonl").open() as file:
            return len([json.loads(line) for line in file])

    def close(self) -> None:
        self.file.close()


class SqliteSaver(Peer):
    name = "LangGraph SqliteSaver"
    needs = "langgraph.checkpoint.sqlite"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        from langgraph.checkpoint.sqlite import SqliteSaver as Saver

        self.context = Saver.from_conn_string(str(root / "checkpoints.db"))
        self.saver = self.context.__enter__()
        self.config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        self.version: Any = None

    def save(self, number: int, new: list[Message], whole: list[Message]) -> None:
        from langgraph.checkpoint.base import Checkpoint
        from langgraph.checkpoint.base.id import uuid6

        self.version = self.saver.get_next_version(self.version, None)
        versions = {"messages": self.version}
        checkpoint = Checkpoint(
            v=4,
            id=str(uuid6(clock_seq=number)),
            ts="2026-01-01T00:00:00+00:00",
            channel_values={"messages": whole},
            channel_versions=versions,
            versions_seen={},
            updated_channels=None,
        )
        metadata: Any = {"source": "loop", "step": number, "parents": {}}
        self.config = self.saver.put(self.config, checkpoint, metadata, versions)

    def load(self) -> int:
        found = self.saver.get_tuple({"configurable": {"thread_id": "t"}})
        return len(found.checkpoint["channel_values"]["messages"])

    def close(self) -> None:
        self.saver.conn.execute("pragma wal_checkpoint(truncate)")
        self.context.__exit__(None, None, None)


class SaverOnSnapstore(SqliteSaver):
    name = "LangGraph, SnapstoreSaver"
    needs = "langgraph.checkpoint.base"

    def __init__(self, root: Path) -> None:
        Peer.__init__(self, root)
        from snapstore.integrations.langgraph import SnapstoreSaver

        self.context = SnapstoreSaver.from_conn_string(root / "store")
        self.saver = self.context.__enter__()
        self.config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        self.version = None

    def fork(self, number: int) -> bool:
        self.saver.store.session("t").fork("fork", at=number)
        return True

    def close(self) -> None:
        self.context.__exit__(None, None, None)


class Graph(Peer):
    """A real graph: a node that answers, state saved before and after each step."""

    name = "LangGraph, a graph on SqliteSaver"
    needs = "langgraph.checkpoint.sqlite"
    most_turns = 500

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        from typing import Annotated, TypedDict

        from langgraph.graph import START, StateGraph
        from langgraph.graph.message import add_messages

        self.context = self.saver_in(root)
        self.saver = self.context.__enter__()
        messages: Any = Annotated[list, add_messages]  # type: ignore[type-arg]
        state: Any = TypedDict("State", {"messages": messages, "reply": list})  # type: ignore[misc]
        builder: Any = StateGraph(state)
        builder.add_node("agent", lambda state: {"messages": state["reply"]})
        builder.add_edge(START, "agent")
        self.graph = builder.compile(checkpointer=self.saver)
        self.config: Any = {"configurable": {"thread_id": "t"}}

    def saver_in(self, root: Path) -> Any:
        """The saver, to be entered."""
        from langgraph.checkpoint.sqlite import SqliteSaver as Saver

        return Saver.from_conn_string(str(root / "checkpoints.db"))

    def save(self, number: int, new: list[Message], whole: list[Message]) -> None:
        said = _langchain(number, new)
        self.graph.invoke({"messages": said[:1], "reply": said[1:]}, self.config, durability="sync")

    def load(self) -> int:
        return len(self.graph.get_state(self.config).values["messages"])

    def close(self) -> None:
        self.saver.conn.execute("pragma wal_checkpoint(truncate)")
        self.context.__exit__(None, None, None)


class GraphOnSnapstore(Graph):
    name = "LangGraph, a graph on SnapstoreSaver"
    needs = "langgraph.graph"

    def saver_in(self, root: Path) -> Any:
        from snapstore.integrations.langgraph import SnapstoreSaver

        return SnapstoreSaver.from_conn_string(root / "store")

    def fork(self, number: int) -> bool:
        session = self.saver.store.session("t")
        session.fork("fork", at=session.turn // 2)
        return True

    def close(self) -> None:
        self.context.__exit__(None, None, None)


def _langchain(number: int, new: list[Message]) -> list[Any]:
    """The messages of a turn as LangChain has them."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    question, asking, answered, answer = new
    text, call = asking["content"]
    result = answered["content"][0]
    calls = [{"name": call["name"], "args": call["input"], "id": call["id"], "type": "tool_call"}]
    return [
        HumanMessage(question["content"], id=f"{number}-0"),
        AIMessage(text["text"], id=f"{number}-1", tool_calls=calls),
        ToolMessage(result["content"], tool_call_id=result["tool_use_id"], id=f"{number}-2"),
        AIMessage(answer["content"], id=f"{number}-3"),
    ]


class AgentsSession(Peer):
    name = "OpenAI Agents SQLiteSession"
    needs = "agents"
    rewindable = False

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        from agents import SQLiteSession

        self.loop = asyncio.new_event_loop()
        self.session = SQLiteSession("s", root / "session.db")

    def save(self, number: int, new: list[Message], whole: list[Message]) -> None:
        self.loop.run_until_complete(self.session.add_items(new))  # type: ignore[arg-type]

    def load(self) -> int:
        return len(self.loop.run_until_complete(self.session.get_items()))

    def close(self) -> None:
        self.session.close()
        self.loop.close()


class AgentsOnSnapstore(AgentsSession):
    name = "OpenAI Agents SnapstoreSession"
    rewindable = True

    def __init__(self, root: Path) -> None:
        Peer.__init__(self, root)
        from snapstore.integrations.openai_agents import SnapstoreSession

        self.loop = asyncio.new_event_loop()
        self.session: Any = SnapstoreSession("s", root / "store")

    def fork(self, number: int) -> bool:
        self.loop.run_until_complete(self.session.fork("fork", at=number))
        return True


PEERS: dict[str, type[Peer]] = {
    "snapstore": Snapstore,
    "json": WholeJson,
    "jsonl": JsonLines,
    "agents": AgentsSession,
    "agents-snapstore": AgentsOnSnapstore,
    "langgraph": SqliteSaver,
    "langgraph-snapstore": SaverOnSnapstore,
    "graph": Graph,
    "graph-snapstore": GraphOnSnapstore,
}


def installed(peer: type[Peer]) -> bool:
    """Whether the peer's package is there."""
    try:
        return not peer.needs or find_spec(peer.needs) is not None
    except ModuleNotFoundError:
        return False


def measure(key: str, turns: int) -> dict[str, Any]:
    """Run one engine."""
    turns = min(turns, PEERS[key].most_turns)
    with scratch() as root:
        peer = PEERS[key](root)
        whole: list[Message] = []
        times: list[float] = []
        raw = 0
        for number in range(1, turns + 1):
            new = turn(number)
            raw += len(json.dumps(new, separators=(",", ":")))
            whole += new
            times.append(clock(partial(peer.save, number, new, whole)))
        load = min(clock(lambda: peer.load()) for _ in range(3))
        assert peer.load() == len(whole)
        before = bytes_in(root)
        forked: list[bool] = []
        fork = clock(lambda: forked.append(peer.fork(turns // 2)))
        grew = bytes_in(root) - before
        peer.close()
        marks = (100, turns // 2, turns)
        return {
            "name": peer.name,
            "rewindable": peer.rewindable,
            "saves": [median(times[max(0, mark - WINDOW) : mark]) * 1e3 for mark in marks],
            "disk": bytes_in(root),
            "raw": raw,
            "load": load * 1e3,
            "fork": [fork * 1e3, grew] if forked[0] else None,
        }


def _row(result: dict[str, Any]) -> str:
    saves = " / ".join(f"{ms:.2f}" for ms in result["saves"])
    fork = f"{result['fork'][0]:.1f} ms, {result['fork'][1]} bytes" if result["fork"] else "no"
    cells = (
        result["name"],
        "yes" if result["rewindable"] else "no",
        saves,
        f"{result['disk'] / 1e6:,.1f} MB",
        f"{result['disk'] / result['raw']:,.2f}",
        f"{result['load']:.0f} ms",
        fork,
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Run the engines and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", default=list(PEERS), metavar="engine")
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.one, chosen.turns)))
        return
    marks = f"{100} / {chosen.turns // 2} / {chosen.turns}"
    print(
        f"| | every turn rewindable | save at turn {marks}, ms | disk | x raw JSON | load | fork |"
    )
    print("|---|---|---|---|---|---|---|")
    for key in chosen.engines:
        if not installed(PEERS[key]):
            print(f"| {PEERS[key].name} | not installed | | | | | |")
            continue
        command = [sys.executable, "-m", "tests.benchmarks.peers", "--one", key]
        done = subprocess.run(
            [*command, "--turns", str(chosen.turns)], capture_output=True, text=True, check=True
        )
        print(_row(json.loads(done.stdout.splitlines()[-1])), flush=True)


if __name__ == "__main__":
    main()
