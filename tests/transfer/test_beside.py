"""What a harness keeps beside a transcript comes in with it and goes out with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from transcripts import TALK, said, text, user, written

from snapstore import Corrupt, Store, formats
from snapstore.store import open_store
from snapstore.transfer.beside import agents_beside, files_beside, main_of
from snapstore.transfer.exports import Export, Wish, export
from snapstore.transfer.imports import Imported, import_transcript
from snapstore.transfer.install import install

FILES = {
    "tool-results/out.txt": b"a large output\n" * 9000,
    "tool-results/deep/er.bin": b"\0\xff",
    "subagents/agent-1.meta.json": b"{}",
    "file-history/0123456789abcdef@v1": b"as it was",
}


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """A session with all that Claude Code may keep beside it."""
    root = tmp_path / "home"
    path = root / "projects" / "-w" / "S.jsonl"
    for name, content in FILES.items():
        where, _, rest = name.partition("/")
        is_backup = where == "file-history"
        place = root / where / "S" / rest if is_backup else path.with_suffix("") / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    path.write_bytes(written(TALK))
    agent = [user("x1", None, "errand", isSidechain=True), said("x2", "x1", text("done"))]
    (path.with_suffix("") / "subagents" / "agent-1.jsonl").write_bytes(written(agent))
    return path


@pytest.fixture
def store() -> Store:
    return open_store("memory://")


def bring(store: Store, path: Path, name: str = "t") -> Imported:
    beside = files_beside(path)
    return import_transcript(store, formats.read_file(path), name=name, beside=beside)[0]


def test_all_that_belongs_to_a_transcript_is_found(transcript: Path) -> None:
    assert files_beside(transcript) == FILES
    (agent,) = agents_beside(transcript)
    assert main_of(agent) == transcript
    assert main_of(transcript) is None


def test_links_are_not_followed(transcript: Path) -> None:
    (transcript.with_suffix("") / "tool-results" / "link").symlink_to("/etc/passwd")
    assert files_beside(transcript) == FILES


def test_a_transcript_alone_has_nothing_beside_it(tmp_path: Path) -> None:
    assert files_beside(tmp_path / "x.jsonl") == {}
    assert agents_beside(tmp_path / "x.jsonl") == []


def test_it_changes_no_turn_and_is_seen_when_it_changes(store: Store, transcript: Path) -> None:
    import_transcript(store, formats.read_file(transcript), name="t")
    head = store.session("t").head
    assert bring(store, transcript).created
    assert store.session("t").head == head
    assert not bring(store, transcript).created
    (transcript.with_suffix("") / "tool-results" / "new.txt").write_text("more")
    assert bring(store, transcript).created
    assert [info.name for info in store.sessions()] == ["t"]
    assert store.verify() == []


def test_it_goes_out_with_the_session_it_came_with(
    store: Store, transcript: Path, tmp_path: Path
) -> None:
    bring(store, transcript)
    for agent in agents_beside(transcript):
        import_transcript(store, formats.read_file(agent), name=f"t/{agent.stem}")
    found = store.revision("t")
    made = export(store, found.snapshot, "t", Wish("claude-code", beside=True))
    installed = install(made, tmp_path / "other")
    assert files_beside(installed.path) == FILES
    (agent,) = agents_beside(installed.path)
    assert agent.read_bytes() == agents_beside(transcript)[0].read_bytes()


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    made = Export("claude-code", b"", True, "S", "/w", beside={"../../../../out": b"x"})
    with pytest.raises(Corrupt):
        install(made, tmp_path / "home")
    assert not (tmp_path / "out").exists()
