"""Which entries are left out of captures: ``.gitignore`` and ``.snapstoreignore``, as git has it.

Rules of a deeper directory go before those above it, within a file the last pattern that matches
decides, ``!`` takes an entry back in, and what lies in a directory that is left out is not looked
at again. ``.snapstoreignore`` goes before the ``.gitignore`` beside it. ``.git/info/exclude`` is
not read: nothing in ``.git`` is.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from blake3 import blake3

RULE_FILES = (b".gitignore", b".snapstoreignore")
"""In the order in which their rules are read: the later one decides."""

Pattern = tuple[re.Pattern[str], bool]


@lru_cache(maxsize=256)
def compile_rules(text: bytes) -> tuple[Pattern, ...]:
    """The patterns of a rule file, the one that decides first, and whether each leaves out.

    A line that is no pattern is passed over, as git does.
    """
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # only where there are rules

    found: list[Pattern] = []
    lines = text.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape").split("\n")
    for line in lines:
        try:
            pattern = GitIgnoreSpecPattern(_one_meaning(line.removesuffix("\r")))
        except ValueError:
            continue
        if pattern.include is not None and pattern.regex is not None:
            found.append((pattern.regex, bool(pattern.include)))
    found.reverse()
    return tuple(found)


def _one_meaning(line: str) -> str:
    """``a/**/`` is taken for ``a/`` by the library; it leaves out the directories in it."""
    return line[: -len("**/")] + "*/" if line.endswith("/**/") else line


def _is_about(regex: re.Pattern[str], path: str) -> bool:
    """Whether a pattern matches this very entry, and not one above it or only ones below it.

    A compiled pattern also matches what lies in a directory that it matches. Here that must not
    count: ``!/a/`` takes the directory back in, and says nothing about ``a/b``.
    """
    found = regex.search(path)
    if found is None:
        return False
    ends = found.end() == len(path)
    return ends if "ps_d" in regex.groupindex else not (ends and path.endswith("/"))


class Rules:
    """The rules that hold in a directory: its own files' and those of the directories above."""

    __slots__ = ("_above", "_depth", "_patterns", "_texts", "digest")

    def __init__(
        self,
        above: Rules | None = None,
        depth: int = 0,
        digest: bytes = b"",
        texts: Callable[[], Sequence[bytes]] | None = None,
    ) -> None:
        """Rules of the directory at a depth; texts is called for its files when first needed."""
        self._above = above
        self._depth = depth
        self._texts = texts
        self._patterns: tuple[Pattern, ...] | None = None
        self.digest = digest
        """Equal where the same rules hold."""

    def within(self, depth: int, texts: Sequence[bytes]) -> Rules:
        """The rules in a directory at this depth that holds rule files with these texts."""
        if not texts:
            return self
        digest = blake3(self.digest + b"%d" % depth)
        for text in texts:
            digest.update(b"%d:" % len(text) + text)
        return Rules(self, depth, digest.digest(16), lambda: texts)

    def unchanged(self, depth: int, digest: bytes, texts: Callable[[], Sequence[bytes]]) -> Rules:
        """As within, where they are known to give this digest: the texts are read when needed."""
        return self if digest == self.digest else Rules(self, depth, digest, texts)

    def ignores(self, parts: Sequence[str], is_dir: bool) -> bool:
        """Whether the entry at these names, counted from the root, is left out."""
        level: Rules | None = self
        while level is not None and level._texts is not None:
            path = "/".join(parts[level._depth :]) + ("/" if is_dir else "")
            for regex, leaves_out in level._own():
                if _is_about(regex, path):
                    return leaves_out
            level = level._above
        return False

    @property
    def empty(self) -> bool:
        """Whether nothing is left out."""
        return self._texts is None

    def _own(self) -> tuple[Pattern, ...]:
        if self._patterns is None:
            assert self._texts is not None
            own: list[Pattern] = []
            for text in reversed(self._texts()):
                own += compile_rules(text)
            self._patterns = tuple(own)
        return self._patterns
