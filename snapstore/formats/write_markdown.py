"""A history as Markdown, for reading: what was said, what was called, what came back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from snapstore.deepjson import dumps
from snapstore.formats.said import Block, Call, Image, Other, Result, Text, Thought, read
from snapstore.textdiff import visible

_BACKTICKS = re.compile("`{3,}")


def markdown(messages: Iterable[Any], title: str) -> Iterator[str]:
    """The lines of the page. Texts stand as they are; calls and results in fences."""
    yield f"# {visible(title)}"
    speaker = ""
    for message in messages:
        said = read(message)
        results = bool(said.blocks) and all(isinstance(b, Result) for b in said.blocks)
        role = speaker if results else said.role or "message"
        if role != speaker:
            speaker = role
            yield ""
            yield f"## {role.capitalize()}"
        for block in said.blocks:
            yield ""
            yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Text):
        yield block.text.rstrip("\n")
    elif isinstance(block, Thought):
        yield from (f"> {line}".rstrip() for line in _thought(block.raw).splitlines())
    elif isinstance(block, Call):
        yield f"**Call** `{block.name}`"
        yield ""
        yield from _fenced(*_input(block.input))
    elif isinstance(block, Result):
        yield "**Error**" if block.is_error else "**Result**"
        for part in block.content:
            yield ""
            yield from _fenced(part.text) if isinstance(part, Text) else _block(part)
    elif isinstance(block, Image):
        yield f"*picture, {block.url or block.media_type}*"
    elif isinstance(block, Other):
        yield from _fenced(dumps(block.raw, indent=2), "json")


def _thought(raw: dict[str, Any]) -> str:
    if isinstance(raw.get("thinking"), str) and raw["thinking"]:
        return str(raw["thinking"])
    summary = raw.get("summary")
    parts = summary if isinstance(summary, list) else []
    texts = [p["text"] for p in parts if isinstance(p, dict) and isinstance(p.get("text"), str)]
    return "\n".join(texts) or "(thought)"


def _input(given: Any) -> tuple[str, str]:
    """A call's input as text, and the language of that."""
    if isinstance(given, dict) and len(given) == 1:
        (value,) = given.values()
        if isinstance(value, str):
            return value, ""
    if isinstance(given, str):
        return given, ""
    return dumps(given, indent=2), "json"


def _fenced(text: str, language: str = "") -> Iterator[str]:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    yield f"{fence}{language}"
    yield text.rstrip("\n")
    yield fence
