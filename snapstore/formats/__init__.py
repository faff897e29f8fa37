"""Other programs' session files, read into sessions, lines and turns.

``read`` is for a file whose program is not known; the modules read what they are named for.
Everything here is pure: bytes in, values out.
"""

from __future__ import annotations

from snapstore.errors import NotATranscript
from snapstore.formats import claude_code, codex, messages
from snapstore.formats.detect import Harness, detect, of_rows
from snapstore.formats.jsonl import Damage, Row, Rows, load
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
]

_READERS = {
    "claude-code": claude_code.read,
    "codex": codex.read,
    "messages": messages.read,
}


def read(data: bytes, name: str = "", harness: Harness | None = None) -> Transcript:
    """Read a session file; name is the file's name, for what the content does not tell.

    Raises NotATranscript when harness is not given and cannot be told from the content, or is one
    that is not read here.
    """
    rows = load(data)
    harness = harness or of_rows(rows, name)
    reader = _READERS.get(harness or "")
    if reader is None:
        what = f"files of {harness} are not read" if harness else "no session format that is known"
        raise NotATranscript(f"{name or 'the file'}: {what}")
    return reader(rows, name)
