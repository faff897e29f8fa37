"""The TOML file that describes a task of shell commands.

    name = "release"

    [[phase]]
    name = "build"
    run = "make dist"           # a command of the shell
    cwd = "app"                 # where to run it; else where snapstore runs
    env = { LEVEL = "3" }       # on top of the environment
    timeout = 600               # seconds
    retries = 2                 # tries after the first that failed
    needs = []                  # phases that must have finished; else all that stand before it
    version = 1                 # change it to have the phase run again

Errors name the line. TOML readers do not tell where a value stands, so for what is well-formed and
still wrong the line is looked for in the text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snapstore.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class CommandPhase:
    """A phase that is a command of the shell."""

    name: str
    run: str
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    retries: int = 0
    needs: tuple[str, ...] | None = None
    version: str | int | None = None


@dataclass(frozen=True, slots=True)
class TaskFile:
    """A task as its file describes it."""

    name: str
    phases: tuple[CommandPhase, ...]


def read(path: str) -> TaskFile:
    """The task in a file. Raises InvalidInput, which names the line."""
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{path}: line {line} is not UTF-8") from None
    return parse(text, path)


def parse(text: str, name: str) -> TaskFile:
    """The task in this text; name is what to call it in an error."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{name}: {error}", hint="see `snapstore task run --help`") from None
    except RecursionError:
        raise InvalidInput(f"{name}: nested too deeply for a task") from None
    return _Reader(text, name).task(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _is_version(value: Any) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (_is_text, "a text"),
    "run": (_is_text, "a command"),
    "cwd": (_is_text, "a directory"),
    "env": (_is_texts, "a table of texts"),
    "timeout": (_is_number, "a number of seconds"),
    "retries": (_is_count, "a whole number"),
    "needs": (_is_names, "a list of the names of phases"),
    "version": (_is_version, "a text or a whole number"),
}


class _Reader:
    def __init__(self, text: str, name: str) -> None:
        self._lines = text.split("\n")
        self._name = name
        header = re.compile(r"\s*\[\[\s*[\"']?phase[\"']?\s*\]\]")
        self._starts = [n for n, line in enumerate(self._lines, 1) if header.match(line)]

    def task(self, found: dict[str, Any]) -> TaskFile:
        for key in found:
            if key not in ("name", "phase"):
                raise self._error(f"there is no key {key!r}; there are name and [[phase]]", key)
        name = found.get("name")
        if not _is_text(name):
            raise self._error('a task has a name: name = "release"', "name")
        tables = found.get("phase", [])
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            raise self._error("phases are tables: [[phase]]", "phase")
        phases = tuple(self._phase(n, table) for n, table in enumerate(tables))
        self._refuse_twins(phases)
        return TaskFile(str(name), phases)

    def _phase(self, number: int, table: dict[str, Any]) -> CommandPhase:
        for key, value in table.items():
            if key not in _KEYS:
                known = ", ".join(_KEYS)
                raise self._error(f"a phase has no key {key!r}; there are {known}", key, number)
            fits, what = _KEYS[key]
            if not fits(value):
                raise self._error(f"{key} is {what}, not {value!r}", key, number)
        for key in ("name", "run"):
            if key not in table:
                raise self._error(f"phase {number + 1} has no {key}", "", number)
        needs = tuple(table["needs"]) if "needs" in table else None
        return CommandPhase(**{**table, "needs": needs})

    def _refuse_twins(self, phases: tuple[CommandPhase, ...]) -> None:
        names: set[str] = set()
        for number, phase in enumerate(phases):
            if phase.name in names:
                raise self._error(f"there are two phases {phase.name!r}", "name", number)
            names.add(phase.name)
        for number, phase in enumerate(phases):
            strange = next((need for need in phase.needs or () if need not in names), None)
            if strange is not None:
                raise self._error(f"{phase.name!r} needs {strange!r}, which is no phase", "needs",
                                  number)  # fmt: skip

    def _error(self, message: str, key: str, phase: int | None = None) -> InvalidInput:
        line = self._line(key, phase)
        return InvalidInput(
            f"{self._name}: line {line}: {message}", hint="see `snapstore task run --help`"
        )

    def _line(self, key: str, phase: int | None) -> int:
        """Where a key stands in a phase, or before all phases; else where that begins."""
        first, last = 1, len(self._lines)
        if phase is None:
            last = self._starts[0] - 1 if self._starts else last
        elif phase < len(self._starts):
            first = self._starts[phase]
            last = self._starts[phase + 1] - 1 if phase + 1 < len(self._starts) else last
        place = re.compile(rf"\s*\[?\s*[\"']?{re.escape(key)}[\"']?\s*[.=\]]") if key else None
        lines = self._lines[first - 1 : last]
        return next(
            (n for n, line in enumerate(lines, first) if place and place.match(line)), first
        )
