"""The rows of a file on their way into a store: each turn keeps those that it was read from.

A turn's page (see model.pages) holds the rows of its messages and, because nothing else says where
they stood, the rows without a message that come before these in the file. What follows the last
message of a turn goes with the next one, so a turn that has ended keeps its page when the file
grows. What no page holds in the end, mostly the last rows of the file, is the *rest*, which the
file's layout names (see model.layout).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from snapstore import values
from snapstore.formats.jsonl import Row
from snapstore.formats.jsontext import style_of
from snapstore.formats.recall import Told
from snapstore.formats.transcript import Transcript, Turn
from snapstore.model.layout import Layout
from snapstore.model.pages import RAW, PageRow, Part, encode_page
from snapstore.objects import Stage

_INLINE = 96
"""Most bytes of a value that stays in its page: as a part it would take 32 there all the same, and
an object's room elsewhere."""

_PLAIN = frozenset({int, float, bool, type(None)})
_ROW_DEPTH, _DOCUMENT_DEPTH = 1, 3
"""How deep parts stand in a row, and in a document that holds lists of messages."""


class Keeper:
    """Stages the rows of one file, turn by turn, and at last the layout of the whole."""

    def __init__(self, transcript: Transcript, stage: Stage) -> None:
        self._file = transcript.file
        self._stage = stage
        self._depth = _DOCUMENT_DEPTH if transcript.harness == "messages" else _ROW_DEPTH
        self._beside_from = _beside_from(transcript.spoken)
        self._placed = bytearray(len(self._file.rows))
        self._messages = _messages(transcript) if transcript.harness == "messages" else frozenset()
        self._put: dict[int, tuple[bytes, Any]] = {}
        """By identity: ids of the values of this turn, and these so that they stay alive."""
        self._read: dict[int, Any] = {}
        """By offset: the rows of this turn that had to be read again."""

    def keep(self, turn: Turn) -> tuple[list[bytes], bytes | None]:
        """Stage the messages and the page of a turn; their ids.

        They depend on the turn alone, not on what was kept before it: it may be told again without
        that, and is to be the same.
        """
        page = self._page(turn.rows) if turn.rows else None
        told = turn.messages
        ids = list(map(self._id, told.recalled(self._whole) if isinstance(told, Told) else told))
        self._put.clear()
        self._read.clear()
        return ids, page

    def layout(self, heads: Sequence[bytes]) -> bytes | None:
        """Stage the layout of a file whose lines have these last turns; None for no file.

        All turns of the lines must have their pages by now.
        """
        file = self._file
        if not file.content.size:
            return None
        rest = [place for place, placed in enumerate(self._placed) if not placed]
        page = self._put_page(rest, frozenset()) if rest else None
        end = file.content.read(file.rows[-1].end if file.rows else 0, file.content.size)
        put = self._stage.put_content
        return put(Layout.of(heads, page, end, put).encode())

    def _page(self, rows: Sequence[int]) -> bytes:
        own = set(rows)
        places = own.union(*(range(self._beside_from[row], row) for row in rows))
        return self._put_page(sorted(places), own)

    def _id(self, value: Any) -> bytes:
        """Stage a value of the file; its id."""
        known = self._put.get(id(value))
        if known is not None:
            return known[0]
        content_id = self._stage.put_content(values.encode_json(value))
        self._put[id(value)] = content_id, value
        return content_id

    def _put_page(self, places: Sequence[int], own: set[int] | frozenset[int]) -> bytes:
        rows = [self._row(place, beside=place not in own) for place in places]
        return self._stage.put_content(encode_page(rows))

    def _row(self, place: int, *, beside: bool) -> PageRow:
        self._placed[place] = 1
        file, row = self._file, self._file.rows[place]
        gap = file.content.read(file.rows[place - 1].end if place else 0, row.offset)
        raw, value = row.raw, self._whole(row)
        style = style_of(value, raw)
        if style is not None:
            return PageRow(place, gap, style, beside, self._apart(value, self._depth))
        kept = raw if len(raw) <= _INLINE else Part(self._stage.put_content(raw))
        return PageRow(place, gap, RAW, beside, kept)

    def _whole(self, row: Row) -> Any:
        if not row.is_cut:
            return row.value
        if row.offset not in self._read:
            self._read[row.offset] = row.whole()
        return self._read[row.offset]

    def _apart(self, value: Any, depth: int) -> Any:
        """The value with a Part in place of all that is large, down to this depth."""
        kind = type(value)
        if kind is dict and depth and value and id(value) not in self._messages:
            kept = {}
            for key, member in value.items():  # the one loop here that runs for every field
                plain = type(member) in _PLAIN or (type(member) is str and len(member) <= _INLINE)
                kept[key] = member if plain else self._apart(member, depth - 1)
            return kept
        if kind is list and depth and value and id(value) not in self._messages:
            return [self._apart(member, depth - 1) for member in value]
        if kind in _PLAIN or (kind is str and len(value) <= _INLINE):
            return value
        if id(value) in self._put or id(value) in self._messages:
            return Part(self._id(value))
        packed = values.encode_json(value)
        if len(packed) <= _INLINE:
            return value
        content_id = self._stage.put_content(packed)
        self._put[id(value)] = content_id, value
        return Part(content_id)


def _messages(transcript: Transcript) -> frozenset[int]:
    """The identities of all messages of a file, where a row may hold many of them."""
    lines = (line for session in transcript.sessions for line in session.lines())
    turns = (turn for line in lines for turn in line.turns)
    return frozenset(id(message) for turn in turns for message in turn.messages)


def _beside_from(spoken: bytes) -> list[int]:
    """For each row of a file the first of those before it that go with it, or the row itself."""
    found: list[int] = []
    after = 0
    for place, speaks in enumerate(spoken):
        found.append(after if speaks else place)
        if speaks:
            after = place + 1
    return found
