"""A JSON file of somebody else, changed in place: its layout, mode and links stay.

What is written is the whole document again, in the layout that gives the bytes that were there;
where none does, in the nearest. The file is replaced in one step, so that who reads it meanwhile
sees it before or after.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snapstore import InvalidInput
from snapstore.disk import DISK
from snapstore.outfile import put

_MARK = "\ufeff"
_NEW = 0o644
"""The mode of settings that were not there: other programs read them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a document is written out."""

    indent: int | str | None = 2
    ascii: bool = False
    compact: bool = False
    start: str = ""
    end: str = "\n"
    line_end: str = "\n"

    def text(self, document: Any) -> str:
        """The document in this layout."""
        separators = (",", ":") if self.compact else None
        body = json.dumps(
            document, indent=self.indent, ensure_ascii=self.ascii, separators=separators
        )
        return (self.start + body + self.end).replace("\n", self.line_end)


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A file as it was read."""

    path: Path
    document: dict[str, Any]
    layout: Layout
    exists: bool

    @classmethod
    def read(cls, path: Path) -> SettingsFile:
        """The file at path, which may be missing. Raises InvalidInput for one that is broken."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return cls(path, {}, Layout(), exists=False)
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
        try:
            text = data.decode("utf-8")
            body = text.removeprefix(_MARK)
            document = json.loads(body, object_pairs_hook=_object) if body.strip() else {}
        except (ValueError, RecursionError) as error:
            raise _broken(path, str(error)) from None
        if not isinstance(document, dict):
            raise _broken(path, "it holds no object")
        return cls(path, document, _layout(text, document), exists=True)

    def write(self, document: dict[str, Any]) -> None:
        """Put another document in its place. Raises DiskError; the file is as it was then."""
        Path(os.path.realpath(self.path)).parent.mkdir(parents=True, exist_ok=True)
        text = self.layout.text(document).encode("utf-8", "surrogatepass")
        put(self.path, [text], mode=_NEW)

    def remove(self) -> None:
        """Take the file away, and the directory it was in when nothing else is there."""
        DISK.remove(self.path)
        if self.path.parent.is_dir() and not any(self.path.parent.iterdir()):
            self.path.parent.rmdir()

    @property
    def is_our_own(self) -> bool:
        """Whether it looks as one does that was made here, not by hand."""
        return not self.path.is_symlink() and self.layout == Layout()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands there twice")
    return found


def _broken(path: Path, why: str) -> InvalidInput:
    return InvalidInput(
        f"{path} cannot be changed: {why}",
        hint="nothing was written; mend the file, then try again",
    )


def _layout(text: str, document: Any) -> Layout:
    """The layout that gives this text, else the nearest to it."""
    start = _MARK if text.startswith(_MARK) else ""
    end = text[len(text.rstrip()) :].replace("\r\n", "\n")
    line_end = "\r\n" if "\r\n" in text else "\n"
    for indent, compact, as_ascii in _candidates(text):
        layout = Layout(indent, as_ascii, compact, start, end, line_end)
        if layout.text(document) == text:
            return layout
    return Layout(_indent(text), False, False, start, end, line_end)


def _candidates(text: str) -> Iterator[tuple[int | str | None, bool, bool]]:
    indents = (_indent(text), None)
    for indent in indents:
        for compact in (False, True) if indent is None else (False,):
            for as_ascii in (False, True):
                yield indent, compact, as_ascii


def _indent(text: str) -> int | str | None:
    first = re.search(r"\n([ \t]+)\S", text)
    if first is None:
        return 2 if not text.strip() or "\n" in text.strip() else None
    return len(first[1]) if set(first[1]) == {" "} else first[1]
