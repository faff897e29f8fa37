"""How messages write tool calls and tool results: every shape that is understood, in one place.

Anthropic
    a block ``tool_use`` in ``content``; its result is a block ``tool_result`` in the next user
    message. Tools that the server runs (``server_tool_use``, ``mcp_tool_use``) have their result, a
    block ``web_search_tool_result``, ``mcp_tool_result`` or the like, in the same message.
OpenAI Chat, LangChain
    an entry of ``tool_calls``; its result is a message of role (LangChain: type) ``tool``. Before
    ``tool_calls`` there was one ``function_call``, answered by a message of role ``function``.
OpenAI Responses, Codex
    an item ``function_call``; its result is an item ``function_call_output``. Other tools have item
    types of their own, see ITEM_RESULTS.

A message can be any JSON value; what has none of these shapes holds neither calls nor results.
Ids are not unique for the life of a history, and an old ``function_call`` has none at all: it gets
one made from the function's name, which its result bears too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

INTERRUPTED = "The tool call was interrupted before it returned a result."
"""What an answer says that stands in for a result that never came."""

ITEM_RESULTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
}
"""Call items of the Responses API that the client answers, and the items that answer them."""

_RESULT_ITEMS = frozenset(ITEM_RESULTS.values())
_CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})

# The only form of result that a computer call can have is a picture, hence the empty one.
_NO_PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNgYAAAAAMA"
    "ASsJTYQAAAAASUVORK5CYII="
)
_INTERRUPTED_ITEM: dict[str, dict[str, Any]] = {
    "shell_call": {
        "output": [
            {
                "stdout": "",
                "stderr": INTERRUPTED,
                "outcome": {"type": "exit", "exit_code": 1},
            }
        ]
    },
    "apply_patch_call": {"status": "failed", "output": INTERRUPTED},
    "computer_call": {"output": {"type": "computer_screenshot", "image_url": _NO_PICTURE}},
    "tool_search_call": {"execution": "client", "tools": []},
}


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call: the id that its result will name, and the tool's name ("" when it has none)."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Part:
    """One call or one result, and its place in its message.

    ``field`` is the field that holds it and ``at`` its position in that field's list; ``field`` is
    "" when the message as a whole is the call or the result. ``kind`` is the word that the shape
    uses for it (``tool_use``, ``function_call_output``, ...).
    """

    is_call: bool
    id: str
    name: str
    kind: str
    field: str = ""
    at: int = 0


def parts(message: object) -> Iterator[Part]:
    """The calls and results in a message, in the order in which they stand there."""
    if not isinstance(message, dict):
        return
    kind = _text(message.get("type"))
    if kind in ITEM_RESULTS or kind in _RESULT_ITEMS:
        yield from _item(message, kind)
        return
    if message.get("role") == "tool" or kind == "tool":
        if answered := _text(message.get("tool_call_id")):
            yield Part(False, answered, "", "tool")
        return
    if message.get("role") == "function":
        if name := _text(message.get("name")):
            yield Part(False, _id_of_unnumbered(name), name, "function")
        return
    yield from _blocks(message.get("content"))
    yield from _tool_calls(message.get("tool_calls"))
    if name := _name(message.get("function_call")):
        yield Part(True, _id_of_unnumbered(name), name, "function_call", "function_call")


def _item(message: dict[str, Any], kind: str) -> Iterator[Part]:
    number = _text(message.get("call_id"))
    if not number and kind.startswith("local_shell_call"):
        # In older rollouts it has no call_id, and its output names the id of the item.
        number = _text(message.get("id"))
    if number:
        yield Part(kind in ITEM_RESULTS, number, _text(message.get("name")) or kind, kind)


def _blocks(content: object) -> Iterator[Part]:
    if not isinstance(content, list):
        return
    for at, block in enumerate(content):
        if not isinstance(block, dict):
            continue
        kind = _text(block.get("type"))
        if kind in _CALL_BLOCKS:
            if number := _text(block.get("id")):
                yield Part(True, number, _text(block.get("name")), kind, "content", at)
        elif is_result_block(block):
            yield Part(False, block["tool_use_id"], "", kind, "content", at)


def _tool_calls(entries: object) -> Iterator[Part]:
    if not isinstance(entries, list):
        return
    for at, entry in enumerate(entries):
        if isinstance(entry, dict) and (number := _text(entry.get("id"))):
            name = _name(entry.get("function")) or _name(entry.get("custom")) or _name(entry)
            yield Part(True, number, name, "tool_calls", "tool_calls", at)


def is_result_block(block: object) -> bool:
    """Whether a content block is a tool result: ``tool_result``, ``web_search_tool_result``, ..."""
    return (
        isinstance(block, dict)
        and f"_{_text(block.get('type'))}".endswith("_tool_result")
        and bool(_text(block.get("tool_use_id")))
    )


def is_thinking(value: object) -> bool:
    """Whether a block or an item is the model's reasoning, which the API takes back unchanged."""
    return isinstance(value, dict) and _text(value.get("type")) in _THINKING


