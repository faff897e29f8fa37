"""Codex rollouts, written: rows of old ones under a new thread id, and rows for messages.

What Codex needs to go on from a file (observed with 0.171.0): a ``session_meta`` row first, then
the response items. Rows about a thread that is not this one (token counts of the account, roll
backs, what a fork was based on) are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from snapstore.formats.losses import Losses
from snapstore.formats.turns import iso, prompt_text
from snapstore.formats.write_claude import Facts
from snapstore.formats.write_messages import items

_KEPT = frozenset({"response_item", "compacted", "turn_context", "world_state"})
_KEPT_EVENTS = frozenset({"user_message", "agent_message", "agent_reasoning", "item_completed"})
_OF_THE_OLD = (
    "history_base", "forked_from_id", "forked_from_ordinal_exclusive", "history_mode",
    "model_provider",
)  # fmt: skip
"""What a new thread must not say: Codex would look for rows elsewhere, and refuses to go on with
another provider than the one that is named."""
_ROLLED_BACK = "thread_rolled_back"


def moved_rows(
    rows: Iterable[dict[str, Any]], facts: Facts, move: Callable[[str], str]
) -> Iterator[dict[str, Any]]:
    """The rows of a thread as those of another one, working in another place.

    Move says for a path what it is there.
    """
    told = list(rows)
    first = next((row for row in told if row.get("type") == "session_meta"), None)
    yield _session_meta(first, facts, move)
    for row in told:
        if not _is_kept(row):
            continue
        new = {key: value for key, value in row.items() if key != "ordinal"}
        payload = new["payload"] = dict(row["payload"])
        if row["type"] == "turn_context" and isinstance(payload.get("cwd"), str):
            payload["cwd"] = move(payload["cwd"])
        if row["type"] == "event_msg" and "thread_id" in payload:
            payload["thread_id"] = facts.session_id
        yield new


def without_rolled_back(
    rows: Sequence[dict[str, Any]], beside: Sequence[bool]
) -> Iterator[dict[str, Any]]:
    """The rows of a turn without those of a turn before it that was rolled back.

    What came behind the last message of such a turn stands beside the next one.
    """
    start = 0
    for at, (row, aside) in enumerate(zip(rows, beside, strict=True)):
        payload = row.get("payload")
        if aside and isinstance(payload, dict) and payload.get("type") == _ROLLED_BACK:
            start = at + 1
    yield from rows[start:]


def rows_for(messages: Iterable[Any], facts: Facts, losses: Losses) -> Iterator[dict[str, Any]]:
    """Rows that say these messages, of any shape."""
    time = iso(facts.time)
    for item in items(messages, losses):
        yield {"timestamp": time, "type": "response_item", "payload": item}
        event = _event(item)
        if event is not None:
            yield {"timestamp": time, "type": "event_msg", "payload": event}


def session_meta(facts: Facts) -> dict[str, Any]:
    """The first row of a new rollout."""
    return _session_meta(None, facts, lambda path: path)


def _session_meta(
    old: dict[str, Any] | None, facts: Facts, move: Callable[[str], str]
) -> dict[str, Any]:
    payload = old.get("payload") if old else None
    known = payload if isinstance(payload, dict) else {}
    time = iso(facts.time)
    made_up = {
        "cwd": facts.cwd,
        "originator": "codex_cli_rs",
        "cli_version": facts.version or "0.0.0",
        "source": "cli",
    }
    kept = {key: value for key, value in known.items() if key not in _OF_THE_OLD}
    new = {**made_up, **kept, "id": facts.session_id, "timestamp": time}
    if "session_id" in kept:
        new["session_id"] = facts.session_id
    new["cwd"] = move(str(new["cwd"]))
    return {"timestamp": time, "type": "session_meta", "payload": new}


def _is_kept(row: dict[str, Any]) -> bool:
    payload = row.get("payload")
    if not isinstance(payload, dict):
        return False
    if row.get("type") == "event_msg":
        return payload.get("type") in _KEPT_EVENTS
    return row.get("type") in _KEPT


def _event(item: dict[str, Any]) -> dict[str, Any] | None:
    """What the screen shows of an item; Codex reads its list of prompts from it."""
    if item["type"] != "message":
        return None
    text = prompt_text(item.get("content"))
    if item.get("role") == "user":
        return {"type": "user_message", "message": text, "images": []}
    return {"type": "agent_message", "message": text} if item.get("role") == "assistant" else None
