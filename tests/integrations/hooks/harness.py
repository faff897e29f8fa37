"""A harness at work: a transcript that grows as the real ones do, and the events it tells of."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TIME = "2030-01-01T00:00:{:02}.000Z"


def event(name: str, session: str, transcript: Path | None, cwd: Path, **more: Any) -> bytes:
    """An event as it comes on a hook's standard input."""
    told = {
        "session_id": session,
        "transcript_path": None if transcript is None else str(transcript),
        "cwd": str(cwd),
        "hook_event_name": name,
        **more,
    }
    return json.dumps(told).encode()


@dataclass
class Claude:
    """A session of Claude Code."""

    transcript: Path
    cwd: Path
    session: str = "S1"
    tip: str | None = None
    written: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)

    def event(self, name: str, **more: Any) -> bytes:
        return event(name, self.session, self.transcript, self.cwd, **more)

    def says(self, kind: str, content: Any, **more: Any) -> str:
        """Add a row to the transcript; its uuid."""
        uuid = f"{self.session}-{len(self.rows)}"
        row = {
            "parentUuid": self.tip,
            "type": kind,
            "message": {"role": kind, "content": content},
            "uuid": uuid,
            "timestamp": TIME.format(len(self.rows)),
            "sessionId": self.session,
            "cwd": str(self.cwd),
            "isSidechain": False,
            **more,
        }
        if kind == "assistant":
            row["message"] |= {"id": f"m-{uuid}", "model": "m"}
        self.add(row)
        self.tip = uuid
        return uuid

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def asks(self, text: str) -> str:
        return self.says("user", text)

    def answers(self, text: str) -> str:
        return self.says("assistant", [{"type": "text", "text": text}])

    def calls(self, call: str) -> str:
        block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "true"}}
        return self.says("assistant", [block])

    def gets(self, call: str) -> str:
        return self.says("user", [{"type": "tool_result", "tool_use_id": call, "content": "ok"}])

    def turn(self, text: str) -> str:
        """A whole turn; what the model said last."""
        self.asks(text)
        self.answers(f"answer to {text}")
        return f"answer to {text}"


@dataclass
class Codex:
    """A session of Codex."""

    folder: Path
    cwd: Path
    session: str = "0199a213-81c0-7800-8aa1-bbab2a035a53"
    transcript: Path = field(init=False)
    written: int = 0

    def __post_init__(self) -> None:
        name = f"rollout-2030-01-01T00-00-00-{self.session}.jsonl"
        self.transcript = self.folder / "sessions" / "2030" / "01" / "01" / name
        meta = {"id": self.session, "cwd": str(self.cwd), "cli_version": "0.171.0"}
        self.add("session_meta", meta | {"originator": "codex_cli", "source": "cli"})

    def event(self, name: str, **more: Any) -> bytes:
        told = {"model": "m", "turn_id": "t1", **more}
        return event(name, self.session, self.transcript, self.cwd, **told)

    def add(self, kind: str, payload: dict[str, Any]) -> None:
        row = {"timestamp": TIME.format(self.written), "ordinal": self.written}
        self.written += 1
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a") as file:
            file.write(json.dumps(row | {"type": kind, "payload": payload}) + "\n")

    def asks(self, text: str) -> None:
        self._says("user", "input_text", text)
        self.add("event_msg", {"type": "user_message", "message": text})

    def answers(self, text: str) -> None:
        self._says("assistant", "output_text", text)

    def _says(self, role: str, kind: str, text: str) -> None:
        content = [{"type": kind, "text": text}]
        self.add("response_item", {"type": "message", "role": role, "content": content})

    def calls(self, call: str) -> None:
        self.add(
            "response_item",
            {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": call},
        )

    def gets(self, call: str) -> None:
        told = {"type": "function_call_output", "call_id": call, "output": "ok"}
        self.add("response_item", told)
