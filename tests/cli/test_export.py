"""snapstore export, as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import Shell
from transcripts import ROLLOUT, TALK, written


@pytest.fixture
def talk(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A session t of Claude Code with two turns, and homes of both programs."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(written(TALK))
    shell.ok("import", str(path), "--as", "t")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return shell


def test_the_same_file_comes_back(talk: Shell, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    told = talk.ok("export", "t", "--format", "claude-code", "-o", str(out)).err
    assert out.read_bytes() == written(TALK)
    assert told == f"{out}: {len(written(TALK)) / 1000:.1f} kB\n"
    assert talk.ok("export", "t", "--format", "claude-code").out.encode() == written(TALK)


def test_a_turn_comes_as_a_new_session_on_stdout(talk: Shell) -> None:
    rows = [json.loads(line) for line in talk.ok("export", "t@1", "--format", "claude-code").lines]
    assert rows[0]["sessionId"] != "S"
    assert rows[-1]["message"]["content"][1]["text"] == "2 and none"


def test_installed_it_prints_the_command_that_goes_on(talk: Shell, tmp_path: Path) -> None:
    result = talk.ok("export", "t@1", "--format", "claude-code", "--install")
    (line,) = result.lines
    session_id = line.removeprefix("cd /w && claude --resume ")
    assert (tmp_path / "claude" / "projects" / "-w" / f"{session_id}.jsonl").exists()
    (line,) = talk.ok("export", "t", "--format", "codex", "--install").lines
    assert line.startswith("cd /w && codex resume ")


def test_a_session_that_goes_on_is_not_overwritten(talk: Shell, tmp_path: Path) -> None:
    install = ("export", "t", "--format", "claude-code", "--install")
    talk.ok(*install)
    assert "there already" in talk.ok(*install).err
    (path,) = (tmp_path / "claude").rglob("*.jsonl")
    path.write_text("gone on")
    result = talk(*install, "--json")
    assert (result.code, result.error["code"]) == (6, "refused")
    assert "--new" in result.error["hint"]
    assert path.read_text() == "gone on"
    talk.ok(*install, "--new")


def test_another_directory(talk: Shell, tmp_path: Path) -> None:
    (line,) = talk.ok(
        "export", "t", "--format", "claude-code", "--cwd", str(tmp_path), "--install"
    ).lines
    assert line.startswith(f"cd {tmp_path} && claude --resume ")
    assert talk("export", "t", "--format", "claude-code", "--cwd", "").code == 2


def test_what_could_not_be_carried_is_told_on_stderr_and_in_json(talk: Shell) -> None:
    result = talk.ok("export", "t@1", "--format", "codex")
    assert "not carried: 1 thinking blocks" in result.err
    document = talk.ok("export", "t@1", "--format", "codex", "--json").json
    assert document["not_carried"][0]["count"] == 1
    assert document["text"].startswith('{"timestamp"')
    assert (document["original"], document["path"]) == (False, None)


def test_json_names_the_file_and_the_command(talk: Shell, tmp_path: Path) -> None:
    out = str(tmp_path / "out.jsonl")
    document = talk.ok("export", "t", "--format", "claude-code", "-o", out, "--json").json
    assert (document["session_id"], document["original"], document["path"]) == ("S", True, out)
    document = talk.ok("export", "t@1", "--format", "codex", "--install", "--json").json
    assert document["resume"] == f"cd /w && codex resume {document['session_id']}"


@pytest.mark.parametrize("format", ["claude-code", "codex", "messages", "markdown"])
def test_secrets_are_taken_out(talk: Shell, format: str) -> None:
    key = "sk-ant-api03-" + "aB3xY9" * 15
    talk.save("t", {"role": "user", "content": f"my key is {key}"})
    assert key in talk.ok("export", "t", "--format", format).out
    assert key not in talk.ok("export", "t", "--format", format, "--redact").out


def test_lone_surrogates_are_replaced_where_asked(talk: Shell) -> None:
    talk.save("half", {"role": "user", "content": "half \ud83d of it"})
    plain = talk.ok("export", "half", "--format", "messages").out
    assert json.loads(plain)[0]["content"] == "half \ud83d of it"
    clean = talk.ok("export", "half", "--format", "messages", "--sanitize").out
    assert json.loads(clean)[0]["content"] == "half \ufffd of it"


def test_install_is_for_programs_and_writes_no_other_file(talk: Shell, tmp_path: Path) -> None:
    for args in (("--format", "markdown"), ("--format", "codex", "-o", str(tmp_path / "x"))):
        assert talk("export", "t", *args, "--install").code == 2


def test_a_turn_that_is_not_there(talk: Shell) -> None:
    assert talk("export", "t@9", "--format", "codex").code == 3
    assert talk("export", "nobody", "--format", "codex").code == 3


def test_a_place_that_is_no_folder_is_bad_input(talk: Shell, tmp_path: Path) -> None:
    out = str(tmp_path / "gone" / "x")
    assert talk("export", "t", "--format", "codex", "-o", out).code == 2


def test_there_and_back_between_programs(talk: Shell, tmp_path: Path) -> None:
    rollout = tmp_path / "rollout-x.jsonl"
    rollout.write_bytes(written(ROLLOUT))
    talk.ok("import", str(rollout), "--as", "c")
    for session, format in (("c", "claude-code"), ("t", "codex")):
        out = str(tmp_path / f"{session}.jsonl")
        talk.ok("export", session, "--format", format, "-o", out)
        (came,) = talk.ok("import", out, "--as", f"{session}-again", "--json").json["sessions"]
        assert (came["turns"], came["warnings"]) == (2, [])


def test_installed_for_a_directory_that_is_not_there_it_warns(talk: Shell, tmp_path: Path) -> None:
    export = ("export", "t@1", "--format", "claude-code", "--install")
    assert "/w is not there" in talk.ok(*export).err
    assert talk.ok(*export, "--cwd", str(tmp_path)).err == ""
