"""Where the tour happens: a folder in which commands and programs are run, shown and checked."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from snapstore_cli.output import Output

_KILLED = -signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Run:
    """What was run, and what came of it."""

    command: str
    exit_code: int
    """Below 0 for the signal that ended it."""
    output: str
    """What it printed, where that was caught and not let through to the terminal."""


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must be so."""

    what: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Told:
    """What happened in one step."""

    title: str
    runs: list[Run] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)


class Scratch:
    """Runs things in a folder and tells what they do: as it happens, or in a document at the end.

    Commands are run as users run them: each a process of its own, with its own output.
    """

    def __init__(self, folder: Path, out: Output, *, quiet: bool) -> None:
        self.folder = folder
        self.told: list[Told] = []
        self._out = out
        self._caught = out.json or quiet
        foreign = ("SNAPSTORE_STORE", "SNAPSTORE_PAGER")
        kept = {key: value for key, value in os.environ.items() if key not in foreign}
        self._environment = {**kept, "SNAPSTORE_PAGER": ""}

    # --- telling ----------------------------------------------------------------------------------

    @property
    def holds(self) -> bool:
        """Whether everything was so that had to be."""
        return all(check.holds for told in self.told for check in told.checks)

    def document(self) -> list[dict[str, Any]]:
        """All that was told, for JSON."""
        return [asdict(told) for told in self.told]

    def begin(self, title: str, text: str) -> None:
        """A step begins."""
        self.told.append(Told(title))
        self._print(f"\n{self._out.look.style('heading', f'{len(self.told)}. {title}')}\n{text}\n")

    def check(self, what: str, *, holds: bool) -> None:
        """Say that something is so, or that it is not."""
        self.told[-1].checks.append(Check(what, holds))
        verdict = (
            self._out.look.style("added", "ok") if holds else self._out.look.style("error", "NO")
        )
        self._print(f"{verdict}  {what}\n")

    def _print(self, text: str) -> None:
        if not self._caught:
            sys.stdout.write(text)
            sys.stdout.flush()  # before a child writes to the same place

    def _prompt(self, command: str) -> None:
        self._print(f"{self._out.look.style('name', f'$ {command}')}\n")

    # --- running ----------------------------------------------------------------------------------

    def command(self, *args: str, stdin: str = "") -> None:
        """Run a snapstore command, which must succeed."""
        shown = shlex.join(["snapstore", *args])
        if stdin:
            shown = f"echo {shlex.quote(stdin)} | {shown}"
        run = self._run(shown, [sys.executable, "-m", "snapstore_cli", *args], stdin)
        if run.exit_code:
            self.check(f"{shown} ended with exit code {run.exit_code}", holds=False)

    def program(self, name: str, *args: str) -> None:
        """Run one of the tour's programs, which must end well."""
        run = self._run(shlex.join(["python", name, *args]), [sys.executable, name, *args])
        if run.exit_code:
            self.check(f"{name} ended with exit code {run.exit_code}", holds=False)

    def shell(self, line: str) -> None:
        """Run a line of shell, which must end well."""
        run = self._run(line, ["sh", "-c", line])
        if run.exit_code:
            self.check(f"{line} ended with exit code {run.exit_code}", holds=False)

    def contents(self, folder: str) -> dict[str, str]:
        """The files below a folder, for a check."""
        root = self.folder / folder
        paths = (path for path in root.rglob("*") if path.is_file())
        return {str(path.relative_to(root)): path.read_text() for path in paths}

    def program_that_dies(self, name: str, *args: str) -> None:
        """Run one of the tour's programs, which must be killed."""
        run = self._run(shlex.join(["python", name, *args]), [sys.executable, name, *args])
        self.check("it was killed by SIGKILL", holds=run.exit_code == _KILLED)

    def show_program(self, name: str) -> None:
        """Put one of the tour's programs into the folder, and show it."""
        source = (files("snapstore_cli.tour.programs") / name).read_text()
        (self.folder / name).write_text(source)
        self._prompt(f"cat {name}")
        self._print(source + "\n")

    def kill_while_it_prints(self, name: str, lines: int) -> list[str]:
        """Start a program, kill it at any moment after so many lines; all lines that it printed."""
        shown = shlex.join(["python", name])
        self._prompt(shown)
        child = subprocess.Popen(
            [sys.executable, name],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        with child:
            printed = [line for _, line in zip(range(lines), child.stdout, strict=False)]
            time.sleep(0.05)  # so that it is killed anywhere in its loop, not just behind a print
            child.kill()
            printed += [line for line in child.stdout if line.endswith("\n")]
        self.told[-1].runs.append(Run(shown, child.returncode, "".join(printed)))
        self._print("".join(_ends(printed)) + "\n")
        self.check("it was killed by SIGKILL", holds=child.returncode == _KILLED)
        return printed

    def ask(self, *args: str) -> Any:
        """What a command says as JSON, for a check."""
        done = subprocess.run(
            [sys.executable, "-m", "snapstore_cli", *args, "--json"],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            self.check(f"snapstore {shlex.join(args)}: {done.stderr.strip()}", holds=False)
            return {}
        return json.loads(done.stdout)

    def _run(self, shown: str, argv: list[str], stdin: str = "") -> Run:
        self._prompt(shown)
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=self._environment,
            input=stdin,
            stdout=subprocess.PIPE if self._caught else None,
            stderr=subprocess.STDOUT,
            text=True,
        )
        run = Run(shown, done.returncode, done.stdout or "")
        self.told[-1].runs.append(run)
        self._print("\n")
        return run


def _ends(lines: list[str]) -> Iterator[str]:
    if len(lines) <= 4:
        yield from lines
        return
    yield from lines[:2]
    yield f"... {len(lines) - 4} more ...\n"
    yield from lines[-2:]
