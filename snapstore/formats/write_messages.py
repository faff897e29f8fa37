"""Messages of any shape as the arrays that APIs take.

A message that is in the wanted shape already stays as it is, but for fields that the API answers
with and does not take back (ids, usage). Thinking and signatures are never touched. What has no
counterpart is left out and noted in the losses.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from snapstore.deepjson import dumps
from snapstore.formats.codex import is_injected
from snapstore.formats.losses import Losses
from snapstore.formats.said import (
    Block,
    Call,
    Image,
    Other,
    Result,
    Said,
    Text,
    Thought,
    joined,
    read,
)
from snapstore.formats.turns import prompt_text
from snapstore.toolshapes import INTERRUPTED

_ANTHROPIC_FIELDS = ("role", "content")
_CHAT_FIELDS = (
    "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio",
)  # fmt: skip
_CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_CHAT_BLOCKS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
_OF_OTHERS = frozenset({"input_text", "output_text", "input_image", "image_url", "reasoning"})

CALLS_ANSWERED = "calls without a result (answered as interrupted)"
RESULTS_DROPPED = "results without a call"


def anthropic(
    messages: Iterable[Any], losses: Losses, *, whole: bool = False
) -> list[dict[str, Any]]:
    """The messages as the Anthropic API takes them; whole ones with all that it answered."""
    told = list(messages)
    kept = [message for message in told if not _is_context(message)]
    losses.add("contexts that Codex put in", len(told) - len(kept))
    if whole and all(map(_is_anthropic, kept)):
        return kept
    return _converted(kept, _is_anthropic, _ANTHROPIC_FIELDS, _to_anthropic, losses)


def openai(messages: Iterable[Any], losses: Losses) -> list[dict[str, Any]]:
    """The messages as the OpenAI Chat API takes them."""
    return _converted(messages, _is_chat, _CHAT_FIELDS, _to_chat, losses)


def items(messages: Iterable[Any], losses: Losses) -> list[dict[str, Any]]:
    """The messages as items of the OpenAI Responses API, as Codex keeps them."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if is_item(message):
            found.append(message)
        else:
            found += _to_items(read(message), losses)
    return found


def is_item(message: Any) -> bool:
    """Whether a message is an item of the Responses API already."""
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        return False
    kind = message["type"]
    if kind != "message":
        return kind.endswith(("_call", "_output")) or kind in ("reasoning", "compaction")
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return isinstance(content, str) or all(
        isinstance(b, dict) and b.get("type") in ("input_text", "output_text", "input_image")
        for b in blocks
    )


def _converted(
    messages: Iterable[Any],
    fits: Callable[[Any], bool],
    fields: Sequence[str],
    convert: Callable[[Said, Losses], Iterator[dict[str, Any]]],
    losses: Losses,
) -> list[dict[str, Any]]:
    told = list(messages)
    if all(map(fits, told)):
        return [{key: message[key] for key in fields if key in message} for message in told]
    said = _paired(list(joined(map(read, told))), losses)
    return [message for one in said for message in convert(one, losses)]


# --- pairs ---------------------------------------------------------------------------------------


def _paired(said: Sequence[Said], losses: Losses) -> Iterator[Said]:
    """The same with the results of each reply just behind it, as these APIs demand."""
    waiting: defaultdict[str, deque[Result]] = defaultdict(deque)
    for one in said:
        for block in one.blocks:
            if isinstance(block, Result):
                waiting[block.id].append(block)
    last = max((n for n, one in enumerate(said) if one.role == "assistant"), default=-1)
    for n, one in enumerate(said):
        rest = tuple(block for block in one.blocks if not isinstance(block, Result))
        if rest or not one.blocks:
            yield Said(one.role, rest)
        calls = [block for block in rest if isinstance(block, Call)]
        if not calls:
            continue
        answers = [waiting[call.id].popleft() if waiting[call.id] else None for call in calls]
        if not any(answers) and n == last:
            continue  # it was interrupted here, and the program that goes on sees to that
        losses.add(CALLS_ANSWERED, answers.count(None))
        pairs = zip(calls, answers, strict=True)
        none = (Text(INTERRUPTED),)
        yield Said("user", tuple(answer or Result(call.id, none, True) for call, answer in pairs))
    losses.add(RESULTS_DROPPED, sum(map(len, waiting.values())))


# --- Anthropic -----------------------------------------------------------------------------------


def _is_context(message: Any) -> bool:
    """Whether a message tells a model of the program that Codex is, and where it runs."""
    if not is_item(message) or message["type"] != "message":
        return False
    role = message.get("role")
    return role in ("developer", "system") or (
        role == "user" and is_injected(prompt_text(message.get("content")))
    )


