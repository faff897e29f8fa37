"""Threads out of a file that LangGraph's SqliteSaver wrote.

The file is opened to be read only, and nothing in it is deserialised: a packed checkpoint is taken
apart at the places where its values begin and end.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from snapstore.errors import InvalidInput, Refused
from snapstore.integrations.langgraph.cuts import map_members
from snapstore.integrations.langgraph.threads import Given, Threads
from snapstore.integrations.langgraph.turns import PACKED, Key, Place, Typed
from snapstore.integrations.names import session_name
from snapstore.store import Store

_MAGIC = b"SQLite format 3\x00"


_VALUES, _VERSIONS = "channel_values", "channel_versions"
_EMPTY_MAP = b"\x80"


class _Row(NamedTuple):
    """A row of the table of checkpoints."""

    namespace: str
    name: str
    parent: str | None
    type: str
    checkpoint: bytes
    metadata: bytes | str | None


class _Parts(NamedTuple):
    """A serialised checkpoint, taken apart."""

    rest: Typed
    versions: Mapping[str, Any]
    values: Mapping[str, Typed]


@dataclass(frozen=True, slots=True)
class Brought:
    """What came in of one thread."""

    thread: str
    session: str
    added: int
    """How many checkpoints were not there before."""


def import_sqlite(store: Store, path: str | Path) -> list[Brought]:
    """Bring in all threads of a file of SqliteSaver; checkpoints that are there stay as they are.

    Raises InvalidInput for a file that is none, Refused when a session of a thread's name is there
    that is no thread.
    """
    with closing(_opened(Path(path))) as file:
        rows = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"
        found = [str(thread) for (thread,) in _rows(file, rows, path)]
        threads = Threads(store)
        for thread in found:
            if store.exists(session_name(thread)) and not threads.keys(thread):
                raise Refused(
                    f"there is a session {session_name(thread)} already, and it is no thread",
                    hint="rename it first, or import into another store",
                )
        return [
            Brought(thread, session_name(thread), _import_thread(threads, file, thread, path))
            for thread in found
        ]


def _opened(path: Path) -> sqlite3.Connection:
    try:
        with path.open("rb") as file:
            begins_right = file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}") from None
    if not begins_right:
        raise InvalidInput(f"{path} is no SQLite file")
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _rows(
    file: sqlite3.Connection, query: str, path: str | Path, values: tuple[str, ...] = ()
) -> Iterator[tuple[Any, ...]]:
    try:
        yield from file.execute(query, values)
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{path} is no file of LangGraph's SqliteSaver: {error}") from None


def _import_thread(
    threads: Threads, file: sqlite3.Connection, thread: str, path: str | Path
) -> int:
    """How many checkpoints were not there before."""
    query = (
        "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"
        " FROM checkpoints WHERE thread_id = ? ORDER BY rowid"
    )
    there = set(threads.keys(thread))
    values: dict[Key, Mapping[str, Typed]] = {}
    added = 0
    for row in map(_Row._make, _rows(file, query, path, (thread,))):
        key = Key(row.namespace, row.name)
        if key not in there:
            added += 1
            before = values.pop(Key(row.namespace, row.parent or ""), {})
            given = _given(key, row, before, path)
            values[key] = {**given.changed, **{name: before[name] for name in given.unchanged}}
            threads.put(thread, given)
        _import_writes(threads, file, thread, key, path)
    return added


def _given(key: Key, row: _Row, before: Mapping[str, Typed], path: str | Path) -> Given:
    """A row as it is put; before are the values of its parent, if they are at hand.

    Another row with the same parent finds them gone, and keeps its values anew, which is the same.
    """
    try:
        rest, versions, held = _apart(row.type, row.checkpoint)
        metadata = json.loads(row.metadata or "{}")
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise InvalidInput(f"{path}: checkpoint {row.name} cannot be read: {error}") from None
    unchanged = frozenset(name for name, value in held.items() if before.get(name) == value)
    source, step = metadata.get("source", "checkpoint"), metadata.get("step", "")
    return Given(
        key,
        row.parent,
        f"{source} {step}".strip(),
        rest,
        (PACKED, msgpack.packb(metadata, unicode_errors="surrogatepass")),
        versions,
        {name: value for name, value in held.items() if name not in unchanged},
        unchanged,
    )


def _apart(type_: str, data: bytes) -> _Parts:
    """A serialised checkpoint as its values and the rest of it.

    One that is not packed, such as an encrypted one, stays whole: its values are in the rest.
    """
    if type_ != PACKED:
        return _Parts((type_, data), {}, {})
    members = map_members(data, 0, len(data))
    versions: Mapping[str, Any] = {}
    if _VERSIONS in members:
        start, end = members[_VERSIONS]
        versions = msgpack.unpackb(data[start:end], unicode_errors="surrogatepass")
    if _VALUES not in members:
        return _Parts((type_, data), versions, {})
    start, end = members[_VALUES]
    values = {
        name: (PACKED, data[at:until])
        for name, (at, until) in map_members(data, start, end).items()
    }
    return _Parts((type_, data[:start] + _EMPTY_MAP + data[end:]), versions, values)


def _import_writes(
    threads: Threads, file: sqlite3.Connection, thread: str, key: Key, path: str | Path
) -> None:
    columns = {name for _, name, *_ in _rows(file, "PRAGMA table_info(writes)", path)}
    task_path = "task_path" if "task_path" in columns else "''"
    query = (
        f"SELECT task_id, {task_path}, idx, channel, type, value FROM writes WHERE thread_id = ?"
        " AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx"
    )
    by_path: dict[str, dict[Place, tuple[str, Typed]]] = {}
    for task, at, index, channel, type_, value in _rows(file, query, path, (thread, *key)):
        by_path.setdefault(at, {})[Place(task, index)] = (channel, (type_, value))
    for at, given in by_path.items():
        threads.put_writes(thread, key, at, given)
