"""snapstore sessions, fork, switch, rename, delete and tag: what names point at."""

from __future__ import annotations

from shell import Shell, plain


def names(shell: Shell) -> list[str]:
    return [entry["name"] for entry in shell.ok("sessions", "--json").json["sessions"]]


def test_sessions_tells_where_each_stands(two_lines: Shell) -> None:
    found = {entry["name"]: entry for entry in two_lines.ok("list", "--json").json["sessions"]}
    base = two_lines.ok("show", "a@3", "--json").json["id"]
    assert found["a"].keys() == {
        "name", "head", "turn", "time", "forked_from", "current", "messages",
    }  # fmt: skip
    assert (found["a"]["turn"], found["a"]["messages"], found["a"]["forked_from"]) == (5, 5, None)
    assert (found["b"]["turn"], found["b"]["messages"], found["b"]["forked_from"]) == (4, 4, base)
    assert (found["a"]["current"], found["b"]["current"]) == (False, True)


def test_sessions_is_a_line_each_off_a_terminal_and_a_tree_on_one(two_lines: Shell) -> None:
    two_lines.ok("fork", "b@4", "a-third")
    rows = two_lines.ok("sessions").rows
    assert [row[0] for row in rows] == ["a-third", "b", "a"]
    tree = two_lines.ok("sessions", columns=100).lines
    assert [line.split("turn")[0].rstrip() for line in plain(tree)] == [
        "   a",
        "*  └─ b",
        "      └─ a-third",
    ]


def test_fork_starts_from_the_current_head_or_a_turn(two_lines: Shell) -> None:
    made = two_lines.ok("fork", "c", "--json").json
    assert (made["session"], made["turn"], made["current"]) == ("c", 4, False)
    assert two_lines.ok("fork", "a@2", "d", "--switch", "--json").json["turn"] == 2
    assert two_lines.ok("status", "--json").json["session"] == "d"
    assert two_lines("fork", "a", "b", "c").code == 2


def test_rename_keeps_turns_and_ids(two_lines: Shell) -> None:
    head = two_lines.ok("show", "a", "--json").json["id"]
    two_lines.ok("rename", "a", "aa")
    assert names(two_lines) == ["aa", "b"]
    assert two_lines.ok("show", "aa", "--json").json["id"] == head
    assert "renamed to aa" in two_lines("show", "a").err
    two_lines.ok("undo", "-s", "aa")
    assert names(two_lines) == ["a", "b"]


def test_a_deleted_session_comes_back_with_undo(two_lines: Shell) -> None:
    head = two_lines.ok("show", "b", "--json").json["id"]
    two_lines.ok("delete", "b")
    assert names(two_lines) == ["a"]
    assert two_lines.ok("show", head, "--json").json["turn"] == 4
    two_lines.ok("undo", "-s", "b")
    assert names(two_lines) == ["a", "b"]
    assert two_lines.ok("sessions", "--json").json["sessions"][1]["forked_from"] is not None


def test_delete_asks_on_a_terminal_only(two_lines: Shell) -> None:
    refused = two_lines("delete", "b", stdin="n\n", columns=80)
    assert refused.code == 1 and "4 turns" in refused.err and names(two_lines) == ["a", "b"]
    assert two_lines("delete", "b", stdin="", columns=80).code == 130
    two_lines.ok("delete", "b", stdin="y\n", columns=80)
    two_lines.ok("undo", "-s", "b")
    two_lines.ok("delete", "b", "--yes", columns=80)
    two_lines.ok("undo", "-s", "b")
    two_lines.ok("delete", "b", "--no-input", columns=80)
    assert names(two_lines) == ["a"]


def test_the_current_session_follows_its_name_through_rename_undo_and_redo(
    two_lines: Shell,
) -> None:
    def current() -> str:
        return str(two_lines.ok("status", "--json").json["session"])

    two_lines.ok("rename", "b", "c")
    assert current() == "c"
    told = two_lines.ok("undo", "-n", "2")
    assert "c is called b again" in told.err and told.out.startswith("b: ")
    assert current() == "b"
    assert two_lines.ok("redo", "-n", "2").out.startswith("c: ")
    assert current() == "c" and names(two_lines) == ["a", "c"]


