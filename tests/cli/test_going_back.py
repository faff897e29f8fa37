"""snapstore rewind, undo, redo and op log: HEAD back and forth, and nothing lost."""

from __future__ import annotations

from shell import Shell


def test_rewind_moves_head_and_undo_and_redo_step_over_it(two_lines: Shell) -> None:
    def turn() -> int:
        return int(two_lines.ok("show", "a", "--json").json["turn"])

    ids = [two_lines.ok("show", f"a@{n}", "--json").json["id"] for n in range(1, 6)]
    moved = two_lines.ok("rewind", "a@2", "--json").json
    assert moved == {
        "schema": 1,
        "session": "a",
        "from": ids[4],
        "to": ids[1],
        "turn": 2,
        "files": None,
        "dry_run": False,
    }
    assert turn() == 2
    back = two_lines.ok("undo", "-s", "a", "--json").json
    assert (back["from"], back["to"], back["turn"]) == (ids[1], ids[4], 5)
    assert two_lines.ok("redo", "-s", "a", "--json").json["turn"] == 2


def test_a_dry_run_moves_nothing(two_lines: Shell) -> None:
    before = two_lines.ok("op", "log").out
    shown = two_lines.ok("rewind", "a@2", "--dry-run", "--json").json
    assert (shown["dry_run"], shown["turn"]) == (True, 2)
    assert (
        two_lines.ok("rewind", "a@1", "--what", "messages", "--dry-run", "--json").json["turn"] == 6
    )
    assert two_lines.ok("op", "log").out == before


def test_a_name_says_which_session_is_rewound_and_an_id_the_current_one(two_lines: Shell) -> None:
    two_lines.ok("rewind", "a@2")
    first = two_lines.ok("show", "a@1", "--json").json["id"]
    assert two_lines.ok("rewind", first[:10], "--json").json["session"] == "b"
    assert two_lines.ok("rewind", "b@{1}", "--json").json["turn"] == 4
    assert two_lines.ok("rewind", "@~1", "--json").json["session"] == "b"
    assert two_lines.ok("rewind", first, "-s", "a", "--json").json["session"] == "a"


def test_only_the_messages_or_only_the_scratchpad_can_go_back(two_lines: Shell) -> None:
    two_lines.ok("rewind", "a@2", "--what", "messages")
    found = two_lines.ok("show", "a", "--json").json
    assert (found["turn"], len(found["messages"]), found["scratchpad"]) == (6, 2, {"step": 5})
    two_lines.ok("undo", "-s", "a")
    two_lines.ok("rewind", "a@2", "--what", "scratchpad")
    found = two_lines.ok("show", "a", "--json").json
    assert (found["turn"], len(found["messages"]), found["scratchpad"]) == (6, 5, {"step": 2})
    two_lines.ok("undo", "-s", "a")
    assert two_lines.ok("show", "a", "--json").json["turn"] == 5


def test_undo_takes_as_many_steps_as_there_are_and_says_when_it_was_fewer(shell: Shell) -> None:
    for n in range(3):
        shell.save("a", n)
    result = shell.ok("undo", "-n", "2", "--json")
    assert (result.json["turn"], result.err) == (1, "")
    result = shell.ok("undo", "-n", "5", "--json")
    assert (result.json["to"], result.json["turn"]) == (None, 0)
    assert "only 1 step to undo" in result.err
    assert shell("undo").code == 1
    assert shell.ok("redo", "-n", "3", "--json").json["turn"] == 3


def test_rewinding_between_a_call_and_its_result_warns(shell: Shell) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    shell.save("a", {"role": "assistant", "content": [call]})
    shell.save("a", {"role": "user", "content": [result]})
    told = shell.ok("rewind", "a@1", "--json")
    assert "Bash" in told.err and told.json["turn"] == 1
    assert shell.ok("undo", "--json").err == ""


def test_files_cannot_go_back_where_none_were_saved(two_lines: Shell) -> None:
    result = two_lines("rewind", "a@2", "--what", "messages,scratchpad,files")
    assert result.code == 3 and "no files" in result.err
    assert two_lines.ok("show", "a", "--json").json["turn"] == 5


def test_the_op_log_lists_every_move_newest_first(two_lines: Shell) -> None:
    two_lines.ok("rewind", "a@2")
    two_lines.ok("undo", "-s", "a")
    two_lines.ok("delete", "b")
    moves = two_lines.ok("op", "log", "--json").json["moves"]
    assert [(m["ref"], m["op"]) for m in moves[:3]] == [
        ("sessions/b", "delete"),
        ("sessions/a", "undo"),
        ("sessions/a", "rewind"),
    ]
    assert moves[0]["to"] is None and moves[2]["from"] == moves[1]["to"]
    times = [m["time"] for m in moves]
    assert times == sorted(times, reverse=True)


def test_the_op_log_of_one_session_and_of_a_few_moves(two_lines: Shell) -> None:
    rows = two_lines.ok("op", "log", "-s", "b").rows
    assert [row[2] for row in rows] == ["save", "fork"]
    assert {row[1] for row in rows} == {"b"}
    assert len(two_lines.ok("op", "log", "-n", "2").lines) == 2


def test_every_id_in_the_op_log_is_accepted(two_lines: Shell) -> None:
    for move in two_lines.ok("op", "log", "--json").json["moves"]:
        for end in (move["from"], move["to"]):
            if end is not None:
                assert two_lines.ok("show", end, "--json").json["turn"] >= 1


def test_a_rewind_to_where_it_stands_is_no_move_and_leaves_redo(two_lines: Shell) -> None:
    two_lines.ok("undo", "-s", "a")
    moves = two_lines.ok("op", "log").out
    for what in ("messages,scratchpad", "messages", "scratchpad"):
        told = two_lines.ok("rewind", "a", "--what", what)
        assert told.out.startswith("a stays at turn 4 (") and "where it stood" in told.out
    stays = two_lines.ok("rewind", "a@4", "--json").json
    assert (stays["from"], stays["turn"]) == (stays["to"], 4)
    assert two_lines.ok("op", "log").out == moves
    assert two_lines.ok("redo", "-s", "a", "--json").json["turn"] == 5


def test_a_step_that_deletes_a_session_again_says_so(two_lines: Shell) -> None:
    two_lines.ok("delete", "b")
    assert two_lines.ok("undo", "-s", "b").out.startswith("b: deleted -> turn 4 (")
    assert two_lines.ok("undo", "-s", "b", "-n", "9").out.endswith(" -> nothing\n")
    told = two_lines.ok("redo", "-s", "b", "-n", "9").out
    assert told == "b: nothing -> deleted; `snapstore undo -s b` brings it back\n"
