"""Where a file of the store should be there is something else: nothing waits for it for ever."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from damage import QuickDisk
from given import turn

from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.errors import Corrupt, DiskError, SnapstoreError
from snapstore.plainfile import read_plain

IN_PLACE: dict[str, Callable[[Path], None]] = {
    "a FIFO": os.mkfifo,
    "a directory": lambda path: path.mkdir(),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}
NEEDED = ["FORMAT", "MANIFEST", "log/00000001.seg", "log/00000002.seg"]
THROW_AWAY = ["log/00000001.idx", "cache/checked", "cache/damage"]


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """What waits for ever fails instead."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def store(root: Path) -> Path:
    """A store with a few segments."""
    engine = LogEngine(root, disk=QuickDisk(), seal_at=600)
    for i in range(12):
        turn(engine, "a", f"turn {i}")
    engine.close()
    return root


def replace(path: Path, put: Callable[[Path], None]) -> None:
    path.unlink(missing_ok=True)
    put(path)


@pytest.mark.parametrize("put", IN_PLACE.values(), ids=IN_PLACE)
@pytest.mark.parametrize("name", NEEDED)
def test_what_is_needed_is_named_as_damage(
    store: Path, name: str, put: Callable[[Path], None]
) -> None:
    replace(store / name, put)
    with pytest.raises(Corrupt, match=name) as met:
        engine = LogEngine(store)
        turn(engine, "a", "on top")
    assert met.value.path == str(store / name)
    assert "something else" in str(met.value)


@pytest.mark.parametrize("put", IN_PLACE.values(), ids=IN_PLACE)
@pytest.mark.parametrize("name", THROW_AWAY)
def test_what_is_made_anew_does_not_matter(
    store: Path, name: str, put: Callable[[Path], None]
) -> None:
    replace(store / name, put)
    engine = LogEngine(store, disk=QuickDisk(), seal_at=600)
    for i in range(12, 20):
        turn(engine, "a", f"turn {i}")
    assert [p for p in engine.verify() if not p.harmless and p.kind != "index"] == []
    engine.close()


@pytest.mark.parametrize("put", IN_PLACE.values(), ids=IN_PLACE)
def test_the_lock_may_be_anything_that_can_be_locked(
    store: Path, put: Callable[[Path], None]
) -> None:
    replace(Layout(store).lock, put)
    engine = LogEngine(store, disk=QuickDisk())
    try:
        turn(engine, "a", "on")
    except SnapstoreError as error:
        assert str(Layout(store).lock) in str(error)
    engine.close()


@pytest.mark.parametrize("name", ["FORMAT", "MANIFEST", "log/00000002.seg"])
def test_what_another_user_made_his_own_is_told(
    store: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.open

    def closed(path: str | Path, *args: int) -> int:
        if Path(path) == store / name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return whole(path, *args)

    monkeypatch.setattr(os, "open", closed)
    with pytest.raises(DiskError, match=f"opening .*{name} failed: Permission denied") as told:
        LogEngine(store).tip("a")
    assert told.value.errno == errno.EACCES


def test_a_plain_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(3 << 20))
    assert read_plain(path) == path.read_bytes()
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "none")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "free some space"), (errno.EACCES, "mode"), (errno.EPERM, "mode"),
        (errno.EROFS, "read-only"), (errno.ENOTDIR, "directory"), (errno.EMFILE, "ulimit"),
        (errno.EIO, "the disk"), (None, "the disk"),
    ],
)  # fmt: skip
def test_the_hint_fits_what_the_operating_system_said(number: int | None, words: str) -> None:
    hint = DiskError("writing failed", number).hint
    assert words in hint
    assert ("free some space" in hint) == (number == errno.ENOSPC)
    assert DiskError("writing failed", number, hint="another").hint == "another"
