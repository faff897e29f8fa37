"""Reads mutated stores, in a process of its own that may take little memory and start nothing.

    python tests/engines/fuzzing.py KIND FIRST COUNT

KIND is store, bundle or bucket; each number from FIRST on is the seed of one case. Bytes of one
file of a fixture are changed, and in most cases made to verify again: then it is not the digest
that refuses them. All that a user may do with such a store raises SnapstoreError or nothing. What
else it raises is printed with its seed, and makes the exit code 1.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

from blake3 import blake3
from make_fixtures import FIXTURES, VERSION, told, unpacked

from snapstore import SnapstoreError, Store
from snapstore.engines.log import batch as fmt
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.memory import MemoryEngine
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.links import links
from snapstore.maintenance.recover import recover
from snapstore.maintenance.repair import repair
from snapstore.transfer.bundle import open_bundle
from snapstore.transfer.carry import carry

MEMORY = 512 << 20
"""Bytes that a case may take beyond what the process took before the first."""
_FORBIDDEN = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen",
              "socket.connect", "ctypes.dlopen")  # fmt: skip
_EXTREMES = (0, 1, 3, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 1 << 24, (1 << 30) - 1, 1 << 30, 0x7FFFFFFF,
             0xFFFFFFFE, 0xFFFFFFFF)  # fmt: skip


# --- changing bytes -------------------------------------------------------------------------------


def changed(data: bytes, rng: random.Random) -> bytes:
    """The bytes with one thing about them changed."""
    if not data:
        return rng.randbytes(rng.randrange(1, 64))
    at = rng.randrange(len(data))
    size = min(rng.choice((1, 2, 4, 8, 32, 200)), len(data) - at)
    other = rng.randrange(len(data))
    match rng.randrange(7):
        case 0:
            return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        case 1:
            return data[:at]
        case 2:
            return data[:at] + data[at + size :]
        case 3:
            return data[:at] + data[other : other + size] + data[at:]
        case 4:
            extreme = rng.choice(_EXTREMES).to_bytes(4, "little")
            return data[:at] + extreme + data[at + 4 :]
        case 5:
            return data[:at] + rng.randbytes(size) + data[at + size :]
        case _:
            return data[:at] + bytes(size) + data[at + size :]


def _batches(data: bytes, start: int = 0) -> list[tuple[int, int]]:
    found = []
    while data[start : start + 4] == fmt.MAGIC and start + fmt.HEADER_SIZE <= len(data):
        size = fmt.Header(data[start:], ("", 0)).size
        found.append((start, start + size))
        start += size
    return found


def signed(head: bytes, body: bytes) -> bytes:
    """A batch that verifies, with this body."""
    head = head[:14] + (len(body) & 0xFFFFFFFF).to_bytes(4, "little") + head[18:32]
    covered = head + crc32(head).to_bytes(4, "little") + body
    size = (len(covered) + fmt.TRAILER_SIZE).to_bytes(4, "little")
    return covered + blake3(covered).digest(length=16) + size + fmt.END


def changed_within_batch(data: bytes, rng: random.Random, start: int = 0) -> bytes:
    """One batch changed in its header or its body, and all of it verifies."""
    start, end = rng.choice(_batches(data, start))
    head = data[start : start + fmt.HEADER_SIZE]
    body = data[start + fmt.HEADER_SIZE : end - fmt.TRAILER_SIZE]
    if rng.randrange(4) == 0:
        at = rng.choice((5, 6, 10, 18, 22))
        width = 1 if at == 5 else 4
        value = rng.choice(_EXTREMES) & ((1 << 8 * width) - 1)
        head = head[:at] + value.to_bytes(width, "little") + head[at + width :]
    else:
        # The directory stands at the beginning, and there is more to go wrong in it.
        front = min(len(body), rng.choice((64, 400, len(body))))
        body = changed(body[:front], rng) + body[front:]
    return data[:start] + signed(head, body) + data[end:]


def changed_index(data: bytes, rng: random.Random) -> bytes:
    """An index with other entries, and it verifies."""
    columns = bytearray(data[76:])
    for _ in range(rng.randrange(1, 40)):
        at = 8 * rng.randrange(len(columns) // 8)
        columns[at : at + 8] = rng.choice((rng.randbytes(8), b"\xff" * 8, bytes(8)))
    check = blake3(columns).digest(length=16)
    return data[:52] + check + data[68:76] + bytes(columns)


def changed_manifest(data: bytes, rng: random.Random) -> bytes:
    """A manifest that says something else, and it verifies."""
    body = json.loads(data)
    del body["check"]
    key = rng.choice(sorted(body))
    body[key] = rng.choice(([], [3], [3, 3, 5], [10**9], -1, 1 << 70, None, "x", {"a": 1}, [None]))
    check = blake3(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return json.dumps({**body, "check": check}).encode() + b"\n"


def hurt(name: str, data: bytes, rng: random.Random) -> bytes:
    """A file of a fixture, changed."""
    if data and rng.randrange(3):
        if data.startswith(fmt.MAGIC):
            return changed_within_batch(data, rng)
        if name.endswith(".idx"):
            return changed_index(data, rng)
        if name == "MANIFEST":
            return changed_manifest(data, rng)
    return changed(data, rng)


# --- doing all that a user may --------------------------------------------------------------------


def use(opened: Callable[[], Store]) -> None:
    """Read, verify, go on, mend, read again."""
    for do in (_read, _verify, _save, _mend, _read, _save, _collect):
        with contextlib.suppress(SnapstoreError), opened() as store:
            do(store)


def _read(store: Store) -> None:
    with contextlib.suppress(SnapstoreError):
        told(store)
    for info in store.sessions():
        with contextlib.suppress(SnapstoreError):
            for turn in store.session(info.name).log():
                list(turn.history)
                dict(turn.scratchpad)
    list(store.engine.reflog())


def _verify(store: Store) -> None:
    store.verify(quick=True)
    store.verify()
    store.stats()


def _save(store: Store) -> None:
    for name in ("new", "fix-login"):
        with contextlib.suppress(SnapstoreError):
            session = store.session(name)
            session.history.append("and on")
            session.save()
            session.undo()


def _mend(store: Store) -> None:
    repair(store, apply=True)
    recover(store)


def _collect(store: Store) -> None:
    store.gc(apply=True, grace=timedelta(0))


# --- the cases ------------------------------------------------------------------------------------


def in_directory(rng: random.Random, folder: Path) -> None:
    files = dict(unpacked(FIXTURES / f"store-{VERSION}.tar.gz"))
    if rng.randrange(3) == 0:  # the indexes of an active segment lie in cache/
        files = {name.replace("log/00000004.idx", "cache/00000004.0-1173.idx"): data
                 for name, data in files.items()}  # fmt: skip
    name = rng.choice(sorted(files))
    files[name] = hurt(name.rpartition("/")[2], files[name], rng)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    use(lambda: Store(LogEngine(folder, durable=False, links=links, lock_timeout=1.0)))


def in_bucket(rng: random.Random, _: Path) -> None:
    bucket = Bucket.in_memory()
    files = unpacked(FIXTURES / f"bucket-{VERSION}.tar.gz")
    name = rng.choice(sorted(files))
    for key, data in files.items():
        bucket.put(key, hurt(key, data, rng) if key == name else data)
    use(lambda: Store(ObjectStoreEngine(bucket, links=links)))


def in_bundle(rng: random.Random, folder: Path) -> None:
    data = (FIXTURES / f"bundle-{VERSION}").read_bytes()
    if rng.randrange(4):
        whole = changed_within_batch(data[:-32], rng, data.index(fmt.MAGIC))
        data = whole + blake3(whole).digest()
    else:
        data = changed(data, rng)
    path = folder / "bundle"
    path.write_bytes(data)
    into = Store(MemoryEngine())
    with contextlib.suppress(SnapstoreError), open_bundle(path, into) as found:
        carry(found, into)
    assert [p for p in into.verify() if not p.harmless] == []


KINDS = {"store": in_directory, "bucket": in_bucket, "bundle": in_bundle}


def failures(kind: str, seeds: range) -> Iterator[tuple[int, str]]:
    """The seeds whose case raises what it must not, and what that is."""
    for seed in seeds:
        folder = Path(tempfile.mkdtemp())
        try:
            KINDS[kind](random.Random(f"{kind} {seed}"), folder)
        except Exception:
            yield seed, traceback.format_exc()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _forbid(event: str, args: tuple[Any, ...]) -> None:
    if event in _FORBIDDEN:
        raise AssertionError(f"{event} {args}")


def main() -> int:
    """Run the cases that the command line names."""
    kind, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    list(failures(kind, range(-3, 0)))  # so that everything is imported
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    sys.addaudithook(_forbid)
    found = 0
    for seed, told_of in failures(kind, range(first, first + count)):
        found += 1
        sys.stdout.write(f"{kind} {seed}: {told_of}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
