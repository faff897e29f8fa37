"""scan, purge and --redact: keys that had no business being saved."""

from __future__ import annotations

import json

import pytest
from shell import Shell

KEY = "sk-ant-api03-" + "aB3" * 31
REDACTED = "[redacted:anthropic-key]"


@pytest.fixture
def leaked(shell: Shell) -> Shell:
    """A key in messages, scratchpad and files of session a, and in its fork b."""
    (shell.folder / "w").mkdir()
    (shell.folder / "w" / ".env").write_text(f"API_KEY={KEY}\n")
    question = json.dumps([{"role": "user", "content": f"use {KEY} please"}])
    words = ("save", "-s", "a", "-m", "first", "--messages", "-", "--worktree", "w")
    shell.ok(*words, stdin=question)
    shell.save("a", "ok", sets={"k": KEY})
    shell.ok("fork", "a@1", "b")
    return shell


def test_scan_tells_where_and_exits_with_1(leaked: Shell) -> None:
    result = leaked("scan", "--json")
    assert result.code == 1
    assert [(f["rule"], f["session"], f["turn"], f["where"]) for f in result.json["findings"]] == [
        ("anthropic-key", "a", 1, "messages[0].content"),
        ("anthropic-key", "a", 1, "files:.env"),
        ("anthropic-key", "a", 2, "scratchpad:k"),
    ]


def test_scan_never_prints_a_secret(leaked: Shell) -> None:
    for words in (("scan",), ("scan", "--json"), ("scan", "-v")):
        result = leaked(*words)
        assert KEY not in result.out + result.err
        assert KEY[4:12] not in result.out + result.err


def test_scan_of_a_clean_store_exits_with_0(two_lines: Shell) -> None:
    result = two_lines.ok("scan")
    assert (result.out, result.err.strip()) == ("", "nothing that looks like a secret")
    assert two_lines.ok("scan", "--json").json["findings"] == []


def test_purge_only_shows_unless_told(leaked: Shell) -> None:
    head = leaked.ok("show", "a", "--json").json["id"]
    shown = leaked.ok("purge", "--match", KEY, "--json").json
    assert (shown["applied"], shown["turns"], shown["sessions"]) == (
        False, 2, ["session b", "session a"],
    )  # fmt: skip
    assert "--apply" in leaked.ok("purge", "--match", KEY).out
    assert leaked.ok("show", "a", "--json").json["id"] == head


def test_purge_takes_it_out_of_every_turn_and_old_ids_are_gone(leaked: Shell) -> None:
    old = leaked.ok("show", "a@1", "--json").json["id"]
    result = leaked.ok("purge", "--match", KEY, "--apply")
    assert KEY not in result.out + result.err
    assert leaked("show", old).code == 3
    assert leaked("undo", "-s", "a").code == 1
    for turn in ("a@1", "a@2", "b"):
        shown = leaked.ok("show", turn, "--json").json
        assert "use [purged] please" in shown["messages"][0]["content"]
        assert leaked.ok("show", f"{turn}:.env").out == "API_KEY=[purged]\n"
    assert leaked.ok("log", "a", "--json").json["snapshots"][1]["label"] == "first"
    leaked.ok("scan")
    assert leaked.ok("verify", "--json").json["ok"]
    assert not any(
        KEY.encode() in path.read_bytes() for path in leaked.store.rglob("*") if path.is_file()
    )


def test_purge_reads_the_text_from_stdin(leaked: Shell) -> None:
    leaked.ok("purge", "--match", "-", "--apply", stdin=KEY + "\n")
    leaked.ok("scan")


def test_purge_of_what_nobody_said_does_nothing(two_lines: Shell) -> None:
    assert "no turn holds" in two_lines.ok("purge", "--match", "never said", "--apply").out
    assert two_lines("purge", "--match", "ab").code == 2


def test_save_redacts_messages_scratchpad_and_label(shell: Shell) -> None:
    words = ("save", "-s", "r", "--redact", "-m", f"with {KEY}", "--messages", "-")
    shell.ok(*words, "--set", f'k="{KEY}"', stdin=json.dumps([f"use {KEY}"]))
    shown = shell.ok("show", "r", "--json").json
    assert (shown["label"], shown["messages"], shown["scratchpad"]) == (
        f"with {REDACTED}", [f"use {REDACTED}"], {"k": REDACTED},
    )  # fmt: skip


def test_import_redacts_a_transcript_before_it_is_kept(shell: Shell) -> None:
    row = {"type": "user", "uuid": "a", "parentUuid": None, "sessionId": "x",
           "message": {"role": "user", "content": f"use {KEY}"}, "toolUseResult": KEY}  # fmt: skip
    (shell.folder / "x.jsonl").write_text(json.dumps(row) + "\n")
    shell.ok("import", "x.jsonl", "--redact", "--as", "x")
    shell.ok("scan")
    assert shell.ok("show", "x", "--json").json["messages"][0]["content"] == f"use {REDACTED}"
    (again,) = shell.ok("import", "x.jsonl", "--redact", "--as", "x", "--json").json["sessions"]
    assert not again["created"]


def test_export_redacts_what_was_saved_with_it(leaked: Shell) -> None:
    leaked.ok("export", "a", "--format", "messages", "--redact", "-o", "out.json")
    written = (leaked.folder / "out.json").read_text()
    assert KEY not in written
    assert f"use {REDACTED} please" in written


def test_a_key_of_two_lines_is_told_on_one(shell: Shell) -> None:
    shell.save("a", sets={"two\nlines": KEY})
    (line,) = shell("scan").lines
    assert line.split("\t")[2] == "scratchpad:two\\nlines"
