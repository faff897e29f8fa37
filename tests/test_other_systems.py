"""What is done otherwise on systems other than Linux, as far as it can be tried on one."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from snapstore import disk
from snapstore.errors import DiskError
from snapstore.worktree import guard


class MacFcntl:
    """The part of fcntl that macOS has and others have not."""

    F_FULLFSYNC = 51

    def __init__(self, failure: OSError | None = None) -> None:
        self.synced: list[tuple[int, int]] = []
        self._failure = failure

    def fcntl(self, fd: int, command: int) -> None:
        if self._failure is not None:
            raise self._failure
        self.synced.append((fd, command))


def test_on_macos_a_sync_reaches_the_drive_and_not_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mac = MacFcntl()
    monkeypatch.setattr(disk, "fcntl", mac)
    monkeypatch.setattr(sys, "platform", "darwin")
    fd = os.open(tmp_path / "f", os.O_CREAT | os.O_RDWR)
    disk.Disk().sync(fd)
    os.close(fd)
    assert mac.synced == [(fd, MacFcntl.F_FULLFSYNC)]


def test_on_macos_a_sync_that_fails_is_told_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "fcntl", MacFcntl(OSError(errno.EIO, "broken")))
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(DiskError) as failed:
        disk.Disk().sync(-1)
    assert failed.value.errno == errno.EIO


def test_a_directory_gets_its_mode_where_none_can_be_opened_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d").mkdir(mode=0o700)
    monkeypatch.delattr(os, "O_PATH")
    folder = os.open(tmp_path, os.O_RDONLY)
    disk.Disk().set_dir_mode_at(folder, b"d", 0o750)
    os.close(folder)
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o750


def test_windows_has_no_home_of_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert guard._account_home() is None
