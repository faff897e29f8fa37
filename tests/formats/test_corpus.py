"""Real transcripts against what was counted in them by other means (``facts.json``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snapstore.formats import Transcript, detect, load, read

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
FACTS: dict[str, dict[str, Any]] = (
    json.loads((CORPUS / "facts.json").read_text()) if (CORPUS / "facts.json").exists() else {}
)
HARNESS = {
    "claude_code": "claude-code",
    "codex": "codex",
    "langgraph_state": "messages",
    "tau_bench": "messages",
    "gemini": "gemini",
}
READABLE = [
    name
    for name, facts in FACTS.items()
    if HARNESS.get(facts["format"], "gemini") != "gemini" and (CORPUS / name).exists()
]
CLAUDE_CODE = [name for name in READABLE if FACTS[name]["format"] == "claude_code"]
BRANCHED = {
    "claude_code/amplifier_with_sidechain.jsonl",
    "claude_code/ccl_dag_compact_after_rewind.jsonl",
    "claude_code/ccl_edge_cases.jsonl",
    "claude_code/ccl_representative_messages.jsonl",
    "claude_code/ccl_session_b.jsonl",
    "claude_code/ccl_sidechain_integrated.jsonl",
    "claude_code/fork_a_child.jsonl",
    "claude_code/rewind_branch.jsonl",
    "claude_code/rewind_small.jsonl",
    "claude_code/simonw_sample.jsonl",
    "claude_code/two_session_ids.jsonl",
}
"""Those whose sessions have more than one line."""
LIKE_CLAUDE_CODE = {"claude_code/obra_medium.jsonl", "derived/dup_keys.jsonl"}
"""Those of another format, or made by hand, whose rows are those of a Claude Code transcript."""
CALLS = {"function_call", "custom_tool_call", "local_shell_call"}

pytestmark = pytest.mark.skipif(not READABLE, reason="the corpus is not beside this checkout")


def read_corpus(name: str) -> Transcript:
    return read((CORPUS / name).read_bytes(), name)


def messages_of(transcript: Transcript) -> Iterator[Any]:
    for session in transcript.sessions:
        for line in session.lines():
            for turn in line.turns:
                yield from turn.messages


def call_ids(message: Any) -> Iterator[str]:
    if not isinstance(message, dict):
        return
    if message.get("type") in CALLS:
        yield message["call_id"]
    content = message.get("content")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield block["id"]
    for call in message.get("tool_calls") or []:
        yield call["id"]


@pytest.mark.parametrize("name", [name for name in FACTS if FACTS[name]["format"] in HARNESS])
def test_the_program_is_told(name: str) -> None:
    assert detect((CORPUS / name).read_bytes(), name) == HARNESS[FACTS[name]["format"]]


@pytest.mark.parametrize("name", [n for n in FACTS if FACTS[n]["format"] not in HARNESS])
def test_what_is_of_no_format_that_is_read_is_taken_for_none(name: str) -> None:
    expected = "claude-code" if name in LIKE_CLAUDE_CODE else None
    assert detect((CORPUS / name).read_bytes(), name) == expected


@pytest.mark.parametrize("name", [name for name in FACTS if "records" in FACTS[name]])
def test_every_record_is_a_row_and_every_damaged_line_a_warning(name: str) -> None:
    rows, facts = load((CORPUS / name).read_bytes()), FACTS[name]
    assert len(rows.rows) == facts["records"]
    damaged = {warning.line for warning in rows.warnings if "JSON number" not in warning.what}
    assert damaged == {*facts.get("bad_lines", ()), *facts.get("torn_lines", ())}


@pytest.mark.parametrize("name", READABLE)
def test_every_tool_call_is_on_some_line(name: str) -> None:
    found = {call for message in messages_of(read_corpus(name)) for call in call_ids(message)}
    assert len(found) == FACTS[name]["tool_use"]


@pytest.mark.parametrize("name", [name for name in READABLE if name not in BRANCHED])
def test_every_prompt_is_a_turn(name: str) -> None:
    """Of sessions without branches, which share turns."""
    prompted = [
        turn
        for session in read_corpus(name).sessions
        for turn in session.live.turns
        if turn.label not in ("", "compacted")
    ]
    assert len(prompted) == FACTS[name]["user_prompts"]


@pytest.mark.parametrize("name", [n for n in READABLE if "messages" in FACTS[n]])
def test_every_plain_message_is_in_a_history(name: str) -> None:
    assert len(list(messages_of(read_corpus(name)))) == FACTS[name]["messages"]


@pytest.mark.parametrize("name", CLAUDE_CODE)
def test_a_history_holds_a_reply_once(name: str) -> None:
    for session in read_corpus(name).sessions:
        for line in session.lines():
            ids = [m["id"] for m in line.history() if isinstance(m.get("id"), str)]
            assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", READABLE)
def test_only_a_file_with_rewinds_restarts_or_side_chains_has_branches(name: str) -> None:
    facts = FACTS[name]
    has = any(session.branches for session in read_corpus(name).sessions)
    assert has == (name in BRANCHED)
    assert not has or facts["prompt_branches"] or facts["sidechain_records"] or facts["roots"] > 1


@pytest.mark.parametrize("family", ["claude_code/growth_a", "codex/growth_c"])
def test_turns_stay_as_they_were_when_a_transcript_grows(family: str) -> None:
    early, later, last = (
        read_corpus(f"{family}_{n}.jsonl").sessions[0].live.turns for n in (1, 2, 3)
    )
    assert later[: len(early) - 1] == early[:-1]
    assert last[: len(later) - 1] == later[:-1]


def test_a_fork_begins_with_the_messages_of_its_parent() -> None:
    parent = read_corpus("claude_code/fork_a_parent.jsonl").sessions[0].live.history()
    child = read_corpus("claude_code/fork_a_child.jsonl").sessions[0]
    assert any(line.history()[:1] == parent[:1] for line in child.lines())


def test_compactions_replace_the_history() -> None:
    live = read_corpus("claude_code/long_3_compactions.jsonl").sessions[0].live
    assert sum(turn.replaces for turn in live.turns) == 3
    assert len(live.history()) < sum(len(turn.messages) for turn in live.turns)
