"""What commands do when an old part of the log is damaged: they go on where nothing can be lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import Shell

from snapstore import Store
from snapstore.engines.log.batch import Header
from snapstore.engines.log.engine import LogEngine

TURNS = 12


@pytest.fixture
def hurt(shell: Shell) -> tuple[Shell, str]:
    """A store whose turn 4 of session a is damaged, in a sealed segment; and where that is."""
    with Store(LogEngine(shell.store, seal_at=4000)) as store:
        for turn in range(1, TURNS + 1):
            for name in "ab":
                session = store.session(name)
                session.history.append({"role": "user", "content": f"{name} {turn} " * 30})
                session.save(f"turn {turn}")
        store.tag("kept", store.resolve("a@3"))
    path = min((shell.store / "log").glob("*.seg"))
    start, end = _batch(path, 1 + 2 * 3)
    data = bytearray(path.read_bytes())
    data[(start + end) // 2] ^= 0xFF
    path.write_bytes(data)
    return shell, f"{path} at {start}"


def _batch(path: Path, number: int) -> tuple[int, int]:
    data, start = path.read_bytes(), 0
    while True:
        header = Header(data[start:], (str(path), start))
        if header.number == number:
            return start, start + header.size
        start += header.size


def test_op_log_shows_every_other_move_and_where_one_is_hidden(hurt: tuple[Shell, str]) -> None:
    shell, place = hurt
    told = shell("op", "log", "--json")
    assert told.code == 5
    shown = [(move["ref"], move["move"]) for move in told.json["moves"]]
    moves = {(f"sessions/{name}", gen) for name in "ab" for gen in range(1, TURNS + 1)}
    assert set(shown) == (moves - {("sessions/a", 4)}) | {("tags/kept", 1)}
    times = [move["time"] for move in told.json["moves"]]
    assert times == sorted(times, reverse=True)
    told = shell("op", "log")
    assert (told.code, told.err.count("warning"), told.err.count(place)) == (5, 1, 1)


def test_op_log_of_what_happened_lately_does_not_come_that_far(hurt: tuple[Shell, str]) -> None:
    shell, _ = hurt
    assert len(shell.ok("op", "log", "-n", "3").lines) == 3


def test_the_timeline_shows_what_can_be_read(hurt: tuple[Shell, str]) -> None:
    shell, place = hurt
    for way in (("--graph",), ("--json",), ()):
        told = shell("log", "--all", *way)
        assert (told.code, told.err.count("warning")) == (5, 1) and place in told.err
    told = shell("log", "--all", "--json")
    turns = sorted(turn["turn"] for turn in told.json["snapshots"])
    of_a, of_b = [1, 2, 3, *range(6, TURNS + 1)], range(1, TURNS + 1)
    assert turns == sorted([*of_a, *of_b])
    page = shell.store.parent / "page.html"
    told = shell.ok("export", "--all", "--format", "html", "-o", str(page))
    assert page.stat().st_size > 10_000 and place in told.err


def test_scan_looks_at_the_rest_and_does_not_say_that_all_is_clean(
    hurt: tuple[Shell, str],
) -> None:
    shell, place = hurt
    told = shell("scan")
    assert told.code == 5 and place in told.err and "could not be read" in told.err


def test_recover_shows_what_it_would_and_writes_nothing(hurt: tuple[Shell, str]) -> None:
    shell, place = hurt
    told = shell.ok("recover", "--dry-run", "--json")
    assert told.json["sessions"] == [] and place in told.err


def test_repair_goes_on_with_what_is_whole(hurt: tuple[Shell, str]) -> None:
    shell, _ = hurt
    shown = shell.ok("repair", "--json").json
    (moved,) = shown["moved"]
    assert (moved["ref"], moved["turn"], shown["applied"]) == ("sessions/a", 3, False)
    shell.ok("repair", "--apply")
    assert shell.ok("op", "log").err == ""
    shell.save("a", "goes on")
    assert [shell.ok("status", "-s", name, "--json").json["turn"] for name in "ab"] == [4, TURNS]


@pytest.mark.parametrize(
    "command", [("gc",), ("gc", "--apply"), ("purge", "--match", "a 4 a 4"),
                ("purge", "--match", "a 4 a 4", "--apply")], ids=" ".join,
)  # fmt: skip
def test_what_would_lose_something_is_refused_and_says_what_to_do(
    hurt: tuple[Shell, str], command: tuple[str, ...]
) -> None:
    shell, place = hurt
    log = {path: path.read_bytes() for path in (shell.store / "log").glob("*.seg")}
    told = shell(*command)
    assert told.code == 5 and place in told.err and "snapstore repair --apply" in told.err
    assert {path: path.read_bytes() for path in (shell.store / "log").glob("*.seg")} == log


@pytest.mark.parametrize("look", ["op log", "show a@4", "verify"])
def test_nothing_is_saved_any_more_once_a_command_met_it(
    hurt: tuple[Shell, str], look: str
) -> None:
    shell, place = hurt
    assert shell(*look.split()).code == 5
    told = shell("save", "-s", "b", "--set", "x=1")
    assert told.code == 5 and place in told.err and "snapstore repair --apply" in told.err
    assert shell("doctor").code == 1