def _is_anthropic(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        return False
    content = message.get("content")
    if "tool_calls" in message or message.get("type") not in (None, "message"):
        return False
    blocks = content if isinstance(content, list) else []
    return isinstance(content, str | list) and all(
        isinstance(block, dict) and block.get("type") not in _OF_OTHERS for block in blocks
    )


def _to_anthropic(said: Said, losses: Losses) -> Iterator[dict[str, Any]]:
    if said.role not in ("user", "assistant"):
        losses.add("system and developer messages")
        return
    blocks: list[dict[str, Any]] = []
    for block in said.blocks:
        blocks += _anthropic_block(block, losses)
    if len(blocks) == 1 and said.role == "user" and blocks[0]["type"] == "text":
        yield {"role": said.role, "content": blocks[0]["text"]}
    elif blocks:
        yield {"role": said.role, "content": blocks}


def _anthropic_block(block: Block, losses: Losses) -> Iterator[dict[str, Any]]:
    if isinstance(block, Text):
        if block.text.strip():  # the API refuses texts that say nothing
            yield {"type": "text", "text": block.text}
    elif isinstance(block, Image):
        if block.url:
            yield {"type": "image", "source": {"type": "url", "url": block.url}}
        else:
            source = {"type": "base64", "media_type": block.media_type, "data": block.data}
            yield {"type": "image", "source": source}
    elif isinstance(block, Call):
        given = block.input if isinstance(block.input, dict) else {"input": block.input}
        yield {"type": "tool_use", "id": block.id, "name": block.name, "input": given}
    elif isinstance(block, Result):
        content = [b for part in block.content for b in _anthropic_block(part, losses)]
        result = {"type": "tool_result", "tool_use_id": block.id, "content": content}
        yield {**result, "is_error": True} if block.is_error else result
    else:
        yield from _unless_foreign(block, ("thinking", "redacted_thinking"), losses)


# --- OpenAI Chat ---------------------------------------------------------------------------------


def _is_chat(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("role") not in _CHAT_ROLES:
        return False
    content = message.get("content")
    if message.get("type") is not None or not isinstance(content, str | list | None):
        return False
    blocks = content if isinstance(content, list) else []
    return all(isinstance(b, dict) and b.get("type") in _CHAT_BLOCKS for b in blocks)


def _to_chat(said: Said, losses: Losses) -> Iterator[dict[str, Any]]:
    said_itself: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for block in said.blocks:
        if isinstance(block, Result):
            losses.add("marks that a result is an error", block.is_error)
            yield {"role": "tool", "tool_call_id": block.id, "content": _text(block, losses)}
        elif isinstance(block, Call):
            calls.append(
                {
                    "id": block.id,
                    "type": "function",
                    "function": {"name": block.name, "arguments": _arguments(block)},
                }
            )
        elif isinstance(block, Text):
            said_itself.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            said_itself.append({"type": "image_url", "image_url": {"url": _url(block)}})
        else:
            _left_out(block, losses)
    if not said_itself and not calls:
        return
    message: dict[str, Any] = {"role": said.role, "content": _plain(said_itself, said.role)}
    yield {**message, "tool_calls": calls} if calls else message


def _plain(blocks: list[dict[str, Any]], role: str) -> Any:
    """Content as one text where it is nothing but text."""
    if not blocks:
        return None
    if role == "assistant" or all(block["type"] == "text" for block in blocks):
        return "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
    return blocks


def _text(result: Result, losses: Losses) -> str:
    texts = [block.text for block in result.content if isinstance(block, Text)]
    losses.add("pictures in results", sum(isinstance(b, Image) for b in result.content))
    for block in result.content:
        if isinstance(block, Other):
            _left_out(block, losses)
    return "\n".join(texts)


# --- Responses -----------------------------------------------------------------------------------


def _to_items(said: Said, losses: Losses) -> Iterator[dict[str, Any]]:
    spoken: list[dict[str, Any]] = []
    kind = "output_text" if said.role == "assistant" else "input_text"
    for block in said.blocks:
        if isinstance(block, Text):
            spoken.append({"type": kind, "text": block.text})
            continue
        if isinstance(block, Image):
            spoken.append({"type": "input_image", "image_url": _url(block)})
            continue
        if spoken:
            yield _message_item(said.role, spoken)
            spoken = []
        if isinstance(block, Call):
            arguments = _arguments(block)
            call = {"type": "function_call", "name": block.name, "arguments": arguments}
            yield {**call, "call_id": block.id}
        elif isinstance(block, Result):
            losses.add("marks that a result is an error", block.is_error)
            output = _output(block, losses)
            yield {"type": "function_call_output", "call_id": block.id, "output": output}
        else:
            yield from _unless_foreign(block, ("reasoning",), losses)
    if spoken:
        yield _message_item(said.role, spoken)


def _message_item(role: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def _output(result: Result, losses: Losses) -> Any:
    if not any(isinstance(block, Image) for block in result.content):
        return _text(result, losses)
    return [
        {"type": "input_text", "text": block.text}
        if isinstance(block, Text)
        else {"type": "input_image", "image_url": _url(block)}
        for block in result.content
        if isinstance(block, Text | Image)
    ]


# --- in common -----------------------------------------------------------------------------------


def _unless_foreign(
    block: Thought | Other, kinds: Sequence[str], losses: Losses
) -> Iterator[dict[str, Any]]:
    """A thought as it is, where the target can read it."""
    if isinstance(block, Thought) and block.raw.get("type") in kinds:
        yield block.raw
    else:
        _left_out(block, losses)


def _left_out(block: Thought | Other, losses: Losses) -> None:
    if isinstance(block, Thought):
        losses.add(f"{block.raw.get('type')} blocks (only the model's own API reads them)")
    else:
        losses.add(f"blocks of type {block.kind}" if block.kind else "values of no known type")


def _arguments(call: Call) -> str:
    if isinstance(call.input, str):
        return dumps({"input": call.input})
    return dumps(call.input)


def _url(image: Image) -> str:
    return image.url or f"data:{image.media_type};base64,{image.data}"
