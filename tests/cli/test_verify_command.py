"""What verify says of a problem, to people and to programs, and which exit code that makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import Shell
from toolrounds import chat_calls, chat_result

from snapstore import Store
from snapstore.engine import Touch
from snapstore.engines.log.batch import Header
from snapstore.engines.log.engine import LogEngine
from snapstore_cli.render.touches import in_words


@pytest.fixture
def hurt(shell: Shell) -> Shell:
    """Session a of twelve turns and b forked from its sixth; a message of the second is damaged."""
    with Store(LogEngine(shell.store, seal_at=3000)) as store:
        for turn in range(12):
            session = store.session("a")
            session.history.append({"role": "user", "content": f"{turn} " * 30})
            session.save()
        store.session("a").fork("b", at=6)
    path = min((shell.store / "log").glob("*.seg"))
    data, start = bytearray(path.read_bytes()), 0
    for _ in range(2):
        start += _size(path, data, start)
    data[start + _size(path, data, start) // 2] ^= 0xFF
    path.write_bytes(data)
    return shell


def _size(path: Path, data: bytearray, start: int) -> int:
    return Header(bytes(data[start:]), (str(path), start)).size


def test_each_problem_names_the_turns_that_it_touches(hurt: Shell) -> None:
    result = hurt("verify", "--json")
    assert result.code == 5
    batch, *objects = result.json["problems"]
    assert batch["kind"] == "damaged_batch"
    assert batch["touches"] == [
        {"session": "a", "turns": [1, 12]},
        {"session": "b", "turns": [1, 6]},
    ]
    assert all(problem["touches"] and problem["id"] for problem in objects)
    assert {problem["index"] for problem in result.json["problems"]} == {None}


def test_for_people_they_stand_below_it(hurt: Shell) -> None:
    for how in ((), ("--quick",)):
        lines = hurt("verify", *how).lines
        assert lines[0].startswith("damaged_batch: ")
        assert lines[1] == "  touches turns 1-12 of a, turns 1-6 of b"


def test_a_result_without_a_call_is_a_warning(shell: Shell) -> None:
    shell.save("a", chat_calls(["t1"]))
    shell.save("a", chat_result("t1"))
    shell.save("a", chat_result("t1"))
    result = shell.ok("verify", "--json")
    assert result.json["ok"] is True
    (problem,) = result.json["problems"]
    assert (problem["kind"], problem["harmless"], problem["index"]) == ("pair", True, 2)
    assert problem["touches"] == [{"session": "a", "turns": [3, 3]}]
    told = shell.ok("verify")
    assert "all is well" in told.out
    assert told.err == (
        "warning: pair: message 2: the result of t1 comes a second time; touches turn 3 of a\n"
    )
    assert shell.ok("verify", "--quick").err == ""


def test_very_many_warnings_are_only_counted(shell: Shell) -> None:
    shell.save("a", *(chat_result(f"t{n}") for n in range(30)))
    told = shell.ok("verify").err.splitlines()
    assert len(told) == 21
    assert told[-1] == "warning: 10 more warnings; --json lists them"
    assert len(shell.ok("verify", "--json").json["problems"]) == 30


@pytest.mark.parametrize(
    ("touches", "words"),
    [
        ([Touch("sessions/a", 3, 3)], "turn 3 of a"),
        ([Touch("sessions/a", 3, 9), Touch("tags/v1", 4, 4)], "turns 3-9 of a, turn 4 of tag v1"),
        ([Touch("sessions/a", 1, 2), Touch("sessions/a", 4, 4)], "turns 1-2 and 4 of a"),
        ([Touch("sessions/a", n, n) for n in (1, 3, 5, 7)], "4 turns from 1 to 7 of a"),
        ([Touch("sessions/a", 0, 0)], "all of a"),
        (
            [Touch(f"sessions/{n}", 1, 1) for n in range(5)],
            "turn 1 of 0, turn 1 of 1, turn 1 of 2, and 2 more sessions",
        ),
        (
            [*(Touch(f"sessions/{n}", 1, 1) for n in range(3)), Touch("tags/t", 1, 1)],
            "turn 1 of 0, turn 1 of 1, turn 1 of 2, and 1 more line",
        ),
    ],
)
def test_turns_in_words(touches: list[Touch], words: str) -> None:
    assert in_words(touches) == words
