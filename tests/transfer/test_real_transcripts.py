"""Real transcripts through a store, against what was counted in them by other means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import snapstore
from snapstore import NotATranscript, Snapshot, Store, formats
from snapstore.transfer.imports import Imported, import_transcript
from snapstore.transfer.origins import Origins

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
FACTS: dict[str, dict[str, Any]] = (
    json.loads((CORPUS / "facts.json").read_text()) if (CORPUS / "facts.json").exists() else {}
)
KNOWN = ("claude_code", "codex", "langgraph_state", "tau_bench")
READABLE = sorted(
    name for name, facts in FACTS.items() if facts["format"] in KNOWN and (CORPUS / name).exists()
)
CALLS = {"function_call", "custom_tool_call", "local_shell_call"}

pytestmark = pytest.mark.skipif(not READABLE, reason="the corpus is not beside this checkout")


def read(name: str) -> formats.Transcript:
    return formats.read((CORPUS / name).read_bytes(), Path(name).name)


def import_all(store: Store) -> dict[str, list[Imported]]:
    """Each file under a name of its own, so that no two are taken for the same session."""
    origins = Origins(store.engine)
    return {
        name: import_transcript(store, read(name), name=f"f{number}", source=name, origins=origins)
        for number, name in enumerate(READABLE)
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus") / "store"


@pytest.fixture(scope="module")
def found(place: Path) -> dict[str, list[Imported]]:
    with snapstore.open(place, durable=False) as store:
        return import_all(store)


@pytest.fixture
def store(place: Path, found: dict[str, list[Imported]]) -> Iterator[Store]:
    with snapstore.open(place, create=False, durable=False) as store:
        yield store


def heads(store: Store, imported: Imported) -> Iterator[Snapshot]:
    """The last turns of a session's lines, the live one first."""
    for info in store.sessions():
        if info.name == imported.name or info.name.startswith(imported.name + "/"):
            yield store.snapshot(info.head)


def call_ids(message: Any) -> Iterator[str]:
    if message.get("type") in CALLS:
        yield message["call_id"]
    content = message.get("content")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            yield block["id"]
    for call in message.get("tool_calls") or []:
        yield call["id"]


def test_every_file_becomes_its_sessions(found: dict[str, list[Imported]]) -> None:
    assert len(found) >= 40
    for name, imported in found.items():
        assert all(i.created and i.turns >= 1 for i in imported)
        assert all(i.rows == FACTS[name].get("records", i.rows) for i in imported)
        damaged = {*FACTS[name].get("bad_lines", ()), *FACTS[name].get("torn_lines", ())}
        assert bool(imported[0].warnings) >= bool(damaged)


def test_every_tool_call_is_in_some_turn(store: Store, found: dict[str, list[Imported]]) -> None:
    for name, imported in found.items():
        calls: set[str] = set()
        for session in imported:
            for head in heads(store, session):
                calls.update(_all_calls(store, head))
        assert len(calls) == FACTS[name]["tool_use"], name


def _all_calls(store: Store, head: Snapshot) -> Iterator[str]:
    """The calls in a line's turns, also in those that a compaction took out of its history."""
    here: Snapshot | None = head
    while here is not None:
        for message in here.history[len(here.history) - here.added() :]:
            if isinstance(message, dict):
                yield from call_ids(message)
        here = store.snapshot(here.parent) if here.parent else None


def test_each_turn_holds_what_the_transcript_says(
    store: Store, found: dict[str, list[Imported]]
) -> None:
    for name in ("claude_code/long_3_compactions.jsonl", "codex/large_2302rec_3compact.jsonl"):
        (session,) = read(name).sessions
        history: list[Any] = []
        for number, turn in enumerate(session.live.turns, 1):
            history = list(turn.messages) if turn.replaces else [*history, *turn.messages]
            snapshot = store.resolve(f"{found[name][0].name}@{number}")
            assert snapshot.label == turn.label
            assert list(snapshot.history) == history


def test_importing_again_changes_nothing(place: Path, found: dict[str, list[Imported]]) -> None:
    with snapstore.open(place, create=False, durable=False) as store:
        before = store.sessions(), store.engine.stats()
        again = import_all(store)
        assert not any(imported.created for files in again.values() for imported in files)
        assert (store.sessions(), store.engine.stats()) == before


def test_nothing_is_wrong_with_the_store(store: Store) -> None:
    """Some of the files begin with a tool's result, whose call was in another."""
    assert all(problem.kind == "pair" for problem in store.verify())


@pytest.mark.parametrize("family", ["claude_code/growth_a", "codex/growth_c"])
def test_a_growing_file_is_one_session_with_the_ids_it_would_have_had(family: str) -> None:
    whole, grown = snapstore.open("memory://"), snapstore.open("memory://")
    for n in (1, 2, 3):
        (imported,) = import_transcript(grown, read(f"{family}_{n}.jsonl"))
        assert imported.created
        assert len(grown.sessions()) == 1
    import_transcript(whole, read(f"{family}_3.jsonl"))
    assert [i.head for i in grown.sessions()] == [i.head for i in whole.sessions()]


def test_a_file_of_no_known_program_is_told_apart() -> None:
    for name in ("derived/only_newlines.jsonl", "gemini/g_100.json"):
        with pytest.raises(NotATranscript):
            read(name)
