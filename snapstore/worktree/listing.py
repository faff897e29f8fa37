"""The names in one directory that a capture is about, and the rules that chose them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from snapstore.worktree.ignore import RULE_FILES, Rules
from snapstore.worktree.reading import read_small
from snapstore.worktree.statcache import Look, to_trust
from snapstore.worktree.tree import is_git

STAGING = b".snapstore-restore-"
"""How the names of directories begin that a restore works in."""
STORE_NAME = b".snapstore"
"""A store in the tree, whose ever it is, is no part of the tree."""

READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How a file is opened: no link, and without waiting for whoever writes to a fifo."""

Parts = tuple[bytes, ...]
"""The names on the way from the root to a path."""


class Listing(NamedTuple):
    """One directory's names, each group sorted."""

    rules: Rules
    rule_files: tuple[tuple[bytes, Look | None], ...]
    names: tuple[bytes, ...]
    """All that is captured but directories."""
    dirs: tuple[bytes, ...]
    ignored: tuple[bytes, ...]


class Lister:
    """Lists directories, each by its open descriptor."""

    def __init__(self, own: tuple[int, int] | None, now: int) -> None:
        """own: device and inode of the store. now: when the capture began, in nanoseconds."""
        self._own = own
        self._now = now

    def list(self, parts: Parts, fd: int, above: Rules) -> Listing:
        """The names in the directory at these names, where the rules from above hold too."""
        files: list[bytes] = []
        dirs: list[bytes] = []
        rule_files: list[bytes] = []
        with os.scandir(fd) as found:
            for item in found:
                name = os.fsencode(item.name)
                if self._never(name, item):
                    continue
                if name in RULE_FILES and item.is_file(follow_symlinks=False):
                    rule_files.append(name)
                (dirs if item.is_dir(follow_symlinks=False) else files).append(name)
        rule_files.sort(key=RULE_FILES.index)
        looks = tuple((name, trusted_look(fd, name, self._now)) for name in rule_files)
        rules = above.within(len(parts), texts_in(fd, rule_files))
        out = set(_left_out(rules, parts, files, dirs))
        return Listing(
            rules,
            looks,
            tuple(sorted(name for name in files if name not in out)),
            tuple(sorted(name for name in dirs if name not in out)),
            tuple(sorted(out)),
        )

    def _never(self, name: bytes, item: os.DirEntry[str]) -> bool:
        """Whether an entry is no part of the tree: a repository, a store, a restore at work."""
        if name.startswith(b".") and (
            is_git(name) or name == STORE_NAME or name.startswith(STAGING)
        ):
            return True
        if self._own is None or item.inode() != self._own[1]:
            return False
        return item.stat(follow_symlinks=False).st_dev == self._own[0]


def _left_out(
    rules: Rules, parts: Parts, files: Sequence[bytes], dirs: Sequence[bytes]
) -> list[bytes]:
    if rules.empty:
        return []
    above = tuple(map(os.fsdecode, parts))
    return [
        name
        for names, are_dirs in ((files, False), (dirs, True))
        for name in names
        if rules.ignores((*above, os.fsdecode(name)), are_dirs)
    ]


def texts_in(fd: int, rule_files: Sequence[bytes]) -> list[bytes]:
    """The contents of the rule files of an open directory."""
    texts: list[bytes] = []
    for name in rule_files:
        try:
            texts.append(read_small(os.open(name, READ_FILE, dir_fd=fd)))
        except OSError:
            continue  # rules that nobody can read are no rules
    return texts


def trusted_look(fd: int, name: bytes, now: int) -> Look | None:
    """How an entry of an open directory looks; None where that may not be relied on."""
    try:
        return to_trust(os.stat(name, dir_fd=fd, follow_symlinks=False), now)
    except OSError:
        return None
