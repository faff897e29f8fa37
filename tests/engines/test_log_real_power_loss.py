"""Power loss on a real file system, and a real full disk. These need root and loop devices."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from damage import files
from given import content, holds_turn, turn
from writers import WriterProcess, check_kept

from snapstore.engines.log.engine import LogEngine
from snapstore.errors import DiskError, SnapstoreError

SHUTDOWN = 0x8004587D
"""FS_IOC_SHUTDOWN: from now on nothing reaches the device any more."""
FLUSH_ALL, FLUSH_JOURNAL, FLUSH_NOTHING = 0, 1, 2

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root"),
]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def mounted(point: Path, *command: str) -> Iterator[Path]:
    """What a mount command mounts, for a while."""
    point.mkdir(exist_ok=True)
    try:
        _run("mount", *command, str(point))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"cannot mount here: {error}")
    try:
        yield point
    finally:
        if subprocess.run(["umount", str(point)], capture_output=True).returncode:
            _run("umount", "--lazy", str(point))


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A small disk with an empty ext4 on it."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("there is no mkfs.ext4")
    image = tmp_path / "disk"
    with image.open("wb") as file:
        file.truncate(48 << 20)
    _run("mkfs.ext4", "-q", "-F", str(image))
    return image


def lose_power(
    device: Path, point: Path, name: str, flush: int, *, lazy: bool
) -> list[tuple[str, str]]:
    """Two processes save; then the power goes. What they had acknowledged by then."""
    with mounted(point, "-o", "loop", str(device)):
        store = point / "store"
        seal_at = 64 << 20 if lazy else 20_000  # sealing waits for the disk, lazy or not
        writers = [WriterProcess(store, f"{name}-{w}", seal_at, lazy=lazy) for w in range(2)]
        try:
            deadline = time.monotonic() + 20
            while not all(len(w.lines) >= 15 for w in writers) and time.monotonic() < deadline:
                time.sleep(0.002)
            fd = os.open(point, os.O_RDONLY)
            try:
                # What is said later does not count: a machine without power says nothing.
                acknowledged = [pair for writer in writers for pair in writer.said()]
                fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", flush))
            finally:
                os.close(fd)
        finally:
            for writer in writers:
                writer.kill()
    assert len(acknowledged) >= 30
    return acknowledged


def test_what_was_acknowledged_survives_real_power_loss(device: Path, tmp_path: Path) -> None:
    acknowledged: list[tuple[str, str]] = []
    flushes = [FLUSH_NOTHING, FLUSH_JOURNAL, FLUSH_NOTHING, FLUSH_ALL, FLUSH_NOTHING]
    for n, flush in enumerate(flushes):
        acknowledged += lose_power(device, tmp_path / "mnt", f"{n}", flush, lazy=False)
        with mounted(tmp_path / "mnt", "-o", "loop", str(device)) as point:
            check_kept(point / "store", acknowledged)
            engine = LogEngine(point / "store")
            turn(engine, "a", f"after loss {n}")
            engine.close()


def test_what_was_not_waited_for_is_lost_with_the_power(device: Path, tmp_path: Path) -> None:
    """Else the test above would prove nothing."""
    with mounted(tmp_path / "mnt", "-o", "loop", str(device)) as point:
        engine = LogEngine(point / "store")
        engine.create()
        engine.close()
    acknowledged = lose_power(device, tmp_path / "mnt", "lazy", FLUSH_NOTHING, lazy=True)
    with mounted(tmp_path / "mnt", "-o", "loop", str(device)) as point:
        with pytest.raises((AssertionError, SnapstoreError)):
            check_kept(point / "store", acknowledged)
        engine = LogEngine(point / "store")
        turn(engine, "a", "and on")
        assert [p for p in engine.verify() if not p.harmless] == []
        engine.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of one mebibyte."""
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as point:
        yield point


def test_a_full_disk_is_reported_and_costs_nothing(small: Path) -> None:
    root, ballast = small / "store", small / "ballast"
    ballast.write_bytes(bytes(200_000))
    engine = LogEngine(root, seal_at=100_000)
    done = 0
    with pytest.raises(DiskError) as full:
        while True:
            turn(engine, "a", f"turn {done}", content(os.urandom(3000)))
            done += 1
    assert full.value.errno == errno.ENOSPC
    assert done > 50
    before = files(root)
    with pytest.raises(DiskError):
        turn(engine, "a", f"turn {done}", content(os.urandom(9000)))
    assert files(root) == before
    assert all(holds_turn(engine, f"turn {i}") for i in range(done))
    assert list(engine.verify()) == []
    ballast.unlink()
    turn(engine, "a", "with room")
    engine.close()
    again = LogEngine(root)
    assert holds_turn(again, "with room")
    assert all(holds_turn(again, f"turn {i}") for i in range(done))
    assert list(again.verify()) == []
    assert not list(root.rglob("*.tmp"))
    again.close()


def test_no_store_is_made_on_a_full_disk(small: Path) -> None:
    ballast = small / "ballast"
    with pytest.raises(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    engine = LogEngine(small / "store")
    with pytest.raises(DiskError) as full:
        turn(engine, "a", "turn")
    assert full.value.errno == errno.ENOSPC
    ballast.unlink()
    turn(engine, "a", "turn")
    assert holds_turn(engine, "turn")
    engine.close()
