"""snapstore import: what becomes of files and folders, and what is said about it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import zstandard
from shell import Shell
from transcripts import codex, item, written

from snapstore_cli.reading import Reader


def row(uuid: str, parent: str | None, role: str, text: str, **more: Any) -> dict[str, Any]:
    content = text if role == "user" else [{"type": "text", "text": text}]
    return {
        "parentUuid": parent,
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": uuid,
        "timestamp": f"2030-01-01T00:00:{int(uuid[1:]):02}.000Z",
        "sessionId": "S1",
        "cwd": "/w",
        "isSidechain": False,
        **more,
    }


TALK = [
    row("u1", None, "user", "count the files"),
    row("a2", "u1", "assistant", "there are two"),
    row("u3", "a2", "user", "and the old way?"),
    row("a4", "u3", "assistant", "old answer"),
    row("u5", "a2", "user", "and the new way?"),
    row("a6", "u5", "assistant", "new answer"),
]


def write(path: Path, rows: list[dict[str, Any]], end: str = "") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + end)
    return str(path)


@pytest.fixture
def talk(tmp_path: Path) -> str:
    return write(tmp_path / "talk.jsonl", TALK)


def names(shell: Shell) -> list[str]:
    return [session["name"] for session in shell.ok("sessions", "--json").json["sessions"]]


def test_a_transcript_becomes_a_session_and_its_branches(shell: Shell, talk: str) -> None:
    found = shell.ok("import", talk, "--as", "t", "--json").json
    assert found == {
        "schema": 1,
        "sessions": [
            {
                "name": "t",
                "source": str(Path(talk).resolve()),
                "rows": 6,
                "turns": 2,
                "messages": 4,
                "branches": 2,
                "warnings": [],
                "created": True,
            }
        ],
        "skipped": [],
    }
    assert names(shell) == ["t", "t/branch-1"]
    log = shell.ok("log", "t", "--json").json["snapshots"]
    assert [(s["label"], s["time"]) for s in log] == [
        ("and the new way?", "2030-01-01T00:00:06Z"),
        ("count the files", "2030-01-01T00:00:02Z"),
    ]
    parted = shell.ok("diff", "t", "t/branch-1", "--json").json
    assert parted["base"]["turn"] == 1


def test_it_prints_a_line_a_session(shell: Shell, talk: str) -> None:
    first, again = (shell.ok("import", talk) for _ in range(2))
    told = ["count-the-files", "2 turns", "4 messages", "2 branches", "0 warnings"]
    assert first.rows == [[*told, "new", "talk.jsonl"]]
    assert again.rows == [[*told, "unchanged", "talk.jsonl"]]
    assert first.err == again.err == ""


def test_the_current_session_stays_what_it_was(shell: Shell, talk: str) -> None:
    shell.save("mine", {"role": "user", "content": "hi"})
    shell.ok("import", talk)
    assert shell.ok("status", "--json").json["session"] == "mine"


def test_warnings_are_counted_and_shown_when_they_are_few_or_asked_for(
    shell: Shell, tmp_path: Path
) -> None:
    cut = write(tmp_path / "cut.jsonl", TALK, end='{"type": "user", "mess')
    result = shell.ok("import", cut, "--as", "cut")
    assert result.rows[0][4] == "1 warning"
    assert "line 7: cut short at the end of the file" in result.err
    torn = write(tmp_path / "torn.jsonl", TALK, end="{\n" * 5)
    short, long = shell.ok("import", torn, "--as", "a"), shell.ok("import", torn, "--as", "b", "-v")
    assert "5 warnings; -v shows them" in short.err
    assert long.err.count("not JSON") == 5
    assert len(shell.ok("import", torn, "--as", "a", "--json").json["sessions"][0]["warnings"]) == 5


def test_a_folder_is_searched_and_what_is_no_session_is_passed_over(
    shell: Shell, tmp_path: Path
) -> None:
    folder = tmp_path / "projects"
    write(folder / "b" / "deep" / "one.jsonl", TALK)
    (folder / "a.json").write_text(json.dumps([{"role": "user", "content": "plain"}]))
    (folder / "package.json").write_text('{"name": "x"}')
    (folder / "notes.txt").write_text("not looked at")
    result = shell.ok("import", str(folder))
    assert [row[0] for row in result.rows] == ["plain", "count-the-files"]
    assert "passed over 1 file" in result.err
    found = shell.ok("import", str(folder), "--json").json
    assert [Path(skipped["path"]).name for skipped in found["skipped"]] == ["package.json"]
    assert "no session format" in found["skipped"][0]["reason"]


def test_a_folder_without_sessions_is_no_error(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = shell.ok("import", str(tmp_path / "empty"), "--json")
    assert result.json["sessions"] == []
    assert "no session found in " in result.err
    assert "since 7d" in shell.ok("import", str(tmp_path / "empty"), "--since", "7d").err


def test_a_store_is_no_folder_of_transcripts(shell: Shell) -> None:
    shell.save("a", "x")
    refused = shell("import", str(shell.store))
    assert refused.code == 2 and "`snapstore pull " in refused.err


def test_each_file_of_a_session_that_grew_tells_what_it_brought(
    shell: Shell, tmp_path: Path
) -> None:
    for n in (2, 4, 6):
        rows = [row(f"u{k}", f"u{k - 1}" if k > 1 else None, "user", f"{k}") for k in range(1, n)]
        write(tmp_path / "growing" / f"growth_{n}.jsonl", rows)
    rows_told = shell.ok("import", str(tmp_path / "growing")).rows
    assert [(told[1], told[5]) for told in rows_told] == [
        ("1 turn", "new"),
        ("3 turns", "2 new turns"),
        ("5 turns", "2 new turns"),
    ]
    assert [told[2] for told in rows_told] == ["1 message", "3 messages", "5 messages"]


@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_an_import_that_is_interrupted_tells_what_came_in(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, json_too: tuple[str, ...]
) -> None:
    for name in ("a", "b"):
        written = json.dumps([{"role": "user", "content": name}])
        (tmp_path / f"{name}.json").write_text(written)
    read = Reader.read

    def until_b(self: Reader, path: Path, progress: Any = None) -> Any:
        if path.name == "b.json":
            raise KeyboardInterrupt
        return read(self, path, progress)

    monkeypatch.setattr(Reader, "read", until_b)
    result = shell("import", str(tmp_path / "a.json"), str(tmp_path / "b.json"), *json_too)
    assert result.code == 130 and names(shell) == ["a"]
    assert "interrupted: 1 session had come in" in result.err
    told = [one["name"] for one in result.json["sessions"]] if json_too else [result.rows[0][0]]
    assert told == ["a"]


def test_a_session_that_a_tag_has_the_name_of_is_called_otherwise(
    shell: Shell, tmp_path: Path
) -> None:
    shell.save("work", "x")
    shell.ok("tag", "plain")
    (tmp_path / "a.json").write_text(json.dumps([{"role": "user", "content": "plain"}]))
    assert shell.ok("import", str(tmp_path / "a.json")).rows[0][0] == "plain+1"


def test_a_damaged_bundle_is_not_blamed_on_the_store(shell: Shell) -> None:
    shell.save("a", "x")
    shell.ok("export", "a", "--format", "bundle", "-o", "a.bundle")
    whole = (shell.folder / "a.bundle").read_bytes()
    (shell.folder / "a.bundle").write_bytes(whole[:-40])
    refused = shell("import", "a.bundle", "--json")
    assert (refused.code, refused.error["code"]) == (5, "corrupt")
    assert "not the store" in refused.error["hint"]


def test_a_file_that_is_no_transcript_is_an_error_of_its_own(shell: Shell, tmp_path: Path) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text('{"name": "x"}')
    result = shell("import", str(odd), "--json")
    assert (result.code, result.out) == (2, "")
    assert (result.error["code"], result.error["exit_code"]) == ("not_a_transcript", 2)
    assert "odd.json" in result.error["message"]


def test_a_file_that_is_not_there_is_bad_input(shell: Shell, tmp_path: Path) -> None:
    result = shell("import", str(tmp_path / "gone.jsonl"), "--json")
    assert (result.code, result.error["code"]) == (2, "invalid_input")
    assert "gone.jsonl: No such file" in result.error["message"]


def test_one_bad_file_does_not_keep_the_others_out(shell: Shell, talk: str, tmp_path: Path) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text("{}")
    result = shell("import", str(odd), talk, "--json")
    assert result.code == 2
    assert [s["name"] for s in result.json["sessions"]] == ["count-the-files"]
    assert result.error["code"] == "not_a_transcript"


def test_a_bad_file_makes_no_store(shell: Shell, tmp_path: Path) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text("{}")
    assert shell("--store", str(tmp_path / "new"), "import", str(odd)).code == 2
    assert not (tmp_path / "new").exists()


def test_one_name_is_for_one_file(shell: Shell, talk: str, tmp_path: Path) -> None:
    other = write(tmp_path / "other.jsonl", TALK)
    result = shell("import", talk, other, "--as", "t", "--json")
    assert (result.code, result.error["code"]) == (2, "invalid_input")
    assert names(shell) == []
    assert shell("import", talk, "--as", "../t").code == 2


def test_a_file_given_twice_is_imported_once(shell: Shell, talk: str) -> None:
    assert len(shell.ok("import", talk, talk, "--as", "t").rows) == 1


def test_growing_adds_turns_and_keeps_ids(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "grows.jsonl"
    ids = []
    for rows in (2, 6):
        write(path, TALK[:2] + TALK[4:rows])
        grown = shell.ok("import", str(path), "--as", "g", "--json").json["sessions"][0]
        ids.append(shell.ok("show", "g@1", "--json").json["id"])
    assert (grown["turns"], grown["created"], ids[0]) == (2, True, ids[1])


def test_a_rewritten_file_is_told_and_nothing_is_lost(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, TALK[:2])
    shell.ok("import", str(path), "--as", "r")
    write(path, [row("u1", None, "user", "something else")])
    result = shell.ok("import", str(path), "--as", "r")
    assert result.rows[0][0] == "r+1"
    assert "session r holds something else" in result.err
    assert names(shell) == ["r", "r+1"]


def test_on_a_terminal_lines_are_aligned_and_fit(shell: Shell, talk: str, tmp_path: Path) -> None:
    other = write(tmp_path / "x.jsonl", [row("u1", None, "user", "a much longer first prompt")])
    lines = shell.ok("import", talk, other, "--color", "never", columns=90).lines
    assert len({line.index(" turn") for line in lines}) == 1
    assert max(map(len, lines)) <= 90


# --- folders of a harness --------------------------------------------------------------------


def home_of_claude(root: Path) -> Path:
    """A session with an agent, an output and a backup of a file; the agent's file comes first."""
    path = root / "projects" / "-w" / "S.jsonl"
    for place, content in (
        ("S/subagents/agent-7.jsonl", json.dumps(row("x1", None, "user", "errand"))),
        ("S/subagents/agent-7.meta.json", "{}"),
        ("S/tool-results/out.json", '{"a": 1}'),
    ):
        (path.parent / place).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / place).write_text(content)
    write(path, TALK)
    return root / "projects"


