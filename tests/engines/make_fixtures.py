"""Makes the stores in fixtures/ that every later version must be able to read.

    python tests/engines/make_fixtures.py

    store-1.tar.gz   a store in a directory: a segment that a collection packed with a dictionary,
                     one that was sealed, and the active one
    bundle-1         its sessions and tags in one file
    bucket-1.tar.gz  a store on an object store, a file for each key
    told-1.json      all that can be read in each of them

They were made once and stay as they are. They are made again, under another number, only when the
format changes; then both numbers are read by the test. Clocks tick and files have fixed times, so
what can be the same each time is the same; keys of the object store have random parts.
"""

from __future__ import annotations

import io
import json
import os
import platform
import random
import shutil
import socket
import sys
import tarfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from snapstore import Store
from snapstore.engine import Engine, Kind, Obj
from snapstore.engines.log import codec, rewrite
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.errors import Corrupt
from snapstore.formats import read as read_transcript
from snapstore.ids import object_id
from snapstore.links import links
from snapstore.tasks import Task
from snapstore.transfer.bundle import bundle, selected
from snapstore.transfer.imports import import_transcript

FIXTURES = Path(__file__).parent / "fixtures"
VERSION = 1
WORK = Path("/tmp/snapstore-fixture/work")
"""Snapshots remember where they were taken; so that is the same wherever this is run."""
SECOND = 1_000_000
_SHORT = 16
EARLY = 1_700_000_000


def ticking(start: int = EARLY) -> Any:
    """A clock that goes on by a second each time."""
    return iter(range(start * SECOND, 1 << 60, SECOND)).__next__


# --- what is in the stores ------------------------------------------------------------------------


def fill(store: Store) -> None:
    """Sessions with something of everything."""
    _talk(store)
    _odd_values(store)
    _work_on_files(store)
    _import(store)
    _run_task(store)


def _talk(store: Store) -> None:
    rng = random.Random(1)
    words = [f"{rng.getrandbits(40):x}" for _ in range(60)]
    session = store.session("fix-login")
    for n in range(36):
        session.history.append({"role": "user", "content": " ".join(rng.choices(words, k=20))})
        session.history.append({"role": "assistant", "content": " ".join(rng.choices(words, k=20))})
        session.scratchpad["step"] = n
        session.save(f"turn {n + 1}")
    other = session.fork("try-redis", at=20)
    other.history.append({"role": "user", "content": "Keep the sessions in Redis instead."})
    other.save("Redis")
    session.rewind(30)
    session.undo()
    session.rewind(35)
    store.tag("good", store.resolve("fix-login@12"))
    store.rename("try-redis", "redis")
    store.session("gone").save("for a while")
    store.delete("gone")
    store.switch("fix-login")


def _odd_values(store: Store) -> None:
    session = store.session("values")
    session.history.extend(
        [
            {"role": "user", "content": "lone \ud83d and whole \U0001f600, NUL \0, \u00e9"},
            {"numbers": [0, -1, 2**63, 2**64, -(2**70), 1.5, 1e300, -0.0], "none": None},
            {"deep": json.loads("[" * 60 + "]" * 60), "": {"empty": [{}, [], ""]}},
            {"b": 1, "a": 2, "large": " ".join(map(str, range(14_000)))},
        ]
    )
    session.scratchpad.update({"bytes": {"in": [b"\0\xff", True]}, "text": "x" * 300})
    session.scratchpad.update({f"key {n}": n for n in range(200)})
    session.save("odd values")
    session.history.append({"role": "user", "content": "more"})
    session.scratchpad["key 7"] = "seven"
    session.trim(keep=2)
    session.save("trimmed")


def _work_on_files(store: Store) -> None:
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "src" / "empty").mkdir(parents=True)
    session = store.session("files")
    session.worktree = WORK
    for n in range(3):
        (WORK / "src" / "login.py").write_text(f"lifetime = {n}\n")
        (WORK / "notes.txt").write_text("".join(f"line {k} of {n}\n" for k in range(4300)))
        if n == 0:
            (WORK / "run").write_text("#!/bin/sh\n")
            (WORK / "run").chmod(0o755)
            (WORK / "link").symlink_to("src/login.py")
        _with_fixed_times()
        session.save(f"files {n}")
    (WORK / "src" / "login.py").write_text("in no turn\n")
    _with_fixed_times()
    session.rewind(1, files=True)
    session.undo()
    session.rewind(2, files=True)
    shutil.rmtree(WORK.parent)


def _with_fixed_times() -> None:
    for path in sorted(WORK.rglob("*"), reverse=True):
        os.utime(path, (EARLY, EARLY), follow_symlinks=False)


def _import(store: Store) -> None:
    said = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"m{n}"} for n in range(9)]
    data = b"".join(json.dumps(message).encode() + b"\n" for message in said)
    import_transcript(store, read_transcript(data, "talk.jsonl"), source="talk.jsonl")


