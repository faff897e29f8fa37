"""Paths of files as the user names them, and where they lie in a turn's worktree."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from pathlib import Path, PurePath

from snapstore import NotFound, Snapshot

_SUGGESTED = 3
_NONE_HELD = "`snapstore save --worktree DIR` captures them with a turn"
_ABSOLUTE = "give absolute paths in it, or paths relative to it"


def in_worktree(source: Snapshot, path: str) -> str:
    """A path relative to the worktree of a turn.

    It may be given so, relative to the working directory, or absolute; what there is in the turn or
    in the directory decides. One that begins with a dot is looked for from the working directory
    first. Raises NotFound, with a hint at what was meant.
    """
    root, held = Path(source.worktree), source.files
    if held is None:
        return path  # whoever restores says that the turn holds no files
    found = readings(root, path)
    if not found:
        raise NotFound(f"{path} does not lie in {root}", hint=_ABSOLUTE)
    for reading in found:
        if reading == "." or reading in held or os.path.lexists(root / reading):
            return reading
    raise NotFound(
        f"there is no {path} in turn {source.turn}, nor in {root}",
        hint=_hint(list(held), root, path),
    )


def in_turn(source: Snapshot, path: str) -> str:
    """The path of what a turn holds, given as for ``in_worktree``; "" for everything. Raises
    NotFound, with a hint at what was meant."""
    root, held = Path(source.worktree), source.files
    if held is None:
        raise NotFound(f"turn {source.turn} holds no files", hint=_NONE_HELD)
    for reading in (*readings(root, path), path.strip("/")):
        if reading in ("", ".") or reading in held:
            return "" if reading == "." else reading
    raise NotFound(f"turn {source.turn} holds no {path}", hint=_hint(list(held), root, path))


def readings(root: Path, path: str) -> list[str]:
    """What a path may mean, relative to the worktree, likeliest first."""
    return [*dict.fromkeys(_readings(root, path))]


def _readings(root: Path, path: str) -> Iterator[str]:
    below_root = os.path.normpath(path)
    if Path(path).is_absolute() or below_root == ".." or below_root.startswith("../"):
        below_root = ""
    from_here = _seen_from(root, path)
    pair = (below_root, from_here)
    yield from filter(None, reversed(pair) if path.split("/")[0] in (".", "..") else pair)


def _seen_from(root: Path, path: str) -> str:
    """A path given from the working directory, relative to the root; "" where it is not below."""
    try:
        given = Path(os.path.normpath(Path.cwd() / path))
    except FileNotFoundError:  # the working directory was deleted below us
        return ""
    for place in (given, Path(os.path.realpath(given.parent), given.name)):
        if place.is_relative_to(root):
            return str(place.relative_to(root))
    return ""


def _hint(held: list[str], root: Path, path: str) -> str:
    if any(sign in path for sign in "*?["):
        return "patterns are not understood here: name files, or the directory that holds them"
    told = f"paths are relative to {root}"
    close = _close_to(held, path)
    return f"{told}; did you mean {' or '.join(close)}?" if close else told


def _close_to(held: list[str], path: str) -> list[str]:
    same = [other for other in held if PurePath(other).name == PurePath(path).name]
    return same[:_SUGGESTED] or difflib.get_close_matches(path, held, _SUGGESTED)
