"""A shell for tests: runs the command line in this process and catches what it says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import snapstore
from snapstore_cli.main import run


@dataclass(frozen=True, slots=True)
class Result:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err.splitlines()[-1])["error"]

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.lines]


def plain(lines: list[str]) -> list[str]:
    """Lines without their colours."""
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]


class _Stream(io.TextIOWrapper):
    def __init__(self, *, terminal: bool) -> None:
        self.held = io.BytesIO()
        super().__init__(self.held, encoding="utf-8", write_through=True, newline="\n")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def text(self) -> str:
        return self.held.getvalue().decode("utf-8")


class Shell:
    """Commands on one store, in a directory of their own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.store = folder / ".snapstore"
        self._patch = patch

    def __call__(self, *args: str, stdin: str | bytes = b"", columns: int | None = None) -> Result:
        """Run a command; on a terminal of so many columns when these are given."""
        fed = stdin.encode("utf-8", "surrogateescape") if isinstance(stdin, str) else stdin
        out, err = (_Stream(terminal=columns is not None) for _ in range(2))
        source = io.TextIOWrapper(io.BytesIO(fed), encoding="utf-8")
        if columns is not None:
            source.isatty = lambda: True  # type: ignore[method-assign]
            self._patch.setattr(
                shutil, "get_terminal_size", lambda *_: os.terminal_size((columns, 24))
            )
        self._patch.setattr(sys, "stdin", source)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(args)
        return Result(code, out.text, err.text)

    def ok(self, *args: str, **how: Any) -> Result:
        """Run a command that must succeed."""
        result = self(*args, **how)
        assert result.code == 0, (args, result)
        return result

    def save(self, session: str, *messages: Any, label: str = "", sets: Any = None) -> str:
        """Save a turn; its id."""
        args = ["save", "-s", session, "--json", "--messages", "-"]
        args += ["-m", label] if label else []
        for key, value in (sets or {}).items():
            args += ["--set", f"{key}={json.dumps(value)}"]
        saved: str = self.ok(*args, stdin=json.dumps(list(messages))).json["id"]
        return saved

    def open(self) -> snapstore.Store:
        """The store, for what no command shows."""
        return snapstore.open(self.store, create=False)