def _run_task(store: Store) -> None:
    task = Task("release")

    @task.phase
    def build() -> dict[str, str]:
        return {"wheel": "app-1.0.whl"}

    task.run(store)


# --- what can be read in them ---------------------------------------------------------------------


def told(store: Store) -> dict[str, Any]:
    """All that can be read in a store, as JSON; long values by a digest."""
    return {
        "current": store.current,
        "tags": dict(store.tags()),
        "sessions": {info.name: _session(store, info.name) for info in store.sessions()},
        "moves": [
            [move.ref, move.gen, move.op, move.new.hex()[:_SHORT] if move.new else None]
            for move in sorted(store.engine.reflog(), key=lambda move: (move.ref, move.gen))
        ],
    }


def _session(store: Store, name: str) -> list[Any]:
    session = store.session(name)
    turns = [
        [
            turn.id,
            turn.turn,
            turn.label,
            turn.time.isoformat(),
            _digest(list(turn.history)),
            _digest(dict(turn.scratchpad)),
            _digest(turn.meta),
            None if turn.files is None else _files(store, turn.files),
        ]
        for turn in session.log()
    ]
    return [turns, _plain(list(session.history[-1:]))]


def _files(store: Store, files: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for path, entry in files.items():
        if entry.kind == "file":
            content = store.objects.content(bytes.fromhex(entry.id))
            if object_id(content).hex() != entry.id:
                raise Corrupt(f"the content of {path} is not what its id says")
        found[path] = [entry.kind, entry.mode, entry.size, entry.id]
    return found


def _digest(value: Any) -> str:
    return object_id(json.dumps(_plain(value)).encode()).hex()[:_SHORT]


def _plain(value: Any) -> Any:
    """Bytes as the command line shows them."""
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, Mapping):
        return {key: _plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    return value


# --- making them ----------------------------------------------------------------------------------


def in_directory(root: Path) -> Store:
    """The store that is kept as store-N.tar.gz."""
    codec.DICTIONARY_SIZE = 2048  # so that it takes little to learn one
    rewrite.WORTHWHILE = 1
    clock = ticking()
    store = Store(LogEngine(root, links=links), clock=clock)
    store.engine.commit(
        [Obj(object_id(b"nothing leads here"), Kind.CONTENT, b"nothing leads here")]
    )
    fill(store)
    store.gc(apply=True, grace=timedelta(days=90))
    store.close()
    for seal_at in (1, 64 << 20):  # the first of these seals what is there
        store = Store(LogEngine(root, links=links, seal_at=seal_at), clock=clock)
        session = store.session("after")
        session.history.append({"role": "user", "content": f"said after it, {seal_at}"})
        session.save("after the collection")
        if seal_at > 1:
            return store
        store.close()
    raise AssertionError


def pack_directory(root: Path, target: Path) -> None:
    """The durable files of a store, and its indexes."""
    shutil.rmtree(root / "trash", ignore_errors=True)
    shutil.rmtree(root / "restore", ignore_errors=True)
    kept = [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file() and (path.parent.name != "cache" or path.suffix == ".idx")
    ]
    _pack({str(path.relative_to(root)): path.read_bytes() for path in kept}, target)


def _pack(files: Mapping[str, bytes], target: Path) -> None:
    with tarfile.open(target, "w:gz", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(data), EARLY, 0o600
            tar.addfile(entry, io.BytesIO(data))


def unpacked(source: Path) -> dict[str, bytes]:
    """The files in a tar, by name."""
    with tarfile.open(source) as tar:
        return {
            entry.name: held.read() for entry in tar if (held := tar.extractfile(entry)) is not None
        }


def main() -> None:
    """Make them all, unless they are there."""
    FIXTURES.mkdir(exist_ok=True)
    if any(FIXTURES.iterdir()):
        sys.exit(f"{FIXTURES} holds some already, and they stay as they are")
    socket.gethostname = platform.node = lambda: "host"
    root = WORK.parent.with_name("snapstore-fixture-store")
    shutil.rmtree(root, ignore_errors=True)
    store = in_directory(root)
    everything: dict[str, Any] = {"store": told(store)}
    data = b"".join(bundle(store, selected(store, ())))
    (FIXTURES / f"bundle-{VERSION}").write_bytes(data)
    store.close()
    pack_directory(root, FIXTURES / f"store-{VERSION}.tar.gz")
    shutil.rmtree(root)
    bucket = Bucket.in_memory()
    engine: Engine = ObjectStoreEngine(bucket, links=links)
    store = Store(engine, clock=ticking())
    fill(store)
    everything["bucket"] = told(store)
    store.close()
    keys = {found.key: bucket.get(found.key) for found in bucket.every("")}
    _pack(keys, FIXTURES / f"bucket-{VERSION}.tar.gz")
    text = json.dumps(everything, indent=None, separators=(",", ":"))
    (FIXTURES / f"told-{VERSION}.json").write_text(text + "\n")
    sys.stdout.write("made\n")


if __name__ == "__main__":
    main()
