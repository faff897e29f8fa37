"""What a terminal is shown beyond plain fields: what was asked, and how short an id may be."""

from __future__ import annotations

import pytest
from shell import Shell, plain
from terminal import Terminal

from snapstore_cli.prefixes import Shortest
from snapstore_cli.render import words


@pytest.mark.parametrize("how", [(), ("--graph",)])
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_turn_without_a_label_shows_what_was_asked(
    shell: Shell, how: tuple[str, ...], columns: int
) -> None:
    shell.save("a", {"role": "user", "content": "Why does it fail?"})
    (line,) = plain(shell.ok("log", "a", *how, columns=columns).lines)
    assert "Why" in line and len(line) <= columns
    assert "Why does it fail?" not in shell.ok("log", "a").out


def test_the_digits_that_are_enough_for_an_id_stand_out(shell: Shell) -> None:
    saved = shell.save("a", {"role": "user", "content": "x"})
    line = shell.ok("log", "a", columns=80).out
    assert f"\x1b[1m{saved[:4]}\x1b[0m\x1b[2m{saved[4:12]}\x1b[0m" in line
    assert shell.ok("show", saved[:4], "--json").json["id"] == saved


def test_so_many_digits_are_enough_and_one_less_is_not(shell: Shell) -> None:
    ids = [shell.save("a", {"role": "user", "content": str(n)}) for n in range(5)]
    with shell.open() as store:
        shortest = Shortest(store)
        for one in ids:
            enough = shortest(one)
            assert sum(other.startswith(one[:enough]) for other in ids) == 1
            assert enough == 4 or sum(o.startswith(one[: enough - 1]) for o in ids) > 1


def test_no_color_means_no_marks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.save("a", {"role": "user", "content": "x"})
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shell.ok("log", "a", columns=80).out


def test_the_sessions_to_pick_from_are_aligned(two_lines: Shell) -> None:
    told = two_lines("resume", stdin="", columns=80).err
    rows = [line for line in plain(told.splitlines()) if "turn" in line]
    assert len({row.index("turn ") for row in rows}) == 1


def test_on_a_terminal_of_ascii_a_cut_is_marked_in_ascii(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.save("a", label="a label that goes on " * 10)
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal(shell.folder, "log")
    terminal.wait_for("a label that")
    terminal.wait_for("~\r\n")
    assert terminal.end() == 0


WORDS = "words of a label that go on and on, 日本語 too, "
LONG, WIDE = "a-session-of-which-the-name-is-longer-than-any-terminal-likes", "日本語" * 12


@pytest.fixture
def crowded(shell: Shell) -> Shell:
    """Sessions with long and with wide names, labels, messages and forks of forks."""
    for n in range(3):
        said = {"role": "user", "content": WORDS * 9}
        shell.save(LONG, said, label=WORDS * 3 if n else "", sets={"plan": WORDS * 3})
    before = LONG
    for name in (WIDE, *(f"{WIDE}/{n}" for n in range(9))):
        shell.ok("fork", before, name)
        said = {"role": "assistant", "content": WORDS}
        shell.save(name, said, label=WORDS, sets={"note": WORDS, "plan": WORDS * 2})
        before = name
    shell.ok("switch", LONG)
    return shell


@pytest.mark.parametrize(
    "command",
    [
        "log", "log --oneline", "log --all", "log --graph --all", "log --graph --all --oneline",
        "sessions", "status", "stats", "op log", "resume", "show --messages",
        f"diff {LONG} {WIDE}/8 --stat", f"diff {LONG} {WIDE}/8",
        f"diff {WIDE}/2 {LONG} --side-by-side",
    ],
)  # fmt: skip
def test_no_line_is_wider_than_the_terminal(crowded: Shell, command: str) -> None:
    for columns in (50, 60, 80, 200):
        told = crowded.ok(*command.split(), columns=columns, stdin="1\n")
        rows = plain([*told.lines, *told.err.splitlines()])
        # A command to copy is told whole.
        wider = [row for row in rows if words.cells(row) > columns and "go on: " not in row]
        assert wider == [], columns
