"""Messages as the page shows them: plain arrays of text, whatever shape they were written in.

A message is ``[role, blocks]``, a block one of

    ["t", text]                            said
    ["h", text]                            thought
    ["c", id, tool, [[name, text], ...]]   a call and its input
    ["r", id, failed, blocks]              a result
    ["i", media type, base64, url]         a picture; base64 is "" when it is too large or none
    ["o", kind, text]                      anything else

Everything is text by then: numbers of any size, deep nesting and bytes are written out as
``textdiff.render_value`` does, so that no browser has to read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from snapstore.formats.said import Block, Call, Image, Other, Result, Text, Thought, read
from snapstore.textdiff import render_value, visible

LONGEST = 100_000
"""Characters of one text that a page carries; what is longer is for ``snapstore show``."""
LARGEST_PICTURE = 300_000
"""Characters of base64 that a page carries for one picture."""
_LONGEST_TITLE = 140

# Formats that can hold no script.
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def message(value: Any) -> list[Any]:
    """A message as the page has it."""
    said = read(value)
    return [said.role, [_block(block) for block in said.blocks]]


def unreadable(error: Exception) -> list[Any]:
    """What stands in the place of a message that the store cannot give back."""
    return ["", [["o", "cannot be read", str(error)]]]


def cut(text: str) -> str:
    """Text that a page can carry."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n… cut here: the whole text has {len(text):,} characters"


def text_of(value: Any) -> str:
    """Any value as text; a text as it is."""
    return cut(value if isinstance(value, str) else render_value(value))


def tools(shown: Sequence[Any]) -> Iterator[str]:
    """The tools that a message calls."""
    return (block[2] for block in shown[1] if block[0] == "c")


def title(shown: Sequence[Any]) -> str:
    """A line that tells a message: the beginning of the first text in it; "" for none."""
    text = next((block[1] for block in shown[1] if block[0] == "t"), "")
    return visible(" ".join(text[: 4 * _LONGEST_TITLE].split())[:_LONGEST_TITLE])


def _block(block: Block) -> list[Any]:
    if isinstance(block, Text):
        return ["t", cut(block.text)]
    if isinstance(block, Thought):
        return ["h", cut(_thought(block.raw))]
    if isinstance(block, Call):
        return ["c", block.id, block.name, _input(block.input)]
    if isinstance(block, Result):
        return ["r", block.id, int(block.is_error), [_block(part) for part in block.content]]
    if isinstance(block, Image):
        held = block.media_type in _PICTURES and len(block.data) <= LARGEST_PICTURE
        return ["i", block.media_type, block.data if held else "", cut(block.url)]
    assert isinstance(block, Other)
    return ["o", block.kind, text_of(block.raw)]


def _thought(raw: dict[str, Any]) -> str:
    for key in ("thinking", "text"):
        if isinstance(raw.get(key), str) and raw[key]:
            return str(raw[key])
    summary = raw.get("summary")
    parts = summary if isinstance(summary, list) else []
    texts = [p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)]
    return "\n".join(texts) or "(not readable: only the model's provider can)"


def _input(given: Any) -> list[list[str]]:
    if isinstance(given, dict):
        return [[str(key), text_of(value)] for key, value in given.items()]
    return [["", text_of(given)]]
