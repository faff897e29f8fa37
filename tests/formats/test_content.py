"""Files that are read where they lie hold the same as those in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transcripts import ROLLOUT, TALK, said, text, user, written

from snapstore import InvalidInput, formats
from snapstore.formats.content import InMemory, OnDisk


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([b"", b"a", b"bc", b"\r", b"\0"])).map(b"\n".join), st.data())
def test_lines_and_pieces_are_the_same(tmp_path: Path, data: bytes, draw: st.DataObject) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    disk, memory = OnDisk(path), InMemory(data)
    assert list(disk.lines()) == list(memory.lines()) == data.split(b"\n")
    assert disk.size == memory.size == len(data)
    for _ in range(4):
        start = draw.draw(st.integers(0, len(data)))
        end = draw.draw(st.integers(start, len(data)))
        assert disk.read(start, end) == memory.read(start, end) == data[start:end]


def test_what_is_appended_while_it_is_read_is_not_seen(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo")
    content = OnDisk(path)
    with path.open("ab") as file:
        file.write(b" and more\nthree\n")
    assert list(content.lines()) == [b"one", b"two"]


def test_a_file_that_is_cut_shorter_meanwhile_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\n")
    content = OnDisk(path)
    path.write_bytes(b"one\n")
    with pytest.raises(InvalidInput, match="cut shorter"):
        content.read(4, 8)


@pytest.mark.parametrize("rows", [TALK, ROLLOUT, [*TALK, said("a5", "a4", text("long " * 900))]])
def test_a_large_transcript_is_told_as_a_small_one(
    tmp_path: Path, rows: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(written([*rows, user("u9", None, "x" * 3000, cwd="/w" * 300)]) + b"{torn")
    small = formats.read_file(path)
    monkeypatch.setattr(formats, "_LARGE", 0)
    large = formats.read_file(path)
    for fact in ("harness", "rows", "warnings", "spoken", "sessions"):
        assert getattr(large, fact) == getattr(small, fact)
