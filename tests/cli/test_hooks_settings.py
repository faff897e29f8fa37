"""snapstore hooks: what becomes of settings that are somebody else's."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shell import Shell

from snapstore_cli.hooking import entries
from snapstore_cli.hooking.harnesses import CLAUDE_CODE, CODEX

MINE = {"type": "command", "command": "mine"}
OURS = {"type": "command", "command": "snapstore hook"}


@pytest.fixture
def claude(shell: Shell) -> Path:
    path = shell.folder / ".claude" / "settings.json"
    path.parent.mkdir()
    return path


def install(shell: Shell, *args: str) -> Any:
    return shell.ok("hooks", "install", "claude-code", *args, "--json").json


def uninstall(shell: Shell, *args: str) -> Any:
    return shell.ok("hooks", "uninstall", "claude-code", *args, "--json").json


# --- in and out --------------------------------------------------------------------------------


def test_installing_adds_to_what_is_there_and_twice_is_once(shell: Shell, claude: Path) -> None:
    old = {"model": "m", "hooks": {"Stop": [{"hooks": [MINE]}], "PreToolUse": []}}
    claude.write_text(json.dumps(old))
    assert install(shell)["changed"]
    new = json.loads(claude.read_text())
    assert list(new) == ["model", "hooks"]
    assert new["hooks"]["Stop"] == [{"hooks": [MINE]}, {"hooks": [OURS | {"timeout": 30}]}]
    assert new["hooks"]["PostToolUse"] == [{"matcher": "*", "hooks": [OURS | {"async": True}]}]
    assert new["hooks"]["PreToolUse"] == []
    before = claude.stat()
    assert not install(shell)["changed"]
    assert claude.stat() == before


def test_uninstalling_takes_out_what_is_ours_and_containers_that_it_emptied(
    shell: Shell, claude: Path
) -> None:
    old = {"hooks": {"Stop": [{"hooks": [MINE]}], "PreToolUse": [], "Setup": [{"hooks": []}]}}
    claude.write_text(json.dumps(old))
    install(shell)
    assert uninstall(shell)["changed"]
    assert claude.read_text() == json.dumps(old)
    assert not uninstall(shell)["changed"]


def test_what_stands_in_a_group_with_ours_stays_there(shell: Shell, claude: Path) -> None:
    claude.write_text(json.dumps({"hooks": {"Stop": [{"matcher": "x", "hooks": [MINE, OURS]}]}}))
    uninstall(shell)
    assert json.loads(claude.read_text()) == {
        "hooks": {"Stop": [{"matcher": "x", "hooks": [MINE]}]}
    }


def test_a_file_that_install_made_is_gone_after_uninstall(shell: Shell) -> None:
    install(shell)
    assert (shell.folder / ".claude" / "settings.json").stat().st_mode & 0o777 == 0o644
    uninstall(shell)
    assert not (shell.folder / ".claude").exists()


@pytest.mark.parametrize("empty", ["{}", "{}\n"])
def test_an_empty_file_that_was_there_stays(shell: Shell, claude: Path, empty: str) -> None:
    claude.write_text(empty)
    install(shell)
    uninstall(shell)
    assert claude.read_text() == empty


def test_entries_of_another_version_or_place_are_replaced(shell: Shell, claude: Path) -> None:
    old = {"type": "command", "command": "/old/bin/snapstore hook --store '/a b'", "timeout": 1}
    claude.write_text(
        json.dumps({"hooks": {"Stop": [{"hooks": [old]}], "Gone": [{"hooks": [old]}]}})
    )
    install(shell)
    hooks = json.loads(claude.read_text())["hooks"]
    assert hooks["Stop"] == [{"hooks": [OURS | {"timeout": 30}]}]
    assert "Gone" not in hooks


def test_what_only_looks_like_ours_is_left_alone() -> None:
    others = ["snapstore log", "snapstore", "my-snapstore hook", "echo 'snapstore hook'", "'", ""]
    assert not any(entries.is_ours({"type": "command", "command": text}) for text in others)
    assert not any(map(entries.is_ours, [None, "snapstore hook", {"command": 1}, {}, []]))


SIMPLE = st.none() | st.booleans() | st.integers() | st.text(max_size=4)
RUNS = st.lists(st.fixed_dictionaries({"command": st.text(max_size=8)}) | SIMPLE, max_size=2)
GROUPS = st.lists(st.fixed_dictionaries({}, optional={"hooks": RUNS, "matcher": SIMPLE}) | SIMPLE)
EVENTS = st.sampled_from(["Stop", "PreToolUse", "Setup", "SessionEnd"])
FILLED = GROUPS.filter(bool)
SETTINGS = st.fixed_dictionaries(
    {"other": SIMPLE},
    optional={"hooks": st.dictionaries(EVENTS, FILLED, min_size=1)},
)


@given(SETTINGS, st.sampled_from([CLAUDE_CODE, CODEX]))
@settings(deadline=None, max_examples=100)
def test_install_and_uninstall_give_any_settings_back(old: dict[str, Any], harness: Any) -> None:
    before = copy.deepcopy(old)
    new = entries.installed(old, harness.calls, "snapstore hook")
    assert set(entries.commands(new)) == set(harness.calls)
    assert entries.installed(new, harness.calls, "snapstore hook") is new
    assert entries.removed(new) == old == before


# --- the file ----------------------------------------------------------------------------------

LAYOUTS = {
    "two spaces": lambda d: json.dumps(d, indent=2) + "\n",
    "four spaces, no last line end": lambda d: json.dumps(d, indent=4),
    "tabs": lambda d: json.dumps(d, indent="\t") + "\n",
    "one line": json.dumps,
    "compact": lambda d: json.dumps(d, separators=(",", ":")),
    "escaped": lambda d: json.dumps(d, indent=2, ensure_ascii=True) + "\n",
    "unescaped": lambda d: json.dumps(d, indent=2, ensure_ascii=False) + "\n",
    "line ends of Windows": lambda d: json.dumps(d, indent=2).replace("\n", "\r\n") + "\r\n",
    "a byte order mark": lambda d: "\ufeff" + json.dumps(d, indent=2),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_layout_stays(shell: Shell, claude: Path, layout: Any) -> None:
    old = {"a": "é \U0001f642", "b": [1, 2.5, {"c": []}], "hooks": {"Stop": [{"hooks": [MINE]}]}}
    text = layout(old)
    claude.write_bytes(text.encode())
    install(shell)
    new = json.loads(claude.read_text("utf-8-sig"))
    assert claude.read_bytes() == layout(new).encode()
    uninstall(shell)
    assert claude.read_bytes() == text.encode()


def test_mode_and_links_stay(shell: Shell, claude: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.json"
    elsewhere.write_text("{}")
    elsewhere.chmod(0o640)
    claude.symlink_to(elsewhere)
    install(shell)
    assert claude.is_symlink()
    assert "snapstore hook" in elsewhere.read_text()
    assert elsewhere.stat().st_mode & 0o777 == 0o640
    uninstall(shell)
    assert claude.is_symlink() and elsewhere.read_text() == "{}"


@pytest.mark.parametrize(
    "broken",
    [
        b"{",
        b'{"hooks": {},}',
        b"// a comment\n{}",
        b"[]",
        b"7",
        b"\xff\xfe{}",
        b'{"a": 1, "a": 2}',
        b'{"hooks": []}',
        b'{"hooks": {"Stop": {}}}',
        b'{"hooks": {"Other": "x"}}',
        b"[" * 100_000,
    ],
    ids=lambda data: data[:25],
)
@pytest.mark.parametrize("command", ["install", "uninstall", "status"])
def test_settings_that_make_no_sense_are_refused_and_not_touched(
    shell: Shell, claude: Path, broken: bytes, command: str
) -> None:
    claude.write_bytes(broken)
    before = claude.stat()
    result = shell("hooks", command, "claude-code", "--json")
    assert (result.code, result.out, result.error["code"]) == (2, "", "invalid_input")
    assert (claude.read_bytes(), claude.stat().st_ino) == (broken, before.st_ino)
    assert [path.name for path in claude.parent.iterdir()] == ["settings.json"]


# --- where -------------------------------------------------------------------------------------


def test_the_users_own_settings_are_those_in_home(shell: Shell, tmp_path: Path) -> None:
    told = install(shell, "--user")
    assert told["settings"] == str(tmp_path / "home" / ".claude" / "settings.json")
    assert not (shell.folder / ".claude").exists()
    assert shell("hooks", "status", "claude-code").code == 1
    assert shell("hooks", "status", "claude-code", "--user").out.startswith("Claude Code runs")


def test_a_harness_that_keeps_its_settings_elsewhere_is_heeded(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "c"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "x"))
    install(shell, "--user")
    shell.ok("hooks", "install", "codex", "--user")
    assert (tmp_path / "c" / "settings.json").exists()
    assert (tmp_path / "x" / "hooks.json").exists()


def test_codex_gets_a_file_of_the_same_shape_and_a_word_about_trust(shell: Shell) -> None:
    result = shell.ok("hooks", "install", "codex")
    assert "trust" in result.err
    told = json.loads((shell.folder / ".codex" / "hooks.json").read_text())
    assert told["hooks"]["Stop"] == [{"hooks": [OURS | {"timeout": 30}]}]
    assert told["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 3
    assert "async" not in json.dumps(told)


def test_a_store_that_is_named_is_the_one_that_is_saved_to(shell: Shell, claude: Path) -> None:
    told = install(shell, "--store", "some where")
    place = shell.folder / "some where"
    assert told["commands"] == [f"snapstore hook --store '{place}'"]
    assert not place.exists()


@pytest.mark.parametrize("command", ["install", "status"])
def test_it_is_told_where_turns_are_saved(
    shell: Shell, claude: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    def told(*more: str) -> str:
        install(shell)
        return shell("hooks", command, "claude-code", *more).lines[1]

    assert told() == f"turns here are saved in {shell.store}"
    shell("hooks", "install", "claude-code", "--user")
    assert told("--user") == f"turns of sessions in this directory are saved in {shell.store}"
    monkeypatch.setenv("SNAPSTORE_STORE", str(tmp_path / "other"))
    assert told().startswith("turns of a harness that is given $SNAPSTORE_STORE too are saved in")
    assert install(shell, "--store", "some")["store"] == "some"


def test_files_beside_the_settings_are_left_alone(shell: Shell, claude: Path) -> None:
    beside = claude.with_name("settings.json.tmp")
    beside.write_text("precious")
    install(shell)
    assert beside.read_text() == "precious"
    assert claude.stat().st_mode & 0o777 == 0o644
    assert {path.name for path in claude.parent.iterdir()} == {claude.name, beside.name}


def test_redaction_is_asked_for_by_the_hook(shell: Shell, claude: Path) -> None:
    assert install(shell, "--redact")["commands"] == ["snapstore hook --redact"]
    assert install(shell)["commands"] == ["snapstore hook"]


# --- status ------------------------------------------------------------------------------------


def test_status_tells_what_is_installed_and_whether_it_is_found(
    shell: Shell, claude: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert shell("hooks", "status", "claude-code").code == 1
    install(shell)
    monkeypatch.setenv("PATH", str(tmp_path))
    lost = shell("hooks", "status", "claude-code", "--json")
    assert (lost.code, lost.json["not_found"]) == (1, ["snapstore hook"])
    assert (lost.json["events"], lost.json["missing"]) == (list(CLAUDE_CODE.calls), [])
    program = tmp_path / "snapstore"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert shell("hooks", "status", "claude-code").code == 0


def test_status_names_the_events_that_are_missing(shell: Shell, claude: Path) -> None:
    claude.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [OURS]}]}}))
    result = shell("hooks", "status", "claude-code")
    assert result.code == 1
    assert "at Stop; not at SessionStart, UserPromptSubmit" in result.out


def test_a_harness_that_is_not_known_is_a_usage_error(shell: Shell) -> None:
    result = shell("hooks", "install", "emacs", "--json")
    assert (result.code, result.error["code"]) == (2, "usage")
