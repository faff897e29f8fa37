"""The progress bar: late, on a terminal only, and gone at the end."""

from __future__ import annotations

import io
import sys

import pytest

from snapstore_cli import progress
from snapstore_cli.progress import Bar
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
    assert drawn(monkeypatch) == f"\r\x1b[K[{half}]  50 %  a.jsonl\r\x1b[K"


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
