"""Where imported sessions came from, so that a transcript finds the session it was before.

It stands in the info of the moves that import makes, under ``source``, and goes along when a
session is brought into another store or purged::

    harness, path, number       the program, the file, and which session of the file (from 1)
    session_id, cwd, title, ... what the transcript says of the line, as far as it does
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from snapstore import refs
from snapstore.engine import Engine, Move
from snapstore.refs import SOURCE, is_import

OP = "import"
"""What an import is called in the reflog."""

_BRANCH = "branch"


def source_info(
    harness: str, path: str, number: int, facts: Mapping[str, Any], *, branch: str = ""
) -> dict[str, Any]:
    """The info of a move of an import; branch names a line that is not the live one."""
    source = {**facts, "harness": harness, "path": path, "number": number}
    return {SOURCE: {**source, _BRANCH: branch} if branch else source}


def origin(engine: Engine, tip: Move) -> Mapping[str, Any]:
    """The source of the session that this is the last move of, through renames; empty for none."""
    move: Move | None = tip
    while move is not None and not is_import(move):
        born = engine.move(move.ref, move.born) if move.born != move.gen else move
        if born is None or is_import(born) or "from_ref" not in born.info:
            move = born
            break
        move = engine.move(born.info["from_ref"], born.info["from_gen"])
    return move.info[SOURCE] if move is not None and is_import(move) else {}


def last_import(engine: Engine, tip: Move) -> Move | None:
    """The last move of the session by an import or its redo, up to this move; None for none.

    Moves after it that came back to where it led, a rewind and its undo, say, are passed over.
    """
    move: Move | None = tip
    while move is not None and not is_import(move):
        if "from_ref" in move.info:
            move = engine.move(move.info["from_ref"], move.info["from_gen"])
        else:
            move = refs.before(engine, move)
    return move


class Origins:
    """The sessions that were imported, by where they came from. Sees the store as it was first
    asked, and what is added."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._found: defaultdict[tuple[str, ...], dict[str, None]] | None = None

    def add(self, ref: str, source: Mapping[str, Any]) -> None:
        """Remember what a session was imported from."""
        found = self._sessions()
        for key in _keys(source):
            found[key][ref] = None

    def sessions(self, source: Mapping[str, Any]) -> Iterator[Move]:
        """The last moves of the sessions that came from there: the same session id, or the same
        place. Those with the same session id come first."""
        found = self._sessions()
        named = dict.fromkeys(ref for key in _keys(source) for ref in found.get(key, ()))
        return filter(None, (refs.live(self._engine, ref) for ref in named))

    def _sessions(self) -> defaultdict[tuple[str, ...], dict[str, None]]:
        if self._found is None:
            self._found = defaultdict(dict)
            for tip in self._engine.tips(refs.SESSIONS):
                if tip.new is not None:
                    self.add(tip.ref, origin(self._engine, tip))
        return self._found


def _keys(source: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    if not source or _BRANCH in source:
        return
    harness, number = str(source.get("harness")), str(source.get("number"))
    if source.get("session_id"):
        yield "session", harness, str(source["session_id"]), number
    if source.get("path"):
        yield "path", harness, str(source["path"]), number
