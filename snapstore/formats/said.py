"""Messages of any shape, read as what was said: the middle of every conversion.

Anthropic messages, OpenAI Chat messages (LangChain's too) and items of the Responses API say the
same things in different words. A message becomes one ``Said``: who spoke, and blocks of a few
kinds. Nothing is lost here; what a shape cannot say is found by its writer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from snapstore.deepjson import dumps
from snapstore.toolshapes import ITEM_RESULTS

_RESULT_ITEMS = frozenset(ITEM_RESULTS.values())
_ROLES = {"human": "user", "ai": "assistant", "tool": "user", "function": "user"}
_TEXTS = frozenset({"text", "input_text", "output_text"})
_CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)
_CALL_INPUTS = ("arguments", "input", "action", "operation")


@dataclass(frozen=True, slots=True)
class Text:
    """Something said."""

    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: its media type and its bytes in base64, or only where it lies."""

    media_type: str
    data: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Thought:
    """What a model thought, as its own API wrote it: only that can read it back."""

    raw: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. Its input is an object, or a text where the tool takes one."""

    id: str
    name: str
    input: Any


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool call."""

    id: str
    content: tuple[Text | Image | Other, ...]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Other:
    """A block of a kind that has no counterpart elsewhere."""

    kind: str
    """Empty for what does not say of which kind it is, such as a number."""
    raw: Any


Block = Text | Image | Thought | Call | Result | Other


@dataclass(frozen=True, slots=True)
class Said:
    """A message: who spoke (user, assistant, system, developer), and what."""

    role: str
    blocks: tuple[Block, ...]


def read(message: Any) -> Said:
    """What a message says; a value that is no message is one block of its own."""
    if not isinstance(message, dict):
        return Said("user", (_block(message),))
    kind = _kind(message)
    if kind in ITEM_RESULTS or kind in _RESULT_ITEMS:
        return _item(message, kind)
    if kind == "reasoning":
        return Said("assistant", (Thought(message),))
    role = message.get("role") or kind
    role = role if isinstance(role, str) else ""
    if role in ("tool", "function"):
        answered = message.get("tool_call_id") or message.get("name") or ""
        content = tuple(_contents(message.get("content")))
        failed = message.get("status") == "error"
        return Said("user", (Result(str(answered), content, failed),))
    if "content" not in message and not message.get("tool_calls"):
        return Said("assistant" if kind.endswith("_call") else "user", (Other(kind, message),))
    called = (*_tool_calls(message.get("tool_calls")), *_function_call(message))
    return Said(_ROLES.get(role, role), (*_blocks(message.get("content")), *called))


def _kind(told: dict[str, Any]) -> str:
    kind = told.get("type")
    return kind if isinstance(kind, str) else ""


def _item(item: dict[str, Any], kind: str) -> Said:
    number = str(item.get("call_id") or item.get("id") or "")
    if kind in ITEM_RESULTS:
        given: Any = next((item[key] for key in _CALL_INPUTS if key in item), {})
        return Said("assistant", (Call(number, str(item.get("name") or kind), _input(given)),))
    output = item.get("output")
    failed = item.get("success") is False or item.get("status") == "failed"
    if isinstance(output, dict) and "content" in output:
        failed = failed or output.get("success") is False
        output = output["content"]
    if output is None:
        output = item.get("tools")
    return Said("user", (Result(number, tuple(_contents(output)), failed),))


def _blocks(content: Any) -> Iterator[Block]:
    if isinstance(content, str):
        yield Text(content)
        return
    for block in content if isinstance(content, list) else ():
        yield _block(block)


def _block(block: Any) -> Block:
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict):
        return Other("", block)
    kind = _kind(block)
    if kind in _TEXTS and isinstance(block.get("text"), str):
        return Text(block["text"])
    if kind in _THOUGHTS:
        return Thought(block)
    if kind in _CALL_BLOCKS:
        return Call(str(block.get("id")), str(block.get("name")), block.get("input"))
    if kind == "tool_result":
        content = tuple(_contents(block.get("content")))
        return Result(str(block.get("tool_use_id")), content, bool(block.get("is_error")))
    return _image(block, kind) or Other(kind, block)


def _contents(content: Any) -> Iterator[Text | Image | Other]:
    """The content of a result."""
    if content is not None and not isinstance(content, str | list):
        content = dumps(content)
    for block in _blocks(content):
        yield block if isinstance(block, Text | Image | Other) else Other("block", block)


def _image(block: dict[str, Any], kind: str) -> Image | None:
    source = block.get("source")
    if kind == "image" and isinstance(source, dict):
        if source.get("type") == "base64":
            return Image(str(source.get("media_type")), str(source.get("data")))
        return Image("", "", str(source.get("url"))) if "url" in source else None
    if kind in ("image_url", "input_image"):
        told = block.get("image_url")
        url = told.get("url") if isinstance(told, dict) else told
        if isinstance(url, str):
            found = _DATA_URL.fullmatch(url)
            return Image(found[1], found[2]) if found else Image("", "", url)
    return None


def _tool_calls(entries: Any) -> Iterator[Call]:
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        told = entry.get("function") or entry.get("custom") or entry
        if isinstance(told, dict):
            given: Any = next((told[k] for k in ("arguments", "args", "input") if k in told), {})
            yield Call(str(entry.get("id")), str(told.get("name")), _input(given))


def _function_call(message: dict[str, Any]) -> Iterator[Call]:
    called = message.get("function_call")
    if isinstance(called, dict):
        name = str(called.get("name"))
        yield Call(name, name, _input(called.get("arguments", {})))


def _input(given: Any) -> Any:
    """The input of a call: arguments are often JSON in a text."""
    if isinstance(given, str):
        try:
            read = json.loads(given)
        except (ValueError, RecursionError):
            return given
        return read if isinstance(read, dict) else given
    return given


def joined(said: Iterable[Said]) -> Iterator[Said]:
    """The same with neighbours put together that are one reply, or the results of one reply.

    Items say each call and each result for itself; APIs of messages want them in one.
    """
    before: Said | None = None
    for one in said:
        if before is not None and _belong_together(before, one):
            before = Said(one.role, before.blocks + one.blocks)
            continue
        if before is not None:
            yield before
        before = one
    if before is not None:
        yield before


def _belong_together(one: Said, next_one: Said) -> bool:
    if one.role != next_one.role:
        return False
    return one.role == "assistant" or (_only_answers(one) and _only_answers(next_one))


def _only_answers(said: Said) -> bool:
    return bool(said.blocks) and all(isinstance(block, Result) for block in said.blocks)
