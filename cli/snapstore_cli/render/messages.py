"""Messages as a page to read: who said what, with each tool's result under its call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from snapstore.textdiff import render_value, visible
from snapstore.toolshapes import Part, is_thinking, parts
from snapstore_cli.json_values import as_text
from snapstore_cli.render import words
from snapstore_cli.render.style import Look, Role

_INLINE = 100
"""A call's arguments up to this length stand on one line as JSON."""
_CALL_FRAME = 10
"""Columns of indent, arrow and blanks around a call that stands on one line."""
ROLES: dict[str, Role] = {"user": "user", "human": "user", "assistant": "assistant", "tool": "tool"}
"""How the names of those who speak are shown."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message: text (what it says), thought, call (with arguments) or result."""

    kind: str
    body: Any
    part: Part | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    index: int
    body: Any


def page(
    messages: Sequence[Any], start: int, look: Look, most_lines: int | None = None
) -> Iterator[str]:
    """The lines of some messages, the first of which has the index ``start``.

    A piece that takes more than most_lines lines is cut there. A call whose result is not
    among these messages has none yet: they are the last of their history.
    """
    taken = [list(pieces(message)) for message in messages]
    answers, shown_elsewhere = _match(taken, start)
    for n, found in enumerate(taken):
        left = [(at, piece) for at, piece in enumerate(found) if (n, at) not in shown_elsewhere]
        if not left and found:
            continue
        yield _heading(messages[n], start + n, look)
        for at, piece in left:
            yield from _lines(piece, answers.get((n, at)), look, most_lines)
        yield ""


def pieces(message: Any) -> Iterator[Piece]:
    """What a message is made of, in its order; a value that is no message is one text."""
    if not isinstance(message, dict):
        yield Piece("text", message if isinstance(message, str) else render_value(message))
        return
    places = {(part.field, part.at): part for part in parts(message)}
    if whole := places.get(("", 0)):
        yield _whole(message, whole)
        return
    found = False
    for piece in _said(message, places):
        found = True
        yield piece
    if not found:
        rest = {key: value for key, value in message.items() if key not in ("role", "content")}
        yield Piece("text", render_value(rest) if rest else "")


def _whole(message: dict[str, Any], part: Part) -> Piece:
    if part.is_call:
        keys = ("arguments", "input", "action", "operation")
        return Piece("call", next((message[key] for key in keys if key in message), {}), part)
    return Piece("result", message.get("output", message.get("content")), part)


def _said(message: dict[str, Any], places: Mapping[tuple[str, int], Part]) -> Iterator[Piece]:
    content = message.get("content")
    if isinstance(content, str) and content:
        yield Piece("text", content)
    if isinstance(content, list):
        for at, block in enumerate(content):
            yield _block(block, places.get(("content", at)))
    if is_thinking(message):
        yield Piece("thought", _thought(message))
    entries = message.get("tool_calls")
    for at, entry in enumerate(entries if isinstance(entries, list) else ()):
        if part := places.get(("tool_calls", at)):
            yield Piece("call", _arguments(entry), part)
    if part := places.get(("function_call", 0)):
        yield Piece("call", message["function_call"].get("arguments"), part)


def _block(block: Any, part: Part | None) -> Piece:
    if not isinstance(block, dict):
        return Piece("text", block if isinstance(block, str) else render_value(block))
    if part is not None:
        body = block.get("input") if part.is_call else block.get("content")
        return Piece("call" if part.is_call else "result", body, part)
    if is_thinking(block):
        return Piece("thought", _thought(block))
    if isinstance(block.get("text"), str):
        return Piece("text", block["text"])
    return Piece("text", _picture(block) or render_value(block))


def _thought(block: dict[str, Any]) -> str:
    for key in ("thinking", "text"):
        if isinstance(block.get(key), str):
            return str(block[key])
    for key in ("summary", "content"):
        if isinstance(block.get(key), list):
            told = [e["text"] for e in block[key] if isinstance(e, dict) and "text" in e]
            if told:
                return "\n".join(map(str, told))
    return "(not readable)"