def test_a_current_session_that_is_gone_says_how_to_go_on(two_lines: Shell) -> None:
    two_lines.ok("delete", "b")
    for command in (["tag", "x"], ["log"], ["fork", "y"]):
        refused = two_lines(*command)
        assert refused.code == 3
        assert "undo -s b" in refused.err and "snapstore switch" in refused.err
    two_lines.ok("status")


def test_a_tag_names_a_turn_for_good(two_lines: Shell) -> None:
    two_lines.ok("tag", "good", "a@2")
    two_lines.ok("rewind", "a@1")
    assert two_lines.ok("show", "good", "--json").json["turn"] == 2
    assert "good" in two_lines.ok("log", "good", "--json").json["snapshots"][0]["refs"]
    assert two_lines.ok("tag", "--json").json["tags"][0]["tag"] == "good"
    two_lines.ok("tag", "-d", "good")
    assert two_lines("show", "good").code == 3


def test_a_tag_that_is_moved_says_from_where(two_lines: Shell) -> None:
    assert "moved" not in two_lines.ok("tag", "v1", "a@3").out
    assert "moved from turn 3" in two_lines.ok("tag", "v1", "a@5").out
    assert "moved" not in two_lines.ok("tag", "v1", "a@5").out


def test_a_tag_and_a_session_do_not_get_one_name(two_lines: Shell) -> None:
    two_lines.ok("tag", "v1", "a@3")
    for command in (
        ["tag", "b", "a@1"],
        ["fork", "a@1", "v1"],
        ["rename", "b", "v1"],
        ["save", "-s", "v1"],
        ["chat", "v1"],
        ["import", "turn.json", "--as", "v1"],
    ):
        refused = two_lines(*command)
        assert refused.code == 6, (command, refused)
    assert "`snapstore tag -d v1`" in refused.err
    assert names(two_lines) == ["a", "b"]
    assert two_lines.ok("show", "v1", "--json").json["turn"] == 3
    two_lines.ok("tag", "-d", "v1")
    two_lines.ok("fork", "a@1", "v1")


def test_a_tag_that_a_session_hides_is_not_told_by_that_name_alone(two_lines: Shell) -> None:
    two_lines.ok("tag", "v1", "a@3")
    with two_lines.open() as store:
        store.session("v1").save()  # a program is not kept from saving
    found = {
        entry["id"]: entry["refs"] for entry in two_lines.ok("log", "a", "--json").json["snapshots"]
    }
    third = two_lines.ok("show", "a@3", "--json").json["id"]
    assert found[third] == ["tag v1"]


def test_sessions_stand_newest_first_and_those_of_one_time_as_people_count(shell: Shell) -> None:
    shell.save("z-old")
    shell.save("base")
    for number in (10, 9):
        shell.ok("fork", "base", f"b{number}")
    shell.save("new")
    names = [row[0] for row in shell.ok("sessions").rows]
    assert names == ["new", "b9", "b10", "base", "z-old"]
    listed = shell.ok("sessions", "--json").json["sessions"]
    assert [info["name"] for info in listed] == sorted(names)


def test_a_long_name_is_whole_and_what_is_behind_it_gives_way(shell: Shell) -> None:
    name = "a-session-with-a-name-of-more-than-fifty-characters-in-all"
    shell.save(name, {"role": "user", "content": "hi"}, label="a label that is long, too " * 4)
    (line,) = plain(shell.ok("sessions", columns=80).lines)
    assert f"{name} turn 1 1 message" in line and len(line) <= 80
    (drawn,) = plain(shell.ok("log", "--graph", "--all", columns=80).lines)
    assert "a label" in drawn and len(drawn) <= 80
    shell.ok("rename", name, name[:50])
    (drawn,) = plain(shell.ok("log", "--graph", "--all", columns=80).lines)
    assert f"({name[:50]}) a " in drawn and len(drawn) <= 80
