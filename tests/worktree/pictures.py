"""What a directory looks like to someone who compares, and quick ways to change it."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

Picture = dict[str, tuple[object, ...]]
"""Path -> all that a restore must bring back there."""


def picture(root: Path, skip: Collection[str] = ()) -> Picture:
    """Every path below a directory but repositories: kind, mode, content or target, mtime."""
    found: Picture = {}
    for folder, dirs, files in os.walk(root):
        for name in (*dirs, *files):
            path = Path(folder) / name
            key = str(path.relative_to(root))
            if name != ".git" and key not in skip:
                found[key] = _seen(path)
        dirs[:] = [name for name in dirs if name != ".git"]
    return found


def _seen(path: Path) -> tuple[object, ...]:
    info = path.lstat()
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISLNK(info.st_mode):
        return ("link", str(path.readlink()), info.st_mtime_ns)
    if stat.S_ISDIR(info.st_mode):
        return ("dir", mode)
    if stat.S_ISREG(info.st_mode):
        return ("file", mode, path.read_bytes(), info.st_mtime_ns)
    return ("other", stat.S_IFMT(info.st_mode))


def differing(one: Picture, other: Picture) -> list[str]:
    """The paths that two pictures do not have alike."""
    return sorted(k for k in one.keys() | other.keys() if one.get(k) != other.get(k))


def stamps(root: Path) -> dict[str, tuple[int, ...]]:
    """What changes with any write at all: mtime, ctime, inode of every path below a directory."""
    found: dict[str, tuple[int, ...]] = {}
    for path in root.rglob("*"):
        info = path.lstat()
        found[str(path)] = (info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_mode)
    return found


def fill(root: Path, files: dict[str, str | bytes | None]) -> None:
    """Write files; None removes one. Missing directories are made."""
    for name, content in files.items():
        path = root / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