def _picture(block: dict[str, Any]) -> str:
    source = block.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("data"), str):
        return ""
    size = words.size(len(source["data"]) * 3 // 4)
    return f"({source.get('media_type') or block.get('type')}, {size})"


def _arguments(entry: Any) -> Any:
    for holder in (entry.get("function"), entry.get("custom"), entry):
        if isinstance(holder, dict):
            for key in ("arguments", "input", "args"):
                if key in holder:
                    return holder[key]
    return {}


def _match(taken: list[list[Piece]], start: int) -> tuple[dict[tuple[int, int], _Answer], set[Any]]:
    """Each call's answer by the call's place, and the places of the results that are answers."""
    waiting: dict[str, list[tuple[int, int]]] = {}
    answers: dict[tuple[int, int], _Answer] = {}
    elsewhere: set[Any] = set()
    for n, found in enumerate(taken):
        for at, piece in enumerate(found):
            if piece.part is None:
                continue
            if piece.kind == "call":
                waiting.setdefault(piece.part.id, []).append((n, at))
            elif waiting.get(piece.part.id):
                answers[waiting[piece.part.id].pop()] = _Answer(start + n, piece.body)
                elsewhere.add((n, at))
    return answers, elsewhere


# --- lines -----------------------------------------------------------------------------------


def _heading(message: Any, index: int, look: Look) -> str:
    who = ""
    if isinstance(message, dict):
        who = next((str(message[k]) for k in ("role", "type") if message.get(k)), "")
    name = look.style(ROLES.get(who, "heading"), words.one_line(who))
    return f"{look.style('dim', f'#{index}')} {name}".rstrip()


def _lines(
    piece: Piece, answer: _Answer | None, look: Look, most_lines: int | None
) -> Iterator[str]:
    if piece.kind == "text":
        yield from _text(visible(piece.body), "    ", "", look, most_lines)
    elif piece.kind == "thought":
        yield from _text(visible(f"(thinking) {piece.body}"), "    ", "dim", look, most_lines)
    elif piece.kind == "result":
        assert piece.part is not None
        yield f"    {look.style('tool', f'result of {visible(piece.part.id)}')}"
        yield from _text(result_text(piece.body), "      ", "", look, most_lines)
    else:
        yield from _call(piece, answer, look, most_lines)


def _call(
    piece: Piece, answer: _Answer | None, look: Look, most_lines: int | None
) -> Iterator[str]:
    assert piece.part is not None
    arrow, back = arrows(look)
    name = look.style("tool", f"{arrow} {visible(piece.part.name)}")
    number = look.style("dim", visible(piece.part.id))
    arguments = _loaded(piece.body)
    inline = visible(as_text(arguments)) if _is_short(arguments) else ""
    room = _INLINE if look.width is None else min(_INLINE, look.width - _CALL_FRAME)
    if inline and words.cells(inline + piece.part.name + piece.part.id) <= room:
        yield f"    {name} {inline}  {number}"
    else:
        yield f"    {name}  {number}"
        told = visible(arguments) if isinstance(arguments, str) else render_value(arguments)
        yield from _text(told, "       ", "", look, most_lines)
    if answer is None:
        yield f"    {look.style('warning', f'{back} no result yet')}"
        return
    yield f"    {look.style('tool', back)} {look.style('dim', f'#{answer.index}')}"
    yield from _text(result_text(answer.body), "       ", "", look, most_lines)


def arrows(look: Look) -> tuple[str, str]:
    """The marks before a call and before what came back."""
    return ("→", "←") if look.unicode else ("->", "<-")


def call_line(piece: Piece) -> str:
    """A call on one line: the tool's name and its arguments as JSON."""
    name = piece.part.name if piece.part else ""
    return words.one_line(f"{name} {as_text(_loaded(piece.body))}")


def _is_short(value: Any) -> bool:
    return not isinstance(value, dict) or (
        len(value) <= 4 and all(not isinstance(v, str) or len(v) <= _INLINE for v in value.values())
    )


def _loaded(arguments: Any) -> Any:
    """Arguments that came as JSON text, as a value; other text as it is."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def result_text(body: Any) -> str:
    """What a tool gave back, as text with nothing hidden."""
    if isinstance(body, str):
        return visible(body)
    if isinstance(body, list) and all(isinstance(block, dict) for block in body):
        texts = [
            visible(block["text"])
            if isinstance(block.get("text"), str)
            else _picture(block) or render_value(block)
            for block in body
        ]
        return "\n".join(texts)
    return render_value(body)


def _text(text: str, indent: str, role: Role, look: Look, most_lines: int | None) -> Iterator[str]:
    width = None if look.width is None else look.width - len(indent)
    # A terminal would move a tab to columns that nobody here has counted.
    shown = text.removesuffix("\n") if width is None else text.removesuffix("\n").expandtabs(4)
    rows = (row for line in shown.split("\n") for row in words.wrap(line, width))
    for row in islice(rows, most_lines):
        yield (indent + look.style(role, row)).rstrip()
    if most_lines is not None and next(rows, None) is not None:
        yield indent + look.style("dim", "… more (snapstore show --messages)")
