"""Text for people: JSON values as readable lines, messages as one line, and unified diffs.

Nothing here can be parsed back. What it promises instead: equal values give equal text, nothing is
cut inside a code point, and no text reaches a terminal as a command to it, for control characters,
lone surrogates and marks that reorder the line are written out as escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice

from snapstore.ids import object_id
from snapstore.toolshapes import parts

MOST_LINES = 5_000
"""Lines that two texts may have between their equal ends; beyond it a diff only says how many."""

_DEEPEST_INDENT = 40
_LONGEST_HEX = 16

# C0 and C1 without tab and newline, line separators, bidirectional controls, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with every character written out that a terminal would act upon or cannot show."""
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] == "\r":
        return "\\r"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# --- values ----------------------------------------------------------------------------------


def render_value(value: object) -> str:
    """A value as lines, in the manner of YAML: one line a scalar, a text of several lines as block.

    Keys keep their order. ``|`` heads a block whose text ends in a newline, ``|-`` one whose text
    does not. Bytes show their length and first digits, long ones their id too, so that two that
    differ look different. Nesting of any depth is fine.
    """
    return "\n".join(_rendered(value))


def _rendered(value: object) -> Iterator[str]:
    # Each entry: what stands before the value on its line, and how deep its own lines are.
    rest: list[tuple[str, int, object]] = [("", 0, value)]
    while rest:
        head, depth, item = rest.pop()
        children = _children(item)
        if not children:
            yield from _leaf(head, depth, item)
            continue
        indent = _indent(depth)
        # An entry of a list starts on the line of its dash, the value of a key below it.
        first = f"{head} " if head.endswith("-") else indent
        if head and not head.endswith("-"):
            yield head
        entries = [(indent + label, depth + 1, child) for label, child in children]
        entries[0] = (first + children[0][0], depth + 1, children[0][1])
        rest.extend(reversed(entries))


def _children(value: object) -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return [(f"{_key(key)}:", child) for key, child in value.items()]
    if isinstance(value, (list, tuple)):
        return [("-", child) for child in value]
    return []


def _leaf(head: str, depth: int, value: object) -> Iterator[str]:
    before = f"{head} " if head else ""
    if not isinstance(value, str) or "\n" not in value:
        yield before + _scalar(value)
        return
    lines = value.split("\n")
    yield before + ("|" if lines[-1] == "" else "|-")
    if lines[-1] == "":
        lines.pop()
    for line in lines:
        yield _indent(depth) + visible(line)


def _indent(depth: int) -> str:
    # Nesting of thousands of levels is legal, and would take the square of it in blanks.
    return "  " * min(depth, _DEEPEST_INDENT)


def _key(key: object) -> str:
    text = str(key)
    return text if re.fullmatch(r"[\w$.-]+", text) else _scalar(text)


def _scalar(value: object) -> str:
    if isinstance(value, bytes):
        shown = value[:_LONGEST_HEX].hex()
        more = f"... id {object_id(value).hex()[:12]}" if len(value) > _LONGEST_HEX else ""
        return f"<{len(value)} bytes {shown}{more}>"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 10_000:
        # Python refuses to write ints of over 4,300 digits in decimal.
        return hex(value)
    return visible(json.dumps(value, ensure_ascii=False))


# --- diffs -----------------------------------------------------------------------------------


def unified(
    old: str, new: str, name_old: str = "old", name_new: str = "new", context: int = 3
) -> list[str]:
    """What differs between two texts, as the lines of a unified diff; none when they are equal.

    Lines end at newlines only, and carry none in the result; a last line without one is marked as
    git does. Beyond MOST_LINES lines between the equal ends of the texts, the diff is one hunk that
    says how many lines differ, because looking for the least difference takes too long there.
    """
    if old == new:
        return []
    ours, theirs = _split(old), _split(new)
    head, tail = _common_ends(ours, theirs)
    result = [f"--- {visible(name_old)}", f"+++ {visible(name_new)}"]
    removed, added = len(ours) - head - tail, len(theirs) - head - tail
    if removed + added > MOST_LINES:
        result.append(_hunk_header(head, head + removed, head, head + added))
        result.append(f"{removed} lines differ from {added} lines, too many to compare")
        return result
    # difflib sees the part that differs and the context around it, no more.
    start = max(0, head - context)
    shown = max(0, tail - context)
    ours, theirs = ours[start : len(ours) - shown], theirs[start : len(theirs) - shown]
    matcher = SequenceMatcher(None, ours, theirs)
    for group in matcher.get_grouped_opcodes(context):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        result.append(_hunk_header(start + i1, start + i2, start + j1, start + j2))
        for tag, a, b, c, d in group:
            if tag == "equal":
                result.extend(_marked(" ", ours[a:b]))
            else:
                result.extend(_marked("-", ours[a:b]))
                result.extend(_marked("+", theirs[c:d]))
    return result


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _common_ends(ours: list[str], theirs: list[str]) -> tuple[int, int]:
    """How many lines are equal at the start, and how many of the rest at the end."""
    least = min(len(ours), len(theirs))
    head = 0
    while head < least and ours[head] == theirs[head]:
        head += 1
    tail = 0
    while tail < least - head and ours[-1 - tail] == theirs[-1 - tail]:
        tail += 1
    return head, tail


