"""A real Ceph whose daemons are killed while writers save: nothing acknowledged is lost."""

from __future__ import annotations

import threading
import time

import pytest
from buckets import store_on
from servers.s3 import Ceph, Server

from snapstore import RefMoved, UnknownOutcome, Unreachable
from snapstore.engines.objectstore.client import Bucket

WRITERS = 4

pytestmark = pytest.mark.ceph


class Writer(threading.Thread):
    """Saves turns of a session of its own until it is told to stop, come what may."""

    def __init__(self, server: Server, url: str, name: str) -> None:
        super().__init__()
        self._store = store_on(Bucket.at(url, server.options()))
        self._name = name
        self.saved: list[str] = []
        self.refused = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            text = f"{len(self.saved)} of {self._name}"
            try:
                session = self._store.session(self._name)
                if text not in session.history[-1:]:
                    session.history.append(text)
                    session.save()
            except (Unreachable, UnknownOutcome, RefMoved):
                self.refused += 1
                continue
            self.saved.append(text)


@pytest.mark.parametrize(
    ("acknowledged", "times"), [(100, 2), pytest.param(1000, 6, marks=pytest.mark.slow)]
)
def test_killing_the_gateway_and_the_disk_loses_nothing(
    ceph_cluster: Ceph, acknowledged: int, times: int
) -> None:
    server, url = ceph_cluster.server, ceph_cluster.server.url()
    store_on(Bucket.at(url, server.options())).engine.create()
    writers = [Writer(server, url, f"writer{n}") for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    try:
        kills = 0
        while sum(len(writer.saved) for writer in writers) < acknowledged or kills < times:
            time.sleep(1.5)
            daemon = ("rgw", "osd")[kills % 2]
            ceph_cluster.run("kill", daemon)
            time.sleep(0.3)
            ceph_cluster.run("revive", daemon)
            kills += 1
            assert kills < 60
    finally:
        for writer in writers:
            writer.stopping.set()
        for writer in writers:
            writer.join()
    store = store_on(Bucket.at(url, server.options()))
    for n, writer in enumerate(writers):
        history = list(store.session(f"writer{n}").history)
        assert history[: len(writer.saved)] == writer.saved
        assert len(history) - len(writer.saved) <= 1  # one that was kept and not acknowledged
    assert store.verify() == []
