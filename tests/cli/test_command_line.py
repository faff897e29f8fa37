"""Global options, help, and where the store and the session come from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from shell import Shell

from snapstore_cli.main import COMMANDS, cli

TABLE = [command for section in COMMANDS.values() for command in section]


@pytest.mark.parametrize(
    "args",
    [
        ("--json", "-s", "a", "scratch", "get", "step"),
        ("scratch", "--json", "-s", "a", "get", "step"),
        ("scratch", "get", "step", "-s", "a", "--json"),
        ("--json", "scratch", "-s", "a", "get", "step"),
        ("scratch", "get", "--json", "step", "--session=a"),
    ],
)
def test_global_options_may_stand_before_between_and_after_commands(
    two_lines: Shell, args: tuple[str, ...]
) -> None:
    assert two_lines.ok(*args).json == {"schema": 1, "key": "step", "value": 5}


def test_of_a_global_option_given_twice_the_later_one_counts(two_lines: Shell) -> None:
    assert two_lines.ok("-s", "a", "scratch", "get", "step", "-s", "a").out == "5\n"
    assert two_lines.ok("-s", "a", "status", "-s", "b", "--json").json["session"] == "b"


def test_help_comes_with_either_option_and_names_every_command(shell: Shell) -> None:
    assert shell.ok("-h").out == shell.ok("--help").out == shell.ok().out
    names = {line.split()[0].rstrip(",") for line in shell.ok("-h").lines if line.startswith("  ")}
    assert {command.name for command in TABLE} <= names


def every(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of a command and of all below it."""
    if path:
        yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from every(found, *path, name)


@pytest.mark.parametrize("path", list(every(cli)), ids=" ".join)
def test_every_command_has_help_with_an_example(shell: Shell, path: tuple[str, ...]) -> None:
    usage, _, told = shell.ok(*path, "--help").out.partition("\n")
    assert usage.startswith("Usage: snapstore " + " ".join(path))
    assert re.search(rf"^ +(\S.*)?snapstore {' '.join(path)}\b", told, re.MULTILINE)
    assert "Examples:" in told or not path
    lines = shell.ok(*path, "--help", columns=80).lines
    assert [line for line in lines if len(line) > 80] == []


def test_an_alias_is_the_command_itself(two_lines: Shell) -> None:
    assert two_lines.ok("list").out == two_lines.ok("sessions").out
    assert two_lines.ok("fsck").out == two_lines.ok("verify").out
    assert two_lines.ok("reflog").out == two_lines.ok("op", "log").out


def test_an_unknown_command_is_told_with_those_that_are_near(shell: Shell) -> None:
    result = shell("lgo")
    assert (result.code, result.out) == (2, "")
    assert "there is no command 'lgo'; did you mean log?" in result.err


def test_version_is_that_of_the_library(shell: Shell) -> None:
    import snapstore

    assert shell.ok("--version").out == f"snapstore {snapstore.__version__}\n"


# --- where the store is ------------------------------------------------------------------------