def _hunk_header(old_start: int, old_end: int, new_start: int, new_end: int) -> str:
    return f"@@ -{_range(old_start, old_end)} +{_range(new_start, new_end)} @@"


def _range(start: int, end: int) -> str:
    """Lines start to end, counted from 0, as POSIX ``diff -u`` writes them."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + visible(line.removesuffix("\n"))
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


# --- messages --------------------------------------------------------------------------------

# Fields that machines read, where a message says anything; in a tool's input every field counts.
_STRUCTURE = frozenset(
    {
        "type", "role", "id", "call_id", "tool_use_id", "tool_call_id", "status", "model",
        "stop_reason", "signature", "encrypted_content", "media_type", "cache_control",
    }
)  # fmt: skip
_FREE = frozenset({"input", "arguments", "args", "action"})
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,")
_ENCODED = frozenset({"base64", "redacted_thinking"})


def text_of(message: object) -> str:
    """All that a person could read in a message, one piece a line, for a search.

    That is text, thinking, names of tools, what they were given and what they gave back; not ids,
    signatures, or pictures. Of a value that is no message it is every string but the keys.
    """
    return "\n".join(_texts(message, free=not _is_message(message)))


def _texts(root: object, free: bool = False) -> Iterator[str]:
    # Each entry: a value, and whether it is free of our structure, so that all its strings count.
    rest: list[tuple[object, bool]] = [(root, free)]
    while rest:
        value, free = rest.pop()
        if isinstance(value, str):
            if free or not _DATA_URL.match(value):
                yield value
        elif isinstance(value, dict):
            rest.extend(reversed([*_readable_fields(value, free)]))
        elif isinstance(value, (list, tuple)):
            rest.extend((child, free) for child in reversed(value))


def _readable_fields(fields: dict[str, object], free: bool) -> Iterator[tuple[object, bool]]:
    kind = fields.get("type")
    encoded = isinstance(kind, str) and kind in _ENCODED
    for key, child in fields.items():
        if free:
            yield child, True
        elif key == "arguments":
            yield _unescaped(child), True
        elif key not in _STRUCTURE and not (encoded and key == "data"):
            yield child, key in _FREE


def _unescaped(arguments: object) -> object:
    """A tool's arguments that came as JSON text: where that has escapes, its strings as well."""
    if not isinstance(arguments, str) or "\\" not in arguments:
        return arguments
    try:
        return [arguments, json.loads(arguments)]
    except (ValueError, RecursionError):
        return arguments


def first_line(message: object, width: int = 80) -> str:
    """A message as one line of at most ``width`` code points, cut with an ellipsis.

    Its role (or the type of an item), and its first text; without one the call
    (``assistant: tool_use Bash``), or how the result begins (``user: tool_result ok``). A value
    that is no message shows as it is rendered, on one line.
    """
    if not isinstance(message, dict) or not _is_message(message):
        text = message if isinstance(message, str) else " ".join(islice(_rendered(message), width))
        return _one_line(text, width)
    who = next(message[key] for key in ("role", "type") if isinstance(message.get(key), str))
    said = _said(message)
    return _one_line(f"{who}: {said}" if said else who, width)


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(k), str) for k in ("role", "type"))


def _said(message: dict[str, object]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [content]
    for block in blocks:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str) and text.strip():
            return text
    for part in parts(message):
        if not part.field:
            return part.name if part.is_call else next(_texts(message.get("output")), "")
        if part.is_call:
            return f"{part.kind} {part.name}"
        block = blocks[part.at]
        told = next(_texts(block.get("content")), "") if isinstance(block, dict) else ""
        return f"{part.kind} {told}"
    kinds = [block["type"] for block in blocks if isinstance(block, dict) and block.get("type")]
    return str(kinds[0]) if kinds else next(_texts(message.get("summary")), "")


def _one_line(text: str, width: int) -> str:
    words: list[str] = []
    length = 0
    # A text can be of any length, so it is read only until the line is full.
    for word in re.finditer(rf"\S{{1,{max(1, width) + 1}}}", text):
        words.append(word[0])
        length += len(word[0]) + 1
        if length > width + 1:
            break
    line = visible(" ".join(words))
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"
