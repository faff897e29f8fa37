"""Repeating a save on a local store: what it returns as saved is durable, whoever wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapstore.disk import Disk
from snapstore.engines.log.engine import LogEngine
from snapstore.store import Store


class Killed(BaseException):
    """The process ends here."""


class DyingBeforeItsSync(Disk):
    """A disk whose process is killed when a batch is written and not yet synced."""

    written = False

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        super().write_at(fd, data, offset)
        self.written = True

    def sync(self, fd: int) -> None:
        if self.written:
            raise Killed
        super().sync(fd)


class CountingSyncs(Disk):
    """The real disk, counting what it synced."""

    def __init__(self) -> None:
        self.syncs = 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)


def test_a_turn_that_its_writer_did_not_live_to_sync_is_synced_by_who_saves_it_again(
    tmp_path: Path,
) -> None:
    place = tmp_path / "store"
    with Store(LogEngine(place)) as store:
        first = store.session("s")
        first.history.append("one")
        first.save()
    dying = Store(LogEngine(place, disk=DyingBeforeItsSync()))
    session = dying.session("s")
    session.history.append("two")
    with pytest.raises(Killed):
        session.save()

    disk = CountingSyncs()
    with Store(LogEngine(place, disk=disk)) as store:
        again = store.session("s")
        assert list(again.history) == ["one", "two"]
        before = disk.syncs
        assert again.save().turn == 2
        assert disk.syncs == before + 1
        assert again.save().turn == 2
        assert disk.syncs == before + 1