def test_the_nearest_store_upwards_is_used(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.save("here", "x")
    below = shell.folder / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert shell.ok("status", "--json").json["store"] == str(shell.store)
    (shell.folder / "a" / ".snapstore").mkdir()
    assert shell("status").code == 10


def test_an_option_goes_before_the_environment_and_that_before_the_directory(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SNAPSTORE_STORE", str(tmp_path / "named"))
    shell.ok("save", "-s", "in-env", "--messages", "-", stdin="[1]")
    shell.ok("save", "-s", "in-option", "--store", str(tmp_path / "other"), stdin="")
    assert [row[0] for row in shell.ok("sessions").rows] == ["in-env"]
    assert [r[0] for r in shell.ok("--store", str(tmp_path / "other"), "list").rows] == [
        "in-option"
    ]
    monkeypatch.delenv("SNAPSTORE_STORE")
    assert shell.ok("sessions").out == ""


def test_without_any_store_around_the_users_data_directory_is_used(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert shell("log").code == 10
    shell.ok("save", "--messages", "-", stdin="[1]")
    place = Path(shell.ok("status", "--json").json["store"])
    assert place.is_relative_to(tmp_path / "home") and (place / "FORMAT").is_file()
    assert list(elsewhere.iterdir()) == []


def test_init_below_another_store_says_which_was_used_before(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = shell.ok("init", "sub")
    project = shell.folder / "sub"
    assert made.err == (
        f"until now commands in {project} used {shell.store}: what was saved stays there, and "
        f"`snapstore pull {shell.store}` brings it here\n"
    )
    assert shell.ok("init", "sub").err == ""
    told = shell.ok("init", "sub/../sub/deep", "--json").json
    assert told["above"] == str(project / ".snapstore")
    assert shell.ok("init", "--store", "elsewhere").err == ""
    (shell.folder / "odd").mkdir()
    (shell.folder / "odd" / ".snapstore").write_text("no store")
    assert shell.ok("init", "odd/below", "--json").json["above"] is None
    monkeypatch.setenv("SNAPSTORE_STORE", "elsewhere")
    assert "commands go on using $SNAPSTORE_STORE" in shell.ok("init").err


def test_init_is_safe_to_repeat(shell: Shell) -> None:
    shell.save("kept", "x")
    again = shell.ok("init", "--json").json
    assert again == {"schema": 1, "store": str(shell.store), "created": False, "above": None}
    assert [row[0] for row in shell.ok("sessions").rows] == ["kept"]
    assert shell.ok("init", "sub/project", "--json").json["created"] is True


def test_reading_where_there_is_no_store_makes_none(shell: Shell, tmp_path: Path) -> None:
    none = tmp_path / "none"
    for command in ("log", "show", "sessions", "status", "verify", "stats", "gc", "undo"):
        result = shell(command, "--store", str(none))
        assert (result.code, result.out) == (10, ""), command
    assert not none.exists()


# --- which session -----------------------------------------------------------------------------


def test_the_first_save_without_a_name_goes_to_main(shell: Shell) -> None:
    assert shell.ok("save", "--json", "--set", "a=1").json["session"] == "main"
    assert shell.ok("status", "--json").json["session"] == "main"


def test_save_and_switch_make_their_session_the_current_one(two_lines: Shell) -> None:
    assert two_lines.ok("status", "--json").json["session"] == "b"
    two_lines.ok("switch", "a")
    assert two_lines.ok("show", "--json").json["turn"] == 5
    assert two_lines.ok("show", "@@2", "--json").json["turn"] == 2
    two_lines.save("b", "more")
    assert [row[0] for row in two_lines.ok("sessions").rows if row[-1] == "*"] == ["b"]


def test_a_session_that_the_library_made_is_found_when_it_is_called_main(shell: Shell) -> None:
    with shell.open() as store:
        store.session("main").save("from the library")
    assert shell.ok("log").rows[0][3] == "from the library"


def test_without_a_session_the_error_says_how_to_name_one(shell: Shell) -> None:
    result = shell("log")
    assert result.code == 3 and "-s" in result.err


def test_the_current_session_follows_a_rename_and_its_undo(two_lines: Shell) -> None:
    two_lines.ok("rename", "b", "better")
    assert two_lines.ok("status", "--json").json["session"] == "better"
    two_lines.ok("undo")
    assert two_lines.ok("status", "--json").json["session"] == "b"


def test_saving_never_revives_a_deleted_session_unasked(two_lines: Shell) -> None:
    two_lines.ok("delete", "b")
    refused = two_lines("save", "--set", "x=1")
    assert refused.code == 3 and "deleted" in refused.err and "undo -s b" in refused.err
    assert two_lines.ok("save", "-s", "b", "--set", "x=1", "--json").json["turn"] == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["undo", "two"], "-s two"),
        (["save", "one"], "-s one"),
        (["op", "log", "one"], "-s one"),
        (["rewind", "@1"], "@@1"),
        (["show", "@{2}"], "@@{2}"),
        (["switch", "one@1"], "`snapstore fork one@1 NAME`"),
        (["remote", "rm"], "did you mean remove?"),
    ],
)
def test_what_was_meant_is_told(shell: Shell, words: list[str], hint: str) -> None:
    refused = shell(*words)
    assert refused.code == 2 and hint in refused.err
