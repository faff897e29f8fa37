"""Other programs' session files, read into sessions, lines and turns.

``read`` is for a file whose program is not known, ``read_file`` for one of any size; the modules
read what they are named for. But for that one everything here is pure: bytes in, values out.
"""

from __future__ import annotations

from pathlib import Path

from zstandard import ZstdDecompressor, ZstdError

from snapstore.errors import NotATranscript
from snapstore.formats import claude_code, codex, messages
from snapstore.formats.claude_cut import ClaudeCut
from snapstore.formats.codex_base import rows_before
from snapstore.formats.content import OnDisk
from snapstore.formats.detect import Harness, detect, of_rows, of_value
from snapstore.formats.jsonl import Damage, Row, Rows, load, parse_content, scan
from snapstore.formats.transcript import Line, Session, Transcript, Turn

__all__ = [
    "Damage",
    "Harness",
    "Line",
    "Row",
    "Rows",
    "Session",
    "Transcript",
    "Turn",
    "detect",
    "load",
    "read",
    "read_file",
]

_READERS = {
    "claude-code": claude_code.read,
    "codex": codex.read,
    "messages": messages.read,
}


_LONGEST = 1 << 30
"""More than this no compressed file may become."""

_LARGE = 32 << 20
"""Larger transcripts of Claude Code are read again row by row instead of being held in memory."""


def read_file(path: Path) -> Transcript:
    """Read a session file from where it lies. Raises OSError, and what read raises."""
    if path.suffix == ".zst":
        return read(_inflated(path), path.stem)
    if path.stat().st_size < _LARGE:
        rows = load(path.read_bytes())
        if of_rows(rows, path.name) == "codex":
            return codex.read(rows, path.name, rows_before(path, rows.rows))
        return _read_rows(rows, path.name, None)
    content = OnDisk(path)
    values = (found.value for found in scan(content) if isinstance(found, Row))
    if next(filter(None, map(of_value, values)), None) != "claude-code":
        return read(path.read_bytes(), path.name)
    return claude_code.read(parse_content(content, ClaudeCut()), path.name)


def _inflated(path: Path) -> bytes:
    """The content of a rollout that Codex has compressed."""
    try:
        with path.open("rb") as file, ZstdDecompressor().stream_reader(file) as stream:
            data = stream.read(_LONGEST + 1)
    except ZstdError as error:
        raise NotATranscript(f"{path.name} does not inflate: {error}") from error
    if len(data) > _LONGEST:
        raise NotATranscript(f"{path.name} inflates to more than {_LONGEST >> 20} MB")
    return data


def read(data: bytes, name: str = "", harness: Harness | None = None) -> Transcript:
    """Read a session file; name is the file's name, for what the content does not tell.

    Raises NotATranscript when harness is not given and cannot be told from the content, or is one
    that is not read here.
    """
    return _read_rows(load(data), name, harness)


def _read_rows(rows: Rows, name: str, harness: Harness | None) -> Transcript:
    harness = harness or of_rows(rows, name)
    reader = _READERS.get(harness or "")
    if reader is None:
        what = f"files of {harness} are not read" if harness else "no session format that is known"
        raise NotATranscript(f"{name or 'the file'}: {what}")
    return reader(rows, name)
