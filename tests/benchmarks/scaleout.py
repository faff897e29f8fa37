"""What the object-store engine does, measured on a server on this machine.

    python -m tests.benchmarks.scaleout [--server moto|ceph] [--quick]

Saves are of turns of about 12 KB of JSON. Saves a second are measured without anything in between,
requests and bytes through a relay that counts them. Times on loopback say what the engine and the
server need; a network adds its round trips, two to a save.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # where the servers for the tests are

from servers import s3
from servers.relay import CountingRelay

import snapstore
from snapstore.maintenance.purge import purge
from snapstore.store import Store
from tests.benchmarks.workload import clock, scratch, show, turn

Row = tuple[str, str, str]

TURN = 12_000
"""Bytes of JSON in a turn."""


@contextmanager
def serving(name: str) -> Iterator[s3.Server]:
    """A server of this kind."""
    if name == "ceph":
        with s3.ceph() as cluster:
            yield cluster.server
    else:
        with s3.moto() as server:
            yield server


def opened(
    server: s3.Server, url: str, port: int | None = None, cache: Path | None = None
) -> Store:
    """A handle, with a cache only if one is given."""
    return snapstore.open(url, cache=cache or False, options=server.options(port))


def fill(store: Store, name: str, turns: int) -> int:
    """Save so many turns; the bytes of their JSON."""
    import json

    session = store.session(name)
    raw = 0
    for n in range(turns):
        new = turn(n, TURN)
        raw += len(json.dumps(new, separators=(",", ":")))
        session.history.extend(new)
        session.save()
    return raw


def requests_of_saving(server: s3.Server, turns: int) -> list[Row]:
    """PUTs and bytes of a warm save, merging included."""
    with CountingRelay(server.port) as relay:
        store = opened(server, server.url(), relay.port)
        fill(store, "counted", 1)
        relay.forget()
        raw = fill(store, "counted", turns)
        others = sum(relay.requests.values()) - relay.requests["PUT"]
        # The second session was looked up once before its first save.
        return [
            ("PUT requests a save, merging included", f"{relay.requests['PUT'] / turns:.2f}", "2"),
            ("other requests a save", f"{(others - 1) / turns:.3f}", "0"),
            ("bytes sent a save / bytes of its JSON", f"{relay.bytes['up'] / raw:.2f}", ""),
        ]


def loading(server: s3.Server, turns: int) -> list[Row]:
    """What a fresh machine needs to go on with a long session."""
    url = server.url()
    raw = fill(opened(server, url), "long", turns)
    rows: list[Row] = []
    with CountingRelay(server.port) as relay, scratch() as cache:

        def head() -> None:
            assert opened(server, url, relay.port).session("long").turn == turns

        def whole(cached: Path | None = None) -> None:
            history = opened(server, url, relay.port, cached).session("long").history
            assert len(list(history)) == 4 * turns

        for what, act, most in (
            (f"HEAD of {turns:,} turns, nothing cached", head, "3 requests"),
            (f"history of {turns:,} turns, nothing cached", whole, "64 requests"),
            ("the same, filling a cache", lambda: whole(cache), "64 requests"),
            ("the same, from the cache", lambda: whole(cache), ""),
        ):  # fmt: skip
            relay.forget()
            took = clock(act)
            moved = relay.bytes["down"] / raw
            asked = sum(relay.requests.values())
            told = f"{asked} requests, {moved:.2f} of the JSON, {took * 1e3:.0f} ms"
            rows.append((what, told, most))
    return rows


def purging(server: s3.Server, turns: int) -> Row:
    """A text taken out of the first turn of a long session, and so out of all that follow."""
    url = server.url()
    store = opened(server, url)
    session = store.session("long")
    session.history.append("the-leaked-key-42")
    session.save()
    fill(store, "long", turns - 1)
    with CountingRelay(server.port) as relay:
        there = opened(server, url, relay.port)
        took = clock(lambda: purge(there, "the-leaked-key-42", apply=True))
        asked = sum(relay.requests.values())
    return (f"purge of {turns:,} turns", f"{asked:,} requests, {took:.1f} s", "")


_WRITER = """
import sys, time, snapstore
sys.path.insert(0, sys.argv[4])
from tests.benchmarks.workload import turn
session = snapstore.open(sys.argv[1], cache=False).session(sys.argv[2])
session.save()
print("ready", flush=True); sys.stdin.readline()
done, end = 0, time.perf_counter() + float(sys.argv[3])
while time.perf_counter() < end:
    session.history.extend(turn(done, 12_000)); session.save(); done += 1
print(done)
"""


def writers(server: s3.Server, count: int, seconds: float) -> Row:
    """Saves a second of processes with a session each."""
    url, root = server.url(), str(Path(__file__).parents[2])
    children = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, url, f"w{n}", str(seconds), root],
            env=os.environ | server.environment(),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for n in range(count)
    ]  # fmt: skip
    for child in children:
        assert child.stdout and child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    saved = sum(int(child.communicate()[0]) for child in children)
    return (f"saves a second, {count} writer{'s' * (count > 1)}", f"{saved / seconds:,.0f}", "")


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--server", choices=("moto", "ceph"), default="moto")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    chosen = parser.parse_args()
    scale = 10 if chosen.quick else 1
    with serving(chosen.server) as server:
        print(f"on {server.name}, {time.strftime('%Y-%m-%d')}\n")
        rows = [writers(server, 1, 5 / scale), writers(server, 8, 5 / scale)]
        rows += requests_of_saving(server, 500 // scale)
        rows += loading(server, 3000 // scale)
        rows.append(purging(server, 3000 // scale))
    show(rows)


if __name__ == "__main__":
    main()