def test_agents_come_in_under_the_session_that_called_them(shell: Shell, tmp_path: Path) -> None:
    projects = home_of_claude(tmp_path)
    document = shell.ok("import", str(projects), "--json").json
    session = "count-the-files"
    assert names(shell) == [session, f"{session}/agent-7", f"{session}/branch-1"]
    assert document["skipped"] == []
    again = shell.ok("import", str(projects), "--json").json["sessions"]
    assert not any(session["created"] for session in again)
    assert shell.ok("verify", "--json").json["ok"]


def test_only_what_changed_since(shell: Shell, tmp_path: Path) -> None:
    old, new = (Path(write(tmp_path / "f" / f"{n}.jsonl", TALK)) for n in ("old", "new"))
    os.utime(old, (0, 0))
    for since in ("1d", "2000-01-01", "2 weeks"):
        found = shell.ok("import", str(tmp_path / "f"), "--since", since, "--json").json["sessions"]
        assert [session["source"] for session in found] == [str(new)]
    assert shell("import", str(tmp_path / "f"), "--since", "soon").code == 2


def test_many_files_read_side_by_side_become_what_they_become_one_by_one(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        write(tmp_path / "many" / f"{n}.jsonl", [row(f"u{n}", None, "user", f"prompt {n}")])
    (tmp_path / "many" / "odd.json").write_text("{}")
    one_by_one = shell.ok("--store", "a", "import", str(tmp_path / "many"), "--json").json
    monkeypatch.setattr("snapstore_cli.side_by_side._FEW_BYTES", 0)
    at_once = shell.ok("--store", "b", "import", str(tmp_path / "many"), "--json").json
    assert at_once == one_by_one
    assert shell.ok("--store", "b", "verify", "--json").json["ok"]


def test_compressed_rollouts_come_in_unless_the_plain_file_is_there(
    shell: Shell, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    for name, words in (("a", "first"), ("b", "second")):
        rows = [codex("session_meta", {"id": name, "cwd": "/w"}), item("user", words)]
        packed = zstandard.ZstdCompressor().compress(written(rows))
        (folder / f"rollout-{name}.jsonl.zst").write_bytes(packed)
    (folder / "rollout-b.jsonl").write_bytes(written(rows))
    (folder / "rollout-c.jsonl.zst").write_bytes(b"no zstd")
    document = shell.ok("import", str(folder), "--json").json
    assert [Path(session["source"]).name for session in document["sessions"]] == [
        "rollout-a.jsonl.zst",
        "rollout-b.jsonl",
    ]
    assert "does not inflate" in document["skipped"][0]["reason"]


def test_what_a_compaction_left_is_told_beside_what_there_was(shell: Shell, tmp_path: Path) -> None:
    summary = row("u7", None, "user", "the summary", isCompactSummary=True)
    mark = {
        "type": "system", "subtype": "compact_boundary", "uuid": "m6", "parentUuid": None,
        "logicalParentUuid": "a6", "timestamp": "2030-01-01T00:00:06.500Z", "sessionId": "S1",
        "cwd": "/w", "isSidechain": False, "content": "Conversation compacted",
    }  # fmt: skip
    rows = [*TALK, mark, {**summary, "parentUuid": "m6"}]
    told = shell.ok("import", write(tmp_path / "c.jsonl", rows), "--as", "c").rows[0]
    assert told[2] == "1 message now, 5 over all turns"


def test_a_session_that_grew_says_by_how_many_turns(shell: Shell, talk: str) -> None:
    shell.ok("import", talk)
    grown = [
        row("u7", "a6", "user", "thanks"), row("a8", "u7", "assistant", "welcome"),
        row("u9", "a8", "user", "bye"), row("a10", "u9", "assistant", "bye"),
    ]  # fmt: skip
    write(Path(talk), [*TALK, *grown])
    assert shell.ok("import", talk).rows[0][5] == "2 new turns"


def test_a_file_that_is_not_there_hints_at_what_to_name(shell: Shell) -> None:
    assert "~/.claude/projects" in shell("import", "missing.jsonl", "--json").error["hint"]


def test_what_has_no_time_shows_none(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text('[{"role": "user", "content": "hi"}]')
    shell.ok("import", str(path), "--as", "undated")
    assert "1970" not in shell.ok("show", "undated").out
