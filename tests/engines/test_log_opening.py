"""Opening a local store: what is there, what is not, and what is somebody else's."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest
from damage import QuickDisk, batches, files, segment_path
from given import NOWHERE, content, head, holds_turn, save, turn

from snapstore.disk import network_filesystem
from snapstore.engines.log import engine as log
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.errors import Corrupt, ObjectMissing, RefMoved, Refused, UnsupportedFormat


def everything(base: Path) -> dict[str, tuple[int, int]]:
    """Every path below base, its mode and its time."""
    return {str(p): (p.lstat().st_mode, p.lstat().st_mtime_ns) for p in [base, *base.rglob("*")]}


class TestToRead:
    def test_a_place_with_no_store_makes_none(self, tmp_path: Path) -> None:
        before = everything(tmp_path)
        engine = LogEngine(tmp_path / "no" / "store")
        assert not engine.exists()
        assert engine.tip("a") is None
        assert engine.move("a", 1) is None
        assert list(engine.tips()) == []
        assert list(engine.reflog()) == []
        assert list(engine.ids(b"", 0)) == []
        assert list(engine.verify()) == []
        assert engine.stats().objects == engine.stats().bytes == 0
        assert not engine.contains(NOWHERE)
        with pytest.raises(ObjectMissing):
            engine.read(NOWHERE)
        engine.close()
        assert everything(tmp_path) == before

    def test_a_store_changes_nothing_in_it(self, root: Path) -> None:
        engine = LogEngine(root)
        for i in range(5):
            turn(engine, "a", f"turn {i}")
        engine.close()
        before = everything(root)
        engine = LogEngine(root)
        assert engine.exists()
        assert all(holds_turn(engine, f"turn {i}") for i in range(5))
        assert len(list(engine.reflog())) == 5
        assert list(engine.verify()) == []
        engine.close()
        assert everything(root) == before

    def test_a_store_that_appears_later_is_seen(self, root: Path) -> None:
        early, maker = LogEngine(root), LogEngine(root)
        turn(maker, "a", "first")
        assert holds_turn(early, "first")
        early.close()
        maker.close()


class TestMakingAStore:
    def test_is_private_whatever_the_umask(self, root: Path) -> None:
        before = os.umask(0)
        try:
            engine = LogEngine(root / "deep" / "down", seal_at=600)
            for i in range(12):
                turn(engine, "a", f"turn {i}")
            engine.close()
        finally:
            os.umask(before)
        for path in [root, *root.rglob("*")]:
            wanted = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == wanted, path

    def test_is_possible_under_a_umask_that_forbids_everything(self, root: Path) -> None:
        before = os.umask(0o777)
        try:
            engine = LogEngine(root)
            turn(engine, "a", "turn")
            engine.close()
        finally:
            os.umask(before)
        assert {stat.S_IMODE(p.stat().st_mode) for p in root.rglob("*") if p.is_file()} == {0o600}

    def test_can_be_asked_for_without_a_commit_and_again(self, root: Path) -> None:
        engine = LogEngine(root)
        engine.create()
        before = files(root)
        engine.create()
        LogEngine(root).create()
        assert files(root) == before
        assert engine.exists()

    def test_happens_in_an_empty_directory(self, root: Path) -> None:
        root.mkdir()
        turn(LogEngine(root), "a", "turn")
        assert head(LogEngine(root), "a") is not None

    def test_is_refused_in_a_directory_of_something_else(self, root: Path) -> None:
        root.mkdir()
        (root / "thesis.txt").write_text("years of work")
        before = everything(root)
        with pytest.raises(Refused, match=r"thesis\.txt"):
            turn(LogEngine(root), "a", "turn")
        assert everything(root) == before

    def test_is_refused_in_the_place_of_a_file(self, root: Path) -> None:
        root.write_text("not a directory")
        with pytest.raises(Refused):
            LogEngine(root).create()
        assert root.read_text() == "not a directory"

    def test_is_not_done_for_a_commit_that_is_refused(self, tmp_path: Path, root: Path) -> None:
        before = everything(tmp_path)
        with pytest.raises(RefMoved):
            LogEngine(root).commit([content(b"a")], save("a", NOWHERE, expect=NOWHERE))
        assert everything(tmp_path) == before


class TestFormat:
    @pytest.mark.parametrize(
        "line", [b"snapstore 2 blake3\n", b"snapstore 1 sha256\n", b"", b"\xff"]
    )
    def test_of_another_version_is_left_alone(self, root: Path, line: bytes) -> None:
        turn(LogEngine(root), "a", "turn")
        (root / "FORMAT").write_bytes(line)
        before = everything(root)
        with pytest.raises(UnsupportedFormat):
            LogEngine(root)
        assert everything(root) == before

    def test_that_changes_under_an_early_handle_is_left_alone(self, root: Path) -> None:
        early = LogEngine(root)
        root.mkdir()
        (root / "FORMAT").write_bytes(b"snapstore 2 blake3\n")
        before = everything(root)
        with pytest.raises(UnsupportedFormat):
            turn(early, "a", "turn")
        assert everything(root) == before

    def test_of_a_batch_of_another_version_is_left_alone(self, root: Path) -> None:
        turn(LogEngine(root), "a", "turn")
        log_file = segment_path(root)
        data = bytearray(log_file.read_bytes())
        *_, (start, _) = batches(log_file)
        data[start + 4] = 2
        data[start + 32 : start + 36] = crc32(data[start : start + 32]).to_bytes(4, "little")
        log_file.write_bytes(data)
        before = files(root)
        with pytest.raises(UnsupportedFormat):
            turn(LogEngine(root), "a", "turn")
        assert files(root) == before


class TestManifest:
    @pytest.fixture(params=["missing", "garbled", "empty", "no JSON", "zeros"])
    def damaged(self, request: pytest.FixtureRequest, root: Path) -> Path:
        """A store of several segments with a damaged manifest."""
        engine = LogEngine(root, seal_at=700, disk=QuickDisk())
        for i in range(20):
            turn(engine, "a", f"turn {i}")
        engine.close()
        manifest = Layout(root).manifest
        whole = manifest.read_bytes()
        if request.param == "missing":
            manifest.unlink()
        else:
            manifest.write_bytes(
                {
                    "garbled": whole.replace(b"[1, 2", b"[1, 9"),
                    "empty": b"",
                    "no JSON": b"[]",
                    "zeros": bytes(len(whole)),
                }[request.param]
            )
        return manifest

    def test_that_is_damaged_leaves_everything_readable(self, root: Path, damaged: Path) -> None:
        engine = LogEngine(root)
        assert all(holds_turn(engine, f"turn {i}") for i in range(20))
        assert len(list(engine.reflog())) == 20

    def test_that_is_damaged_stops_every_save(self, root: Path, damaged: Path) -> None:
        before = files(root)
        engine = LogEngine(root)
        for _ in range(2):
            with pytest.raises(Corrupt) as refused:
                turn(engine, "a", "on top")
            assert refused.value.path == str(damaged)
        engine.close()
        assert files(root) == before

    def test_that_is_damaged_is_reported(self, root: Path, damaged: Path) -> None:
        problems = [p for p in LogEngine(root).verify() if not p.harmless]
        assert [(p.kind, p.path) for p in problems] == [("manifest", str(damaged))]

    def test_that_is_damaged_while_the_last_segment_is_sealed_still_reads(self, root: Path) -> None:
        """As a crash between the steps of sealing leaves it."""
        engine = LogEngine(root, seal_at=700, disk=QuickDisk())
        for i in range(20):
            turn(engine, "a", f"turn {i}")
        engine.close()
        segment_path(root, Manifest.read(Layout(root).manifest).segments[-1]).unlink()
        Layout(root).manifest.unlink()
        engine = LogEngine(root)
        assert holds_turn(engine, "turn 0")
        with pytest.raises(Corrupt):
            turn(engine, "a", "on top")

    def test_names_the_generation_and_the_segments(self, root: Path) -> None:
        engine = LogEngine(root, seal_at=700, disk=QuickDisk())
        for i in range(20):
            turn(engine, "a", f"turn {i}")
        found = Manifest.read(Layout(root).manifest)
        assert found.generation == len(found.segments) == len(list((root / "log").glob("*.seg")))


class TestNetworkFileSystem:
    @pytest.fixture
    def mounts(self, tmp_path: Path) -> Path:
        """A mount table."""
        table = tmp_path / "mounts"
        table.write_text(
            "/dev/sda1 / ext4 rw 0 0\n"
            "server:/export /home nfs4 rw 0 0\n"
            "/dev/sdb /home/local xfs rw 0 0\n"
            "//server/share /mnt/the\\040share cifs rw 0 0\n"
            "sshfs /mnt/a\\134b fuse.sshfs rw 0 0\n"
            "tmpfs /tmp tmpfs rw 0 0\n"
            "broken line\n"
        )
        return table

    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("/var/store", None),
            ("/home/me/store", "nfs4"),
            ("/home", "nfs4"),
            ("/home/local/store", None),
            ("/home/localities/store", "nfs4"),
            ("/mnt/the share/store", "cifs"),
            ("/mnt/a\\b/store", "fuse.sshfs"),
            ("/tmp/store", None),
        ],
    )
    def test_is_known_from_the_mount_table(self, mounts: Path, path: str, kind: str | None) -> None:
        assert network_filesystem(Path(path), mounts) == kind

    def test_is_not_known_without_a_mount_table(self, tmp_path: Path) -> None:
        assert network_filesystem(tmp_path, tmp_path / "none") is None

    def test_is_warned_of(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(log, "network_filesystem", lambda path: "nfs4")
        with pytest.warns(UserWarning, match="nfs4"):
            engine = LogEngine(root)
            engine.create()
        assert "nfs4" in engine.warnings[0]

    def test_is_not_warned_of_on_a_local_disk(self, root: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            engine = LogEngine(root)
            engine.create()
        assert engine.warnings == ()


def test_stats_count_segments_and_not_indexes(root: Path, log_at: Callable[..., LogEngine]) -> None:
    engine = log_at(seal_at=700)
    for i in range(20):
        turn(engine, "a", f"turn {i}")
    sizes = [path.stat().st_size for path in (root / "log").glob("*.seg")]
    assert engine.stats().bytes == sum(sizes)
    assert list((root / "log").glob("*.idx"))


def test_what_a_killed_writer_left_unnamed_is_removed_by_the_next(
    root: Path, log_at: Callable[..., LogEngine]
) -> None:
    log_at().create()
    for name in (
        "MANIFEST.tmp",
        "log/00000002.seg.tmp",
        "log/00000001.idx.77.tmp",
        "cache/x.idx.77.tmp",
    ):
        (root / name).write_bytes(b"half")
    assert head(log_at(), "a") is None
    assert len(list(root.rglob("*.tmp"))) == 4
    turn(log_at(), "a", "turn")
    assert list(root.rglob("*.tmp")) == []
