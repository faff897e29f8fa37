"""Directories below a root, reached by descriptors and never by path.

A path is resolved anew by the kernel each time, and a program that swaps a directory for a symbolic
link in between leads the next call somewhere else. Here every directory is opened from the one
above it, and a link is refused, so whatever happens in the tree, nothing out of it is reached.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a directory is opened: no link, and nothing else that looks like one."""

_MOST_OPEN = 200
_CLOSED = -1


class Descent:
    """The open directories on the way to the one that was asked for last."""

    def __init__(self, root: int) -> None:
        """Work below the directory that this descriptor stands for; it is closed with this."""
        self._names: list[bytes] = []
        self._fds: list[int] = [root]
        self._open = 1

    def __enter__(self) -> Descent:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close everything, the root too."""
        self._leave(0)
        if self._fds:
            os.close(self._fds.pop())

    @property
    def root(self) -> int:
        """The descriptor of the root."""
        return self._fds[0]

    def open(self, parts: Sequence[bytes]) -> int:
        """A descriptor of the directory at these names, good until the next call.

        Raises OSError: NotADirectoryError or ELOOP where a name is no directory (any more).
        """
        common = 0
        for name, wanted in zip(self._names, parts, strict=False):
            if name != wanted:
                break
            common += 1
        self._leave(common)
        if self._fds[-1] == _CLOSED:
            self._leave(0)
        for name in parts[len(self._names) :]:
            fd = os.open(name, DIRECTORY, dir_fd=self._fds[-1])
            self._names.append(name)
            self._fds.append(fd)
            self._open += 1
            if self._open > _MOST_OPEN:
                self._thin_out()
        return self._fds[-1]

    def forget(self, parts: Sequence[bytes]) -> None:
        """Hold on to nothing at or below these names: they are about to be removed or replaced."""
        if tuple(self._names[: len(parts)]) == tuple(parts):
            self._leave(max(0, len(parts) - 1))

    def _leave(self, depth: int) -> None:
        while len(self._names) > depth:
            self._names.pop()
            fd = self._fds.pop()
            if fd != _CLOSED:
                os.close(fd)
                self._open -= 1

    def _thin_out(self) -> None:
        """A tree may be deeper than a process may have files open: those in the middle go."""
        for at in range(1, len(self._fds) - 1):
            if self._fds[at] != _CLOSED:
                fd, self._fds[at] = self._fds[at], _CLOSED
                os.close(fd)
                self._open -= 1
