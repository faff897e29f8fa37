"""Which files an import is about: those that are named, and those in folders that are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote

from snapstore import InvalidInput, Refused
from snapstore.transfer.beside import main_of
from snapstore.worktree.guard import refuse_too_much, resolved
from snapstore_cli.place import is_store

_SUFFIXES = (".jsonl", ".json")
_SPAN = re.compile(r"(\d+)\s*([smhdw])[a-z]*(\s+ago)?")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import."""

    path: Path
    size: int
    named: bool
    """Whether it was named itself; else it was found in a folder."""


def moment(text: str, now: datetime) -> datetime:
    """The time that a text names: ISO 8601, or how long ago (``7d``, ``2 weeks``).

    Raises InvalidInput.
    """
    span = _SPAN.fullmatch(text.strip().lower())
    try:
        if span:
            return now - timedelta(**{_UNITS[span[2]]: int(span[1])})
        named = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{text!r} is no time", hint="write 2030-01-31, 2030-01-31T12:00 or 7d, 12h, 2w"
        ) from None
    return named if named.tzinfo else named.astimezone()


def sources(
    paths: Iterable[str], since: datetime | None = None, *, force: bool = False
) -> list[Source]:
    """The files to import, each once: in the order of the paths, in folders by name.

    Of those in folders not the ones that were changed last before since; nor the transcripts of
    agents whose session is among them, for they come with it. Raises InvalidInput for a store, and
    Refused, unless forced, for a folder that is a whole home, disk or system.
    """
    found: dict[Path, Source] = {}
    for path in map(Path, paths):
        if path.is_dir():
            if is_store(str(path)):
                raise InvalidInput(
                    f"{path} is a store, and no transcript of another program",
                    hint=f"`snapstore pull {quote(str(path))}` brings its sessions here",
                )
            if not force:
                _refuse_too_much(path)
            for file in _files_below(path):
                source = _source(file, named=False)
                if since is None or _changed(file) >= since:
                    found.setdefault(file, source)
        else:
            found[path] = _source(path, named=True)
    return [
        source for source in found.values() if source.named or main_of(source.path) not in found
    ]


def _refuse_too_much(folder: Path) -> None:
    try:
        refuse_too_much(resolved(folder), Path.home())
    except Refused as refused:
        refused.hint = "name the folder that the sessions lie in, or --force if you mean it"
        raise


def _source(path: Path, *, named: bool) -> Source:
    try:
        return Source(path, path.stat().st_size, named)
    except OSError:
        return Source(path, 0, named)  # reading it will say why


def _changed(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except (OSError, ValueError, OverflowError):
        return datetime.now(UTC)


def _files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _holds_outputs(name))
        plain = set(names)
        for name in sorted(names):
            # Codex compresses old rollouts; beside the plain file it is only a copy.
            packed = name.endswith(".jsonl.zst") and name.removesuffix(".zst") not in plain
            if packed or name.endswith(_SUFFIXES):
                path = Path(place, name)
                if path.is_file():  # reading a FIFO would wait for ever
                    yield path


def _holds_outputs(folder: str) -> bool:
    """Whether a folder holds what tools wrote, and no sessions."""
    return folder in ("tool-results", "file-history")
