"""Directories that are too much to capture by mistake: a home, a disk, a folder of everything."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from snapstore import arguments
from snapstore.errors import NotFound, Refused

_FOLDERS = ("Desktop", "Documents", "Downloads")
_SYSTEM = ("bin", "boot", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "usr", "var",
           "Applications", "Library", "System", "Users", "Volumes", "Windows", "home", "tmp",
           "private", "private/tmp", "private/var", "private/etc")  # fmt: skip


def resolved(path: str | Path) -> Path:
    """The one absolute path by which a worktree is known. Raises NotFound for no directory."""
    root = Path(os.path.realpath(arguments.place(path, "a worktree")))
    if not root.is_dir():
        what = "is no directory" if root.exists() else "is not there"
        raise NotFound(f"{path} {what}", hint="name the directory that the session works on")
    return root


def refuse_too_much(root: Path, home: Path | None = None) -> None:
    """Raise Refused where a capture would hold a whole home, disk or system.

    home is the home directory that the user's environment names; the account's own is always
    looked at as well.
    """
    for mine in filter(None, (home, _account_home())):
        house = Path(os.path.realpath(mine))
        if root == house or root in house.parents:
            raise _refused(root, "holds a whole home directory")
        if root.parent == house and root.name in _FOLDERS:
            raise _refused(root, "is a folder for everything, not a project")
    top = Path(root.anchor)
    if root == top or root in [top / name for name in _SYSTEM]:
        raise _refused(root, "is no project but a part of the system")


def _account_home() -> Path | None:
    if sys.platform == "win32":
        return None
    import pwd

    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return None


def _refused(root: Path, why: str) -> Refused:
    return Refused(
        f"{root} {why}", hint="bind the directory of one project, or force it if you mean it"
    )
