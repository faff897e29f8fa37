"""Of those who move one ref at the same time exactly one succeeds, on every server."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from buckets import engine_on
from given import head, save, snapshot
from servers.s3 import Server

from snapstore.engine import Engine
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.memory import MemoryEngine
from snapstore.engines.objectstore.client import Bucket
from snapstore.errors import RefMoved

WRITERS = 8


def winners(handles: list[Engine], rounds: int) -> list[int]:
    """How many of the writers succeeded in each round; all start from the same head."""
    together = Barrier(len(handles))

    def write(me: int) -> list[bool]:
        won: list[bool] = []
        for n in range(rounds):
            expected = head(handles[me], "shared")
            new = snapshot(b"round %d of %d" % (n, me))
            together.wait()
            try:
                handles[me].commit([new], save("shared", new.id, expected))
                won.append(True)
            except RefMoved:
                won.append(False)
            together.wait()
        return won

    with ThreadPoolExecutor(len(handles)) as pool:
        outcomes = list(pool.map(write, range(len(handles))))
    return [sum(outcome) for outcome in zip(*outcomes, strict=True)]


def race(make: Callable[[], Engine], rounds: int) -> None:
    handles = [make() for _ in range(WRITERS)]
    try:
        assert winners(handles, rounds) == [1] * rounds
        assert [move.gen for move in handles[0].reflog()] == [*range(rounds, 0, -1)]
    finally:
        for handle in handles:
            handle.close()


def test_in_memory() -> None:
    shared = MemoryEngine()
    with ThreadPoolExecutor(1):
        assert winners([shared] * WRITERS, 200) == [1] * 200


def test_in_a_local_log(root) -> None:
    race(lambda: LogEngine(root, durable=False), 200)


def test_in_a_bucket_in_memory() -> None:
    bucket = Bucket.in_memory()
    race(lambda: engine_on(bucket), 200)


def test_on_moto(moto: Server) -> None:
    url = moto.url()
    race(lambda: engine_on(Bucket.at(url, moto.options())), 12)


@pytest.mark.slow
def test_on_moto_for_long(moto: Server) -> None:
    url = moto.url()
    race(lambda: engine_on(Bucket.at(url, moto.options())), 200)


@pytest.mark.ceph
@pytest.mark.parametrize("rounds", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_on_ceph(ceph: Server, rounds: int) -> None:
    url = ceph.url()
    race(lambda: engine_on(Bucket.at(url, ceph.options())), rounds)
