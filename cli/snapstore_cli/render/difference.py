"""A difference between two turns, for people: what both hold, then what each side did."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from snapstore import Snapshot
from snapstore.diff import Diff
from snapstore.textdiff import first_line, render_value, text_of, unified, visible
from snapstore_cli.render import files, words
from snapstore_cli.render.messages import ROLES, arrows, call_line, pieces
from snapstore_cli.render.style import Look, Role

_COLUMN_WIDTH = 58
"""Of each of two columns that do not go to a terminal."""
_INDENT = 4
"""Columns before the lines of a value of the scratchpad."""
_LEAST_LABEL = 6
"""Columns of a label that say anything."""
_LONGEST = 400
"""Columns of a message's beginning where no terminal is narrower; all of it is in `show`."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a difference: how it was named, its head, and its turns since they parted."""

    name: str
    head: Snapshot
    turns: Sequence[Snapshot]
    shared: int
    """Messages at the beginning that the other side holds too, though in turns of its own."""


def sides(diff: Diff, left: str, right: str) -> tuple[Side, Side]:
    """Both sides of a difference under the names that the user gave them."""
    shared = 0 if diff.base else diff.history.shared
    return (
        Side(left, diff.left_head, diff.left, shared),
        Side(right, diff.right_head, diff.right, shared),
    )


def lines(
    diff: Diff, left: str, right: str, parts: Collection[str], look: Look, *, beside: bool = False
) -> Iterator[str]:
    """The whole page; ``beside`` puts the two sides into two columns."""
    if diff.left_head == diff.right_head:
        yield f"{left} and {right} are the same turn"
        return
    yield from _shared(diff, look)
    if "messages" in parts:
        pair = sides(diff, left, right)
        yield from _beside(*pair, look) if beside else _below(*pair, look)
        if (
            diff.history.left
            and diff.history.right
            and diff.base in (diff.left_head, diff.right_head)
        ):
            yield from _rewritten(diff, left, right, look)
    if "scratchpad" in parts:
        yield from _scratchpad(diff, left, right, look)
    if "files" in parts and diff.files:
        yield ""
        yield look.style("heading", "files")
        yield from files.changes(diff.files, diff.left_head, diff.right_head, look)
    if diff.equal:
        yield ""
        both = "messages and scratchpad" if diff.files is None else "messages, scratchpad and files"
        yield f"{both} are the same on both sides"


def _shared(diff: Diff, look: Look) -> Iterator[str]:
    messages = words.count(diff.history.shared, "message")
    begin = f"both begin with the same {messages}" if diff.history.shared else ""
    if diff.base is None:
        yield f"no turn in common; {begin or 'no message either'}"
        return
    base = diff.base
    number = words.short(base.id)
    told = f"both hold {words.count(base.turn, 'turn')}, up to turn {base.turn}"
    room = look.within(len(f"{told} {number}"))
    label = f" {words.one_line(base.label)!r}" if base.label else ""
    if room is not None:
        label = words.cut(label, room) if room >= _LEAST_LABEL else ""
    yield f"{told}{label} {look.style('id', number)}"
    if begin:
        yield begin


# --- what each side did ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of what a side did, of which the first ``lead`` characters have a meaning."""

    text: str
    role: Role = ""
    lead: int = 0

    def painted(self, look: Look) -> str:
        return look.style(self.role, self.text[: self.lead]) + self.text[self.lead :]

    def cut(self, width: int) -> _Line:
        return replace(self, text=words.cut(self.text, width))

    def wrapped(self, width: int) -> Iterator[_Line]:
        """Lines that fit a column, each as far in as the first."""
        told = self.text.lstrip(" ")
        indent = self.text[: len(self.text) - len(told)]
        lead = self.lead
        for row in words.wrap(told, width - len(indent)):
            yield _Line(indent + row, self.role, lead)
            lead = len(self.text) if self.role == "heading" else 0


def _heading(text: str) -> _Line:
    return _Line(text, "heading", len(text))


def _below(left: Side, right: Side, look: Look) -> Iterator[str]:
    roles: tuple[Role, Role] = ("removed", "added")
    width = look.width - 2 if look.width else _LONGEST
    for side, mark, role in zip((left, right), "-+", roles, strict=True):
        yield ""
        yield look.style(role, look.cut(f"{mark * 3} {_title(side)}"))
        for line in _did(side, look):
            yield f"{look.style(role, mark)} {line.cut(width).painted(look)}"


def _title(side: Side) -> str:
    return f"{visible(side.name)}  turn {side.head.turn} {words.short(side.head.id)}"


