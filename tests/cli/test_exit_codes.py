"""Every kind of failure: its exit code, and how it is told to people and to programs."""

from __future__ import annotations

import pytest
from shell import Shell

from snapstore import errors
from snapstore_cli.errors import describe


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (("redo", "-s", "a"), 1, "nothing_to_do"),
        (("find", "never said"), 1, None),
        (("diff", "a", "b", "--exit-code"), 1, None),
        (("show", "--no-such-flag"), 2, "usage"),
        (("frobnicate",), 2, "usage"),
        (("op",), 2, "usage"),
        ((), 2, "usage"),
        (("log", "-n", "many"), 2, "usage"),
        (("show", "a@@"), 2, "invalid_input"),
        (("fork", "a", "not a name"), 2, "invalid_input"),
        (("save", "-s", "../up"), 2, "invalid_input"),
        (("save", "--set", "x=NaN"), 2, "unsupported_value"),
        (("save", "--messages", "missing.json"), 2, "invalid_input"),
        (("show", "nobody"), 3, "not_found"),
        (("show", "ffffffff"), 3, "not_found"),
        (("show", "a@99"), 3, "not_found"),
        (("show", "a:file.txt"), 3, "not_found"),
        (("switch", "nobody"), 3, "not_found"),
        (("delete", "nobody"), 3, "not_found"),
        (("undo", "-s", "nobody"), 3, "not_found"),
        (("save", "-s", "a", "--expect", "0123abcd"), 4, "ref_moved"),
        (("fork", "a", "b"), 6, "refused"),
        (("log", "--store", "nowhere"), 10, "store_not_found"),
    ],
)
def test_a_failure_has_its_exit_code_and_is_one_object_on_stderr(
    two_lines: Shell, args: tuple[str, ...], code: int, word: str | None
) -> None:
    result = two_lines(*args, "--json")
    assert result == two_lines("--json", *args)
    assert result.code == code
    if word is not None:
        assert result.out == ""
        assert (result.error["code"], result.error["exit_code"]) == (word, code)
        assert set(result.error) == {"code", "message", "hint", "exit_code"}
        assert result.error["message"]


def test_people_are_told_what_happened_and_what_to_do(two_lines: Shell) -> None:
    result = two_lines("show", "turn-9")
    assert result.out == ""
    assert result.err.splitlines()[0] == "error: there is no session, tag or snapshot 'turn-9'"
    assert result.err.splitlines()[1].startswith("hint: ")


def test_a_bare_number_is_explained(two_lines: Shell) -> None:
    assert "@@3" in two_lines("rewind", "3").err


def test_an_ambiguous_prefix_lists_its_candidates(shell: Shell) -> None:
    with shell.open() as store:
        session = store.session("a")
        firsts: dict[str, str] = {}
        while True:
            session.history.append("x")
            snap = session.save()
            other = firsts.setdefault(snap.id[:4], snap.id)
            if other != snap.id and not snap.id[:4].isdigit():
                break
    result = shell("show", snap.id[:4], "--json")
    assert result.code == 3 and result.error["code"] == "ambiguous"
    assert other[:12] in result.error["message"] and snap.id[:12] in result.error["message"]
    assert shell.ok("show", snap.id[:12], "--json").json["id"] == snap.id


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Corrupt("damaged", path="log/1.seg", offset=7), 5),
        (errors.ObjectMissing(b"\0" * 32), 5),
        (errors.UnsupportedFormat("version 9"), 5),
        (errors.Locked("held"), 11),
        (errors.DiskError("disk full", 28), 12),
        (errors.UnknownOutcome("a sync failed"), 12),
        (PermissionError(13, "Permission denied", "store/FORMAT"), 12),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("division by zero"), 70),
        (errors.SnapstoreError("something else"), 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_what_no_command_can_cause_at_will_has_its_code_too(
    error: BaseException, code: int
) -> None:
    assert describe(error).exit_code == code


def test_every_error_of_the_library_has_a_code_of_its_own() -> None:
    tree = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    for kind in tree:
        if issubclass(kind, errors.SnapstoreError) and kind is not errors.SnapstoreError:
            assert describe(kind.__new__(kind)).exit_code != 70, kind


def test_a_bug_is_one_line_and_shows_its_traceback_when_asked(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("snapstore.store.Store.stats", broken)
    short = shell("stats")
    assert short.code == 70 and len(short.err.splitlines()) == 2 and "-v" in short.err
    assert "Traceback" in shell("stats", "-v").err
    assert shell("stats", "--json").error["code"] == "bug"


def test_what_an_error_repeats_cannot_command_the_terminal(shell: Shell) -> None:
    assert "\x1b" not in shell("show", "\x1b[2J").err
    assert "\\x1b[2J" in shell("show", "\x1b[2J").err


def test_a_store_that_is_not_there_says_where_it_was_looked_for(shell: Shell) -> None:
    shell.store.rename(shell.folder / "elsewhere")
    hint = shell("log", "--json").error["hint"]
    for place in ("--store", "$SNAPSTORE_STORE", ".snapstore/", "user data directory"):
        assert place in hint


def test_choices_stand_on_one_line(shell: Shell) -> None:
    error, _ = shell("export", "a").err.splitlines()
    assert "claude-code, codex" in error and "\t" not in error


def test_a_turn_before_the_first_is_said_to_be_that(two_lines: Shell) -> None:
    assert "before the first turn; the line has turns 1 to 4" in two_lines("rewind", "b~99").err
