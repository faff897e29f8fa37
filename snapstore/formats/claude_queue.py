"""Prompts that were typed while Claude Code was busy, and never sent.

They stand in the file only as rows about the queue: one comes when a prompt is queued, and one when
it is taken out again. What is in the queue at the end of the file, no model has seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from snapstore.formats.jsonl import Damage, Row
from snapstore.formats.turns import label_of


def undelivered(rows: Iterable[Row], prompts: Iterable[str]) -> Iterator[Damage]:
    """The prompts that wait at the end, but for those that are among the labels of prompts."""
    waiting: deque[tuple[Row, str]] = deque()
    for row in rows:
        value = row.value
        if not isinstance(value, dict) or value.get("type") != "queue-operation":
            continue
        if value.get("operation") == "enqueue":
            content = value.get("content")
            waiting.append((row, label_of(content) if isinstance(content, str) else ""))
        elif value.get("operation") == "popAll":
            waiting.clear()
        elif waiting:
            waiting.popleft()
    sent = set(prompts) if waiting else set()
    for row, label in waiting:
        if label and label not in sent:
            what = f"the prompt {label!r} was queued and never sent"
            yield Damage(row.line, row.offset, what, "it is kept, and in no turn")
