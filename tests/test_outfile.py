"""Files that are written where a user asked for them."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from snapstore.disk import Disk
from snapstore.errors import DiskError
from snapstore.outfile import put, put_new


def mode(path: Path) -> int:
    """The permission bits of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file(tmp_path: Path) -> None:
    assert put(tmp_path / "out", [b"one ", b"two"]) == 7
    assert (tmp_path / "out").read_bytes() == b"one two"
    assert mode(tmp_path / "out") == 0o600
    put(tmp_path / "open", [b""], mode=0o644)
    assert mode(tmp_path / "open") == 0o644


@pytest.mark.parametrize("bits", [0o644, 0o600, 0o755, 0o440])
def test_a_file_that_is_there_keeps_its_mode_and_is_replaced_whole(
    tmp_path: Path, bits: int
) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"old")
    out.chmod(bits)
    with out.open("rb") as reader:
        put(out, [b"new"], mode=0o604)
        assert reader.read() == b"old"
    assert (out.read_bytes(), mode(out)) == (b"new", bits)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_that_is_there_keeps_its_owner(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"old")
    os.chown(out, 4711, 4712)
    put(out, [b"new"])
    assert (out.stat().st_uid, out.stat().st_gid) == (4711, 4712)


def test_files_beside_it_are_left_alone(tmp_path: Path) -> None:
    beside = [tmp_path / name for name in ("out.tmp", ".out.tmp", f".out.{os.getpid()}.tmp")]
    for path in beside:
        path.write_bytes(b"precious")
    put(tmp_path / "out", [b"new"])
    put_new(tmp_path / "other", b"new")
    assert {path.read_bytes() for path in beside} == {b"precious"}
    assert len(list(tmp_path.iterdir())) == 5


def test_what_a_link_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    for name, leads_to in (("first", "second"), ("second", "folder/target")):
        (tmp_path / name).symlink_to(leads_to)
    for data in (b"made", b"replaced"):
        put(tmp_path / "first", [data])
        assert target.read_bytes() == data
        assert (tmp_path / "first").is_symlink() and (tmp_path / "second").is_symlink()
    assert list((tmp_path / "folder").iterdir()) == [target]


def test_a_device_stays_one(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    before = Path(os.devnull).stat()
    assert put(link, [b"gone"]) == 4
    assert link.is_symlink()
    assert os.path.samestat(Path(os.devnull).stat(), before)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_device_that_takes_nothing_is_named() -> None:
    with pytest.raises(DiskError, match="writing /dev/full failed: No space left"):
        put(Path("/dev/full"), [b"data"])


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe, link, got = tmp_path / "pipe", tmp_path / "link", []
    os.mkfifo(pipe)
    link.symlink_to("pipe")
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    put(link, [b"one ", b"two"])
    reader.join(timeout=20)
    assert got == [b"one two"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_that_nobody_reads_any_more(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def pieces() -> Iterator[bytes]:
        os.close(reader)
        yield b"x"

    with pytest.raises(BrokenPipeError):
        put(pipe, pieces())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors have no names here")
def test_a_file_without_a_name_is_written_into(tmp_path: Path) -> None:
    with (tmp_path / "gone").open("w+b") as file:
        (tmp_path / "gone").unlink()
        put(Path(f"/proc/self/fd/{file.fileno()}"), [b"data"])
        assert file.read() == b"data"
    assert list(tmp_path.iterdir()) == []


class Broken(Disk):
    """A disk that fails at one call."""

    def __init__(self, at: str) -> None:
        def fail(*_: object) -> None:
            raise DiskError("no", 28)

        setattr(self, at, fail)


@pytest.mark.parametrize("at", ["create_at", "append", "set_mode", "sync", "rename_at"])
def test_when_the_disk_fails_nothing_changes(tmp_path: Path, at: str) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"old")
    with pytest.raises(DiskError, match=f"writing {out} failed: No space left"):
        put(out, [b"new"], disk=Broken(at))
    assert out.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DiskError("reading failed", 5)])
def test_when_the_pieces_end_early_nothing_changes(tmp_path: Path, error: BaseException) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise error

    with pytest.raises(type(error)) as raised:
        put(tmp_path / "out", pieces())
    assert raised.value is error  # what cannot be read is not told as what cannot be written
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_replaces_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    put_new(out, b"first")
    with pytest.raises(FileExistsError):
        put_new(out, b"second")
    assert (out.read_bytes(), mode(out)) == (b"first", 0o600)
    with pytest.raises(DiskError):
        put_new(tmp_path / "third", b"third", Broken("sync"))
    assert list(tmp_path.iterdir()) == [out]