def only_thinks(message: object) -> bool:
    """Whether a message is reasoning and nothing else: an item, or an assistant's blocks."""
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    if message.get("role") == "assistant" and isinstance(content, list) and content:
        return all(is_thinking(block) for block in content) and not calls(message)
    return is_thinking(message)


def is_from_model(message: object) -> bool:
    """Whether the model wrote this message (or item)."""
    if not isinstance(message, dict):
        return False
    return message.get("role") == "assistant" or any(part.is_call for part in parts(message))


def calls(message: object) -> tuple[Call, ...]:
    """The tool calls in a message, in order."""
    return tuple(Call(part.id, part.name) for part in parts(message) if part.is_call)


def results(message: object) -> tuple[str, ...]:
    """The ids of the calls that a message holds results of, in order."""
    return tuple(part.id for part in parts(message) if not part.is_call)


def without(message: object, removed: Collection[Part]) -> object | None:
    """The message with these parts taken out; None when it would have nothing left to say.

    Thinking that only led up to a removed call goes with it, because the API refuses an assistant
    message that ends in thinking. All that stays is the very same value as before.
    """
    fields = {part.field for part in removed}
    if not isinstance(message, dict) or "" in fields:
        return None
    left: dict[Any, Any] = dict(message)
    for field in fields:
        gone = {part.at for part in removed if part.field == field}
        held = message[field] if isinstance(message[field], list) else []
        left[field] = [entry for at, entry in enumerate(held) if at not in gone]
    if any(part.is_call and part.field == "content" for part in removed):
        while left["content"] and is_thinking(left["content"][-1]):
            left["content"].pop()
    for field in fields - {"content"}:
        if not left[field]:
            del left[field]
    said = ("content", "tool_calls", "function_call", "refusal", "audio")
    return left if any(left.get(field) for field in said) else None


def interrupted_block(call: Part) -> dict[str, Any]:
    """The block that answers a call block with "interrupted"."""
    if call.kind == "tool_use":
        return {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": INTERRUPTED,
            "is_error": True,
        }
    if call.kind == "mcp_tool_use":
        return {
            "type": "mcp_tool_result",
            "tool_use_id": call.id,
            "is_error": True,
            "content": [{"type": "text", "text": INTERRUPTED}],
        }
    # Both variants of the tool search share one type of result; every other tool has its own.
    name = "tool_search" if call.name.startswith("tool_search_tool") else call.name
    kind = f"{name}_tool_result"
    error = {"type": f"{kind}_error", "error_code": "unavailable"}
    return {"type": kind, "tool_use_id": call.id, "content": error}


def interrupted_message(message: object, call: Part) -> dict[str, Any]:
    """The message that answers a call with "interrupted", for shapes whose results are messages.

    ``message`` is the one that holds the call.
    """
    if call.field == "":
        kind = ITEM_RESULTS[call.kind]
        output = _INTERRUPTED_ITEM.get(call.kind, {"output": INTERRUPTED})
        return {"type": kind, "call_id": call.id, **output}
    if call.field == "function_call":
        return {"role": "function", "name": call.name, "content": INTERRUPTED}
    if isinstance(message, dict) and "role" not in message:
        return {
            "type": "tool",
            "tool_call_id": call.id,
            "name": call.name,
            "content": INTERRUPTED,
            "status": "error",
        }
    return {"role": "tool", "tool_call_id": call.id, "content": INTERRUPTED}


def _id_of_unnumbered(name: str) -> str:
    return f"function_call:{name}"


def _name(value: object) -> str:
    return _text(value.get("name")) if isinstance(value, dict) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
