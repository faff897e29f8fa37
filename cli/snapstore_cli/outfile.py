"""The file that a user names for a command to write into."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from snapstore import InvalidInput


def named(given: str | None, option: str = "-o") -> Path | None:
    """The file that an option names; None for stdout. Raises InvalidInput."""
    if given is None or given == "-":
        return None
    if not given:
        raise InvalidInput(f"{option} needs the name of a file", hint="- stands for stdout")
    path = Path(given)
    if path.is_dir():
        raise InvalidInput(f"{given} is a directory", hint=f"{option} names a file")
    if given.endswith(os.sep):
        raise InvalidInput(f"{given} is no name of a file", hint="leave out the slash at its end")
    if _is_stdout(path):
        return None
    folder = Path(os.path.realpath(path)).parent
    if not path.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is no directory", hint="make it first, or name another file")
    return path


def _is_stdout(path: Path) -> bool:
    """Whether it is where stdout goes already, as /dev/stdout is. A log that stdout is appended to
    would else lose what it holds."""
    try:
        there, ours = path.stat(), os.fstat(1)
    except OSError:
        return False
    return os.path.samestat(there, ours) and not stat.S_ISCHR(there.st_mode)
