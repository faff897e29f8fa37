"""A difference between two turns, for people: what both hold, then what each side did."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from snapstore import Snapshot
from snapstore.diff import Diff
from snapstore.textdiff import first_line, render_value, text_of, unified, visible
from snapstore_cli.render import files, words
from snapstore_cli.render.messages import call_line, pieces
from snapstore_cli.render.style import Look, Role

_COLUMN_WIDTH = 58
"""Of each of two columns that do not go to a terminal."""
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


def stat(diff: Diff, left: str, right: str, parts: Collection[str]) -> Iterator[str]:
    """The difference in numbers: a line each for turns, messages and scratchpad."""
    shared = diff.base.turn if diff.base else 0
    rows = {
        "turns": (shared, len(diff.left), len(diff.right)),
        "messages": (diff.history.shared, len(diff.history.left), len(diff.history.right)),
    }
    if "messages" in parts:
        for name, (both, ours, theirs) in rows.items():
            yield f"{name:<10}  {both} shared, {ours} only in {left}, {theirs} only in {right}"
    if "scratchpad" in parts:
        pad = diff.scratchpad
        yield (
            f"scratchpad  {len(pad.added)} added, {len(pad.removed)} removed, "
            f"{len(pad.changed)} changed"
        )
    if "files" in parts and diff.files is not None:
        held = diff.files
        yield (
            f"files       {len(held.added)} added, {len(held.removed)} removed, "
            f"{len(held.changed)} changed"
        )


def _shared(diff: Diff, look: Look) -> Iterator[str]:
    messages = words.count(diff.history.shared, "message")
    begin = f"both begin with the same {messages}" if diff.history.shared else ""
    if diff.base is None:
        yield f"no turn in common; {begin or 'no message either'}"
        return
    base = diff.base
    label = f" {words.one_line(base.label)!r}" if base.label else ""
    turns = words.count(base.turn, "turn")
    number = look.style("id", words.short(base.id))
    yield f"both hold {turns}, up to turn {base.turn}{label} {number}"
    if begin:
        yield begin


# --- what each side did ------------------------------------------------------------------------


def _below(left: Side, right: Side, look: Look) -> Iterator[str]:
    roles: tuple[Role, Role] = ("removed", "added")
    for side, mark, role in zip((left, right), "-+", roles, strict=True):
        yield ""
        yield look.style(role, f"{mark * 3} {_title(side)}")
        width = look.width and look.width - 2
        for text, is_head in _did(side, width):
            row = look.style("heading", text) if is_head else text
            yield f"{look.style(role, mark)} {row}"


def _title(side: Side) -> str:
    return f"{visible(side.name)}  turn {side.head.turn} {words.short(side.head.id)}"


def _did(side: Side, width: int | None) -> Iterator[tuple[str, bool]]:
    """Each turn with its label and a line for each message that it added."""
    if not side.turns:
        yield "(nothing since)", False
    for turn in side.turns:
        label = f"  {words.one_line(turn.label)}" if turn.label else ""
        yield words.cut(f"turn {turn.turn}{label}", width or _LONGEST), True
        start = max(len(turn.history) - turn.added(), side.shared)
        if start >= len(turn.history):
            yield "  (no new message)", False
        for message in turn.history[start:]:
            for text in _told(message):
                yield "  " + words.cut(text, (width or _LONGEST) - 2), False


def _told(message: Any) -> Iterator[str]:
    """The first line of a message, and a line for each tool call in it."""
    found = list(pieces(message))
    calls = [piece for piece in found if piece.kind == "call"]
    if not calls or any(piece.kind in ("text", "result") for piece in found):
        yield first_line(message, _LONGEST)
    elif isinstance(message, dict) and message.get("role"):
        yield f"{words.one_line(str(message['role']))}:"
    yield from (f"  -> {call_line(call)}" for call in calls)


def _beside(left: Side, right: Side, look: Look) -> Iterator[str]:
    width = (look.width - 3) // 2 if look.width else _COLUMN_WIDTH
    width = max(12, width)
    bar = "│" if look.unicode else "|"
    columns = [[(_title(side), True), *_did(side, None)] for side in (left, right)]
    yield ""
    for ours, theirs in zip_longest(*columns, fillvalue=("", False)):
        cells = [list(_wrapped(text, width)) for text, _ in (ours, theirs)]
        for row in zip_longest(*cells, fillvalue=""):
            painted = [
                look.style("heading" if is_head else "", text)
                for text, (_, is_head) in zip(row, (ours, theirs), strict=True)
            ]
            gap = " " * (width - words.cells(row[0]))
            yield f"{painted[0]}{gap} {look.style('dim', bar)} {painted[1]}".rstrip()


def _wrapped(text: str, width: int) -> Iterator[str]:
    """The lines of a text that fit a column, each as far in as the first."""
    told = text.lstrip(" ")
    indent = text[: len(text) - len(told)]
    yield from (indent + row for row in words.wrap(told, width - len(indent)))


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
        told = render_value(value).split("\n")
        inline = len(told) == 1 and not isinstance(value, (dict, list))
        yield look.style(
            role, f"{mark} {words.one_line(key)}: {told[0] if inline else ''}".rstrip()
        )
        for row in () if inline else told:
            yield look.style(role, f"{mark}   {row}")


def _painted(rows: Sequence[str], look: Look, indent: str = "") -> Iterator[str]:
    roles: dict[str, Role] = {"-": "removed", "+": "added", "@": "id"}
    for row in rows:
        yield indent + look.style(roles.get(row[:1], ""), row)
