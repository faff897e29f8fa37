"""Threads out of a file of SqliteSaver. The file is made here; LangGraph need not be installed."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgpack
import pytest

import snapstore
from snapstore import InvalidInput, Refused
from snapstore.integrations.langgraph.sqlite_file import import_sqlite
from snapstore.integrations.langgraph.threads import Threads
from snapstore.integrations.langgraph.turns import Key, Place

TABLES = """
CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT,
    parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT,
    idx INTEGER, channel TEXT, type TEXT, value BLOB);
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[snapstore.Store]:
    with snapstore.open(tmp_path / "store", durable=False) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoints.db"
    with closing(sqlite3.connect(path)) as made:
        made.executescript(TABLES)
        made.commit()
    return path


def message(text: str) -> Any:
    fields = {"content": text, "additional_kwargs": {}, "type": "human"}
    return msgpack.ExtType(5, msgpack.packb(["langchain_core.messages.human", "H", fields, "m"]))


def checkpoint(name: str, **values: Any) -> bytes:
    packed: bytes = msgpack.packb({
        "v": 4, "id": name, "channel_values": values,
        "channel_versions": dict.fromkeys(values, name), "versions_seen": {},
    })  # fmt: skip
    return packed


def add(path: Path, name: str, parent: str | None, blob: bytes, kind: str = "msgpack") -> None:
    metadata = json.dumps({"source": "loop", "step": int(name)})
    with closing(sqlite3.connect(path)) as open_file:
        row = ("t", "", name, parent, kind, blob, metadata)
        open_file.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        row = ("t", "", name, "task", 0, "c", "msgpack", msgpack.packb("w" + name))
        open_file.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        open_file.commit()


def test_checkpoints_come_in_taken_apart_to_the_byte(store: snapstore.Store, file: Path) -> None:
    add(file, "1", None, checkpoint("1", messages=[message("hi")], n=1))
    add(file, "2", "1", checkpoint("2", messages=[message("hi"), message("again")], n=1))
    (brought,) = import_sqlite(store, file)
    assert (brought.thread, brought.session, brought.added) == ("t", "t", 2)
    threads = Threads(store)
    found = threads.checkpoint("t", Key("", "2"))
    assert found is not None
    assert found.parent == "1"
    values = {name: threads.load(value) for name, value in found.values.items()}
    packed = msgpack.packb([message("hi"), message("again")])
    assert values == {"messages": ("msgpack", packed), "n": ("msgpack", msgpack.packb(1))}
    rest = msgpack.unpackb(threads.load(found.rest)[1])
    assert rest == {
        **msgpack.unpackb(checkpoint("2")),
        "channel_versions": {"messages": "2", "n": "2"},
    }
    assert msgpack.unpackb(threads.load(found.metadata)[1]) == {"source": "loop", "step": 2}
    ((place, write),) = threads.writes("t", Key("", "2"))
    assert (place, write.channel) == (Place("task", 0), "c")
    assert threads.load(write.value) == ("msgpack", msgpack.packb("w2"))


def test_nothing_that_the_file_names_is_imported(store: snapstore.Store, file: Path) -> None:
    hostile = msgpack.ExtType(0, msgpack.packb(["os", "abort", ""]))
    add(file, "1", None, checkpoint("1", messages=[hostile], n=hostile))
    import_sqlite(store, file)
    assert store.verify() == []
    assert len(store.session("t").history) == 1


def test_turns_show_the_messages(store: snapstore.Store, file: Path) -> None:
    add(file, "1", None, checkpoint("1", messages=[message("hi")], n=1))
    import_sqlite(store, file)
    head = store.session("t").head
    assert head is not None
    assert list(head.history) == [{"role": "user", "content": "hi"}]
    assert dict(head.scratchpad) == {"n": 1}
    assert head.label == "loop 1"


def test_importing_again_brings_in_what_is_new(store: snapstore.Store, file: Path) -> None:
    add(file, "1", None, checkpoint("1", n=1))
    import_sqlite(store, file)
    head = store.session("t").head
    assert [found.added for found in import_sqlite(store, file)] == [0]
    assert store.session("t").head == head
    add(file, "2", "1", checkpoint("2", n=2))
    assert [found.added for found in import_sqlite(store, file)] == [1]
    assert Threads(store).keys("t") == [Key("", "2"), Key("", "1")]


def test_the_command_says_how_much_came_in(tmp_path: Path, file: Path) -> None:
    def said() -> str:
        command = [sys.executable, "-m", "snapstore_cli", "--store", str(tmp_path / "s"), "import"]
        done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=True)
        return done.stdout

    add(file, "1", None, checkpoint("1", n=1))
    add(file, "2", "1", checkpoint("2", n=2))
    assert "\tnew\t" in said()
    add(file, "3", "2", checkpoint("3", n=3))
    add(file, "4", "3", checkpoint("4", n=4))
    assert "\t2 new turns\t" in said()
    assert "\tunchanged\t" in said()


def test_encrypted_checkpoints_stay_whole(store: snapstore.Store, file: Path) -> None:
    add(file, "1", None, b"\x00cipher" * 100, kind="msgpack+aes")
    import_sqlite(store, file)
    threads = Threads(store)
    found = threads.checkpoint("t", Key("", "1"))
    assert found is not None
    assert threads.load(found.rest) == ("msgpack+aes", b"\x00cipher" * 100)


def test_the_file_is_not_touched(store: snapstore.Store, file: Path) -> None:
    add(file, "1", None, checkpoint("1", n=1))
    before = {p.name: p.read_bytes() for p in file.parent.iterdir() if p.is_file()}
    import_sqlite(store, file)
    assert {p.name: p.read_bytes() for p in file.parent.iterdir() if p.is_file()} == before


def test_a_session_that_is_no_thread_is_not_written_to(store: snapstore.Store, file: Path) -> None:
    store.session("t").save("mine")
    add(file, "1", None, checkpoint("1"))
    with pytest.raises(Refused):
        import_sqlite(store, file)
    assert store.session("t").turn == 1


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00 and rubbish"])
def test_another_file_is_refused(store: snapstore.Store, tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "other.db"
    other.write_bytes(content)
    with pytest.raises(InvalidInput):
        import_sqlite(store, other)
    with pytest.raises(InvalidInput):
        import_sqlite(store, tmp_path / "nothing.db")


def test_a_damaged_checkpoint_is_refused(store: snapstore.Store, file: Path) -> None:
    add(file, "1", None, checkpoint("1", n=1)[:-3])
    with pytest.raises(InvalidInput, match="checkpoint 1"):
        import_sqlite(store, file)


def test_a_graph_goes_on_from_a_file_of_sqlite_saver(
    store: snapstore.Store, tmp_path: Path
) -> None:
    pytest.importorskip("langgraph.graph", reason="langgraph is not installed")
    sqlite = pytest.importorskip(
        "langgraph.checkpoint.sqlite", reason="langgraph-checkpoint-sqlite is not installed"
    )
    from test_langgraph import CONFIG, ask, graph_on

    from snapstore.integrations.langgraph import SnapstoreSaver

    path = tmp_path / "real.db"
    with sqlite.SqliteSaver.from_conn_string(str(path)) as theirs:
        graph = graph_on(theirs)
        ask(graph, "one")
        before = [s.values for s in graph.get_state_history(CONFIG)]
    saver = SnapstoreSaver(store)
    assert saver.import_sqlite(path) == ["t"]
    graph = graph_on(saver)
    assert [s.values for s in graph.get_state_history(CONFIG)] == before
    assert ask(graph, "two") == ["one", "re: one", "two", "re: two"]