def _did(side: Side, look: Look) -> Iterator[_Line]:
    """Each turn with its label and a line for each message that it added."""
    if not side.turns:
        yield _Line("(nothing since)")
    for turn in side.turns:
        label = f"  {words.one_line(turn.label)}" if turn.label else ""
        yield _heading(words.cut(f"turn {turn.turn}{label}", _LONGEST))
        start = max(len(turn.history) - turn.added(), side.shared)
        if start >= len(turn.history):
            yield _Line("  (no new message)")
        for message in turn.history[start:]:
            yield from _told(message, arrows(look)[0])


def _told(message: Any, arrow: str) -> Iterator[_Line]:
    """The first line of a message, and a line for each tool call in it."""
    found = list(pieces(message))
    calls = [piece for piece in found if piece.kind == "call"]
    said = None
    if not calls or any(piece.kind in ("text", "result") for piece in found):
        said = first_line(message, _LONGEST)
    elif isinstance(message, dict) and message.get("role"):
        said = f"{words.one_line(str(message['role']))}:"
    if said is not None:
        who, colon, _ = said.partition(":")
        role = ROLES.get(who, "")
        yield _Line(f"  {said}", role, len(f"  {who}{colon}") if role else 0)
    for call in calls:
        assert call.part is not None
        name = len(f"    {arrow} {words.one_line(call.part.name)}")
        yield _Line(words.cut(f"    {arrow} {call_line(call)}", _LONGEST), "tool", name)


def _beside(left: Side, right: Side, look: Look) -> Iterator[str]:
    width = (look.width - 3) // 2 if look.width else _COLUMN_WIDTH
    width = max(12, width)
    bar = look.style("dim", "│" if look.unicode else "|")
    roles: tuple[Role, Role] = ("removed", "added") if look.terminal else ("heading", "heading")
    titles = [
        _Line(_title(side), role, _LONGEST) for side, role in zip((left, right), roles, strict=True)
    ]
    columns = [
        [title, *_did(side, look)] for title, side in zip(titles, (left, right), strict=True)
    ]
    yield ""
    for pair in zip_longest(*columns, fillvalue=_Line("")):
        for ours, theirs in zip_longest(
            *(line.wrapped(width) for line in pair), fillvalue=_Line("")
        ):
            gap = " " * (width - words.cells(ours.text))
            yield f"{ours.painted(look)}{gap} {bar} {theirs.painted(look)}".rstrip()


def _rewritten(diff: Diff, left: str, right: str, look: Look) -> Iterator[str]:
    """One side is an earlier turn of the other, and yet both have messages of their own: the later
    one changed what was there, so the texts themselves are compared."""
    yield ""
    yield look.style("heading", "messages that were changed")
    old, new = (_transcript(messages) for messages in (diff.history.left, diff.history.right))
    yield from _painted(unified(old, new, left, right), look)


def _transcript(messages: Sequence[Any]) -> str:
    return "".join(f"{first_line(m, 40).partition(':')[0]}:\n{text_of(m)}\n" for m in messages)


# --- scratchpad ------------------------------------------------------------------------------


def _scratchpad(diff: Diff, left: str, right: str, look: Look) -> Iterator[str]:
    pad = diff.scratchpad
    if not pad:
        return
    yield ""
    yield look.style("heading", "scratchpad")
    yield from _entries("-", "removed", pad.removed, look)
    yield from _entries("+", "added", pad.added, look)
    for key, (old, new) in pad.changed.items():
        texts = render_value(old), render_value(new)
        yield f"~ {look.style('name', words.one_line(key))}"
        if all("\n" not in text for text in texts):
            yield "  " + look.style("removed", f"- {look.cut(texts[0], 4)}")
            yield "  " + look.style("added", f"+ {look.cut(texts[1], 4)}")
        else:
            ours, theirs = (f"{text}\n" for text in texts)  # its end is no part of the value
            yield from _painted(unified(ours, theirs, left, right), look, "  ")


def _entries(mark: str, role: Role, entries: Mapping[str, Any], look: Look) -> Iterator[str]:
    for key, value in entries.items():
        told, name = render_value(value), f"{mark} {words.one_line(key)}:"
        is_short = look.width is None or words.cells(f"{name} {told}") <= look.width
        if "\n" not in told and not isinstance(value, (dict, list)) and is_short:
            yield look.style(role, f"{name} {told}")
            continue
        yield look.style(role, name)
        for row in words.wrap(told, look.within(_INDENT)):
            yield look.style(role, f"{mark}   {row}")


def _painted(rows: Sequence[str], look: Look, indent: str = "") -> Iterator[str]:
    roles: dict[str, Role] = {"-": "removed", "+": "added", "@": "id"}
    for row in rows:
        yield indent + look.style(roles.get(row[:1], ""), row)
