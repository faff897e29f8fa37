"""What of a Claude Code row must be in memory to tell the tree, the turns and their labels.

A transcript of 150 MB is 100,000 rows. Their texts are needed once, when a turn is written, and
are read again then; held until now is some 1 KB a row.
"""

from __future__ import annotations

from typing import Any

from snapstore.formats.turns import LABEL_LENGTH

_ROW_KEYS = (
    "type", "uuid", "parentUuid", "logicalParentUuid", "isSidechain", "agentId", "subtype",
    "compactMetadata", "isMeta", "isCompactSummary", "apiBlockIndex", "timestamp",
    "sessionId", "cwd", "gitBranch", "version",
    "customTitle", "aiTitle", "summary", "leafUuid", "messageId", "operation",
)  # fmt: skip
_BLOCK_KEYS = ("type", "id", "tool_use_id")
_LABEL_TEXT = 32 * LABEL_LENGTH
"""As much of a prompt as a label is looked for in."""


class ClaudeCut:
    """Cuts the rows of one file: texts that they have in common are kept once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def __call__(self, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        kept = {key: self._once(row[key]) for key in _ROW_KEYS if key in row}
        if isinstance(row.get("content"), str):
            kept["content"] = row["content"][:_LABEL_TEXT]
        if "message" in row:
            kept["message"] = self._message(row["message"], row.get("type") == "user")
        return kept

    def _once(self, value: Any) -> Any:
        return self._texts.setdefault(value, value) if type(value) is str else value

    def _message(self, message: Any, is_users: bool) -> Any:
        if not isinstance(message, dict):
            return message[:_LABEL_TEXT] if isinstance(message, str) else message
        kept = {key: self._once(message[key]) for key in ("id", "role", "model") if key in message}
        usage = message.get("usage")
        if isinstance(usage, dict):
            kept["usage"] = {k: number for k, number in usage.items() if type(number) is int}
        content = message.get("content")
        if isinstance(content, str):
            kept["content"] = content[:_LABEL_TEXT] if is_users else ""
        elif isinstance(content, list):
            kept["content"] = [self._block(block, is_users) for block in content]
        return kept

    def _block(self, block: Any, is_users: bool) -> Any:
        if not isinstance(block, dict):
            return block
        kept = {key: self._once(block[key]) for key in _BLOCK_KEYS if key in block}
        if is_users and isinstance(block.get("text"), str):
            kept["text"] = block["text"][:_LABEL_TEXT]
        return kept
