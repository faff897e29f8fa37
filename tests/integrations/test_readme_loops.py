"""The agent loops that the README shows, run as they stand there with models that are made up."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

import snapstore

README = Path(__file__).parents[2] / "README.md"
SECTION = "## Agent frameworks"

NEEDS = {"plain": "snapstore", "langgraph": "langgraph.graph", "agents": "agents",
         "pydantic": "pydantic_ai.conversation_store"}  # fmt: skip
"""The module that each loop needs, by the session that it fills."""


def loops() -> list[str]:
    section = README.read_text().partition(SECTION)[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def models(session: str) -> dict[str, Any]:
    """What the loops take for given."""
    given: dict[str, Any] = {
        "ask_model": lambda messages: f"an answer to {messages[-1]['content']!r}"
    }
    if session == "agents":
        given["agents_model"] = agents_model()
    if session == "pydantic":
        from pydantic_ai.models.test import TestModel

        given["pydantic_model"] = TestModel()
    return given


def agents_model() -> Any:
    from agents import Model, ModelResponse, Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    class Echo(Model):
        async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
            text = ResponseOutputText(text="fine", type="output_text", annotations=[], logprobs=[])
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse([message], Usage(), None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    return Echo()


@pytest.mark.parametrize("session", NEEDS)
def test_the_loop_runs_and_its_turns_are_there(
    session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(NEEDS[session], reason=f"{NEEDS[session]} is not installed")
    loop = loops()[list(NEEDS).index(session)]
    said = [line for line in loop.splitlines() if line and not line.startswith(("import", "from"))]
    assert len(said) <= 10
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    names = models(session)
    exec(compile(loop, f"README: {session}", "exec"), names)
    if "talk" in names:
        asyncio.run(names["talk"]())
    with snapstore.open(tmp_path / "agents") as store:
        shown = [message["role"] for message in store.session(session).history]
        assert shown[:2] == ["user", "assistant"]
        assert store.verify() == []
