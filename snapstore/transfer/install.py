"""Exports where the program looks for them, so that it goes on from there."""

from __future__ import annotations

import contextlib
import re
from array import array
from dataclasses import dataclass
from pathlib import Path

from snapstore.disk import DISK, Disk
from snapstore.errors import Corrupt, InvalidInput, Refused
from snapstore.outfile import put_new
from snapstore.times import moment
from snapstore.transfer.beside import HISTORY
from snapstore.transfer.exports import HARNESSES, Export

_ODD = re.compile("[^A-Za-z0-9]")
_LONGEST_SLUG = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Installed:
    """Where an export lies, and how to go on from it."""

    path: Path
    command: tuple[str, ...]
    cwd: str
    """The directory to run the command in."""
    written: bool
    """False where the very same file was there."""


def install(export: Export, home: Path, disk: Disk = DISK) -> Installed:
    """Put an export into a program's home: what ``CLAUDE_CONFIG_DIR`` or ``CODEX_HOME`` names.

    Raises InvalidInput for formats that no program looks for, and Refused where another file is in
    its place: that session may be going on, and is never written into.
    """
    if export.format not in HARNESSES:
        raise InvalidInput(f"{export.format} is no format of a program: choose one of {HARNESSES}")
    is_claude = export.format == "claude-code"
    path = home / (_claude_place(export) if is_claude else _codex_place(export))
    command = ("claude", "--resume") if is_claude else ("codex", "resume")
    installed = Installed(path, (*command, export.session_id), export.cwd, True)
    disk.make_dir(path.parent)
    try:
        put_new(path, export.data, disk)
    except FileExistsError:
        if path.read_bytes() != export.data:
            raise Refused(
                f"{path} is there already, and is something else",
                hint="export it as a session of its own with --new",
            ) from None
        return Installed(path, installed.command, installed.cwd, False)
    for name, data in export.beside.items():
        _put_beside(home, path, name, data, disk)
    return installed


def _put_beside(home: Path, transcript: Path, name: str, data: bytes, disk: Disk) -> None:
    """A file that belongs to a transcript; one that is there already stays as it is."""
    where, _, rest = name.partition("/")
    folder = transcript.with_suffix("")
    place = home / HISTORY / folder.name / rest if where == HISTORY else folder / name
    if home not in place.parents or ".." in place.parts:
        raise Corrupt(f"a file beside a transcript has a name that leads elsewhere: {name!r}")
    disk.make_dir(place.parent)
    with contextlib.suppress(FileExistsError):
        put_new(place, data, disk)


def _claude_place(export: Export) -> Path:
    return Path("projects", project_folder(export.cwd), f"{export.session_id}.jsonl")


def _codex_place(export: Export) -> Path:
    began = moment(export.time)
    name = f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{export.session_id}.jsonl"
    return Path("sessions", f"{began:%Y/%m/%d}", name)


def project_folder(cwd: str) -> str:
    """What Claude Code calls the folder for sessions of a directory."""
    folder = _ODD.sub("-", cwd)
    if len(folder) <= _LONGEST_SLUG:
        return folder
    return f"{folder[:_LONGEST_SLUG]}-{_short_hash(cwd)}"


def _short_hash(text: str) -> str:
    """The usual 32-bit hash of JavaScript programs (31 times and add), its size in base 36."""
    number = 0
    for unit in array("H", text.encode("utf-16-le", "surrogatepass")):
        number = number * 31 + unit & 0xFFFFFFFF
    number = abs(number - (1 << 32) if number >> 31 else number)
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
