"""What people see of a thread: messages and state as plain JSON, beside the serialised bytes.

``snapstore log``, ``show``, ``diff`` and ``find`` know messages and a scratchpad. So a turn also
holds the channel ``messages`` as a history, and the small values of other channels as a scratchpad.
They are read from the packed bytes as data: no class that the bytes name is imported, nothing is
called. Values that were encrypted or pickled, or are no plain data, are left out. A thread is never
loaded from these; LangGraph gets the bytes that it gave.
"""

from __future__ import annotations

import json
from typing import Any

import msgpack

from snapstore import values
from snapstore.errors import UnsupportedValue
from snapstore.integrations.langgraph.turns import PACKED, Typed

MESSAGES = "messages"
"""The channel that is shown as the history."""

_SMALL = 4 << 10
_OBJECTS = range(6)
"""Ext types that hold an array of module, name and what the object was made of."""
_DELTA_SNAPSHOT = 7
_PAYLOAD = 2

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
}


def is_shown(channel: str) -> bool:
    """Whether a channel is shown in the scratchpad: not those that LangGraph drives itself by."""
    return channel != MESSAGES and not channel.startswith("__") and ":" not in channel


def state_value(value: Typed) -> bytes | None:
    """The value of a channel, encoded for the scratchpad; None when it is not shown."""
    type_, data = value
    if type_ == "null":
        return values.encode(None)
    if len(data) > _SMALL:
        return None
    return _encoded(data if type_ == "bytes" else _unpacked(data) if type_ == PACKED else _HIDDEN)


def messages(packed: bytes) -> list[bytes] | None:
    """The members of a packed list of messages, each encoded for the history; None for no list."""
    found = _unpacked(packed)
    if not isinstance(found, list):
        return None
    return [_message(member) for member in found]


def _message(member: Any) -> bytes:
    shown = _chat(member) if isinstance(member, dict) and "additional_kwargs" in member else member
    encoded = _encoded(shown)
    return encoded if encoded is not None else values.encode({"unreadable": True})


def _chat(fields: dict[str, Any]) -> dict[str, Any]:
    """A LangChain message in the form that chat APIs have."""
    kind = fields.get("type")
    shown: dict[str, Any] = {
        "role": _ROLES.get(kind, kind) if isinstance(kind, str) else "user",
        "content": fields.get("content"),
    }
    if fields.get("name"):
        shown["name"] = fields["name"]
    if fields.get("tool_call_id"):
        shown["tool_call_id"] = fields["tool_call_id"]
    calls = fields.get("tool_calls")
    if isinstance(calls, list) and calls:
        shown["tool_calls"] = [_call(call) for call in calls if isinstance(call, dict)]
    return shown


def _call(call: dict[str, Any]) -> dict[str, Any]:
    try:
        arguments = json.dumps(call.get("args"))
    except (TypeError, ValueError, RecursionError):
        arguments = "{}"
    function = {"name": call.get("name"), "arguments": arguments}
    return {"id": call.get("id"), "type": "function", "function": function}


class _Hidden:
    """Stands for what is no plain data."""


_HIDDEN = _Hidden()


def _encoded(shown: Any) -> bytes | None:
    try:
        return values.encode(shown, allow_bytes=True)
    except (UnsupportedValue, RecursionError):
        return None


def _unpacked(packed: bytes) -> Any:
    """Packed bytes as data. What cannot be shown is a _Hidden, which encodes to nothing."""
    try:
        return msgpack.unpackb(
            packed, ext_hook=_plain, strict_map_key=False, unicode_errors="surrogatepass"
        )
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return _HIDDEN


def _plain(code: int, data: bytes) -> Any:
    inner = _unpacked(data)
    if code in _OBJECTS and isinstance(inner, list) and len(inner) > _PAYLOAD:
        return inner[_PAYLOAD]
    return inner if code == _DELTA_SNAPSHOT else _HIDDEN
