"""The progress bar: late, on a terminal only, and gone at the end."""

from __future__ import annotations

import io
import sys

import pytest
from shell import Shell

from snapstore_cli import progress
from snapstore_cli.progress import Bar
from snapstore_cli.render import words
from snapstore_cli.settings import Settings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(patch: pytest.MonkeyPatch, *, quiet: bool = False, seconds: float = 2.0) -> str:
    """What a bar writes that is at half after so many seconds."""
    clock = iter((0.0, seconds, seconds))
    patch.setattr(progress.time, "monotonic", lambda: next(clock))
    patch.setattr(sys, "stderr", screen := Terminal())
    with Bar(Settings(quiet=quiet), "a.jsonl") as bar:
        bar.progress(5, 10)
        bar.progress(5, 10)
    return screen.getvalue()


def test_it_says_how_far_it_is_and_clears_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    half = "#" * 15 + " " * 15
    told = f"[{half}]   50 %  2 B/s  2 s left  a.jsonl"
    assert drawn(monkeypatch) == f"\r\x1b[K{told}\r\x1b[K"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.1, "1 s"), (89, "89 s"), (90, "2 min"), (3599, "60 min"), (7300, "2 h")],
)
def test_time_left_is_told_in_the_unit_that_fits(seconds: float, told: str) -> None:
    assert words.duration(seconds) == told


def test_what_is_quick_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, seconds=0.5) == ""


def test_quiet_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, quiet=True) == ""


def test_a_pipe_shows_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with Bar(Settings()) as bar:
        bar.progress(1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", ["gc", "gc --apply", "forget --keep-last 1"])
def test_a_collection_and_a_rule_show_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for name in "abc":
        shell.save(name, {"role": "user", "content": name})
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    assert "%" in shell.ok(*command.split(), columns=100).err
