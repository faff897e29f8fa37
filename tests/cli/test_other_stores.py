"""push, pull, clone, remote and bundles: sessions between stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import Shell


def heads(shell: Shell, store: Path) -> dict[str, str]:
    listed = shell.ok("sessions", "--json", "--store", str(store)).json["sessions"]
    return {session["name"]: session["head"] for session in listed}


@pytest.fixture
def other(two_lines: Shell) -> Path:
    """Where another store is to be."""
    return two_lines.folder.parent / "other"


def test_push_makes_the_other_store_and_brings_what_is_missing(
    two_lines: Shell, other: Path
) -> None:
    first = two_lines.ok("push", str(other), "--json").json["carried"]
    assert [(one["name"], one["outcome"]) for one in first] == [("a", "new"), ("b", "new")]
    assert heads(two_lines, other) == heads(two_lines, two_lines.store)
    two_lines.save("a", "more")
    again = two_lines.ok("push", str(other), "--json").json["carried"]
    assert [(one["outcome"], one["objects"]) for one in again] == [("moved", 3), ("same", 0)]


def test_pull_brings_named_sessions_into_a_store_that_it_makes(
    two_lines: Shell, other: Path
) -> None:
    done = two_lines.ok("pull", str(two_lines.store), "b", "--store", str(other))
    assert done.rows[0][0] == "b"
    assert heads(two_lines, other).keys() == {"b"}
    assert two_lines("pull", str(two_lines.store), "c", "--store", str(other)).code == 3


def test_pulling_from_a_store_that_is_not_there_makes_none(shell: Shell) -> None:
    result = shell("pull", str(shell.folder / "nowhere"), "--json")
    assert (result.code, result.error["code"]) == (10, "store_not_found")
    assert not (shell.folder / "nowhere").exists()
    assert "remote" in result.error["hint"] and "init" not in result.error["hint"]


def test_which_store_lacks_a_name_is_told(two_lines: Shell, other: Path) -> None:
    here = two_lines("push", str(other), "aa")
    assert here.code == 3 and str(other) not in here.err and not other.exists()
    two_lines.ok("push", str(other), "b")
    there = two_lines("pull", str(other), "a")
    assert there.code == 3 and f"'a' in {other}" in there.err


def test_what_both_went_on_with_is_kept_beside(two_lines: Shell, other: Path) -> None:
    two_lines.ok("push", str(other))
    two_lines.save("a", "here")
    two_lines.ok("save", "-s", "a", "--messages", "-", "--store", str(other), stdin='["there"]')
    (one, _) = two_lines.ok("pull", str(other), "--json").json["carried"]
    assert (one["source"], one["name"], one["outcome"]) == ("a", "a+1", "beside")
    assert heads(two_lines, two_lines.store)["a+1"] == heads(two_lines, other)["a"]


def test_clone_makes_a_store_that_knows_where_it_came_from(two_lines: Shell, other: Path) -> None:
    two_lines.ok("switch", "b")
    two_lines.ok("clone", str(two_lines.store), str(other))
    made = other / ".snapstore"
    assert heads(two_lines, made) == heads(two_lines, two_lines.store)
    assert two_lines.ok("status", "--json", "--store", str(made)).json["session"] == "b"
    two_lines.save("a", "later")
    two_lines.ok("pull", "--store", str(made))
    assert heads(two_lines, made) == heads(two_lines, two_lines.store)
    assert two_lines("clone", str(two_lines.store), str(other)).code == 6


def test_a_directory_stands_for_the_store_in_it(two_lines: Shell, other: Path) -> None:
    two_lines.ok("pull", str(two_lines.folder), "--store", str(other))
    assert heads(two_lines, other) == heads(two_lines, two_lines.store)


def test_remotes_are_added_listed_and_removed(two_lines: Shell, other: Path) -> None:
    assert two_lines("push").code == 3
    two_lines.ok("remote", "add", "origin", str(other), "--auto-push")
    assert two_lines.ok("remote").rows == [["origin", str(other), "auto-push"]]
    two_lines.ok("push")
    assert heads(two_lines, other) == heads(two_lines, two_lines.store)
    assert two_lines("remote", "add", "origin", "/elsewhere").code == 6
    two_lines.ok("remote", "remove", "origin")
    assert two_lines.ok("remote", "list", "--json").json["remotes"] == []
    assert two_lines("remote", "remove", "origin").code == 3


def test_a_bundle_carries_a_session_in_one_file(two_lines: Shell, other: Path) -> None:
    path = two_lines.folder / "b.bundle"
    told = two_lines.ok("export", "b", "--format", "bundle", "-o", str(path), "--json").json
    assert (told["refs"], told["bytes"]) == (["sessions/b"], path.stat().st_size)
    assert path.stat().st_mode & 0o777 == 0o600
    (one,) = two_lines.ok("import", str(path), "--json", "--store", str(other)).json["sessions"]
    assert (one["name"], one["turns"], one["messages"], one["created"]) == ("b", 4, 4, True)
    assert heads(two_lines, other) == {"b": heads(two_lines, two_lines.store)["b"]}
    (again,) = two_lines.ok("import", str(path), "--json", "--store", str(other)).json["sessions"]
    assert not again["created"]


def test_a_bundle_of_everything_goes_through_a_pipe(two_lines: Shell, other: Path) -> None:
    two_lines.ok("tag", "t", "a@2")
    whole = two_lines.folder / "all.bundle"
    two_lines.ok("export", "--format", "bundle", "-o", str(whole))
    two_lines.ok("import", str(whole), "--store", str(other))
    assert heads(two_lines, other) == heads(two_lines, two_lines.store)
    assert two_lines.ok("show", "t", "--json", "--store", str(other)).json["turn"] == 2


def test_a_thin_bundle_needs_what_it_goes_on_from(two_lines: Shell, other: Path) -> None:
    thin = two_lines.folder / "thin.bundle"
    two_lines.ok("export", "a", "--format", "bundle", "--since", "a@3", "-o", str(thin))
    assert two_lines("import", str(thin), "--store", str(other)).code == 6
    assert not other.exists()
    two_lines.ok("pull", str(two_lines.store), "b", "--store", str(other))
    two_lines.ok("import", str(thin), "--store", str(other))
    assert heads(two_lines, other) == heads(two_lines, two_lines.store)


def test_a_damaged_bundle_is_refused_whole(two_lines: Shell, other: Path) -> None:
    path = two_lines.folder / "b.bundle"
    two_lines.ok("export", "b", "--format", "bundle", "-o", str(path))
    data = path.read_bytes()
    path.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    result = two_lines("import", str(path), "--json", "--store", str(other))
    assert (result.code, result.error["code"]) == (5, "corrupt")
    assert not other.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("import", "b.bundle", "--as", "x"),
        ("import", "b.bundle", "--redact"),
        ("export", "b", "--format", "bundle", "--redact"),
        ("export", "b", "--format", "messages", "--since", "a@1"),
        ("export", "b", "--format", "bundle", "--json"),
    ],
)
def test_what_makes_no_sense_with_a_bundle_is_said(
    two_lines: Shell, words: tuple[str, ...]
) -> None:
    two_lines.ok("export", "b", "--format", "bundle", "-o", "b.bundle")
    assert two_lines(*words).code == 2


def test_a_bundle_is_no_text_for_a_terminal(two_lines: Shell) -> None:
    told = two_lines("export", "a", "--format", "bundle", columns=80)
    assert told.code == 2 and "-o" in told.err


def test_damage_in_the_other_store_is_told_as_of_that_store(two_lines: Shell, other: Path) -> None:
    two_lines.ok("push", str(other))
    (log,) = (other / "log").glob("*.seg")
    data = bytearray(log.read_bytes())
    data[len(data) // 3] ^= 0xFF
    log.write_bytes(data)
    assert f"warning: {other}: " in two_lines("pull", str(other)).err
