"""Codex rollouts: response items as a history, events as the borders of its turns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from snapstore.formats import codex, jsonl
from snapstore.formats.transcript import Line, Session, Transcript

Json = dict[str, Any]


def row(kind: str, payload: Json, **more: Any) -> Json:
    return {"timestamp": "1970-01-01T00:00:01Z", "type": kind, "payload": payload, **more}


def item(role: str, words: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": words}]
    return row("response_item", {"type": "message", "role": role, "content": content})


def event(kind: str, **fields: Any) -> Json:
    return row("event_msg", {"type": kind, **fields})


def asked(words: str) -> Json:
    return event("user_message", message=words)


META = row("session_meta", {"id": "T-1", "cwd": "/w", "cli_version": "0.1", "git": {"branch": "b"}})


def read(*rows: Any, name: str = "") -> Transcript:
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return codex.read(jsonl.parse(data), name)


def session(*rows: Any) -> Session:
    (only,) = read(*rows).sessions
    return only


def brief(message: Json) -> str:
    is_message = message["type"] == "message"
    return str(message["content"][0]["text"] if is_message else message["type"])


def turns(line: Line) -> list[list[str]]:
    return [[brief(message) for message in turn.messages] for turn in line.turns]


def history(line: Line) -> list[str]:
    return [brief(message) for message in line.history()]


def test_response_items_are_the_history_as_they_stand() -> None:
    call = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c", "new": [1.0]}
    live = session(META, item("user", "go"), row("response_item", call)).live
    assert live.history()[1] == call


def test_a_turn_starts_at_each_prompt() -> None:
    live = session(
        META,
        item("user", "one\nmore"),
        asked("one\nmore"),
        item("assistant", "a1"),
        item("user", "two"),
        asked("two"),
        item("assistant", "a2"),
    ).live
    assert turns(live) == [["one\nmore", "a1"], ["two", "a2"]]
    assert [turn.label for turn in live.turns] == ["one", "two"]


@pytest.mark.parametrize(
    "injected",
    [
        item("developer", "rules"),
        item("user", "<environment_context>\n  <cwd>/w</cwd>"),
        item("user", "# AGENTS.md instructions for /w"),
    ],
)
def test_what_the_harness_injects_starts_no_turn(injected: Json) -> None:
    live = session(META, injected, item("user", "go"), injected, item("assistant", "a")).live
    assert len(live.turns) == 1
    assert len(live.history()) == 4


def test_a_prompt_that_looks_injected_is_one_when_an_event_says_so() -> None:
    live = session(
        item("user", "go"),
        item("assistant", "a"),
        item("user", "<b>why?</b>"),
        asked("<b>why?</b>"),
    ).live
    assert turns(live) == [["go", "a"], ["<b>why?</b>"]]


def test_newer_events_name_prompts_too() -> None:
    content = [{"type": "text", "text": "<b>"}]
    completed = event("item_completed", item={"type": "UserMessage", "content": content})
    assert turns(session(item("assistant", "hi"), item("user", "<b>"), completed).live) == [
        ["hi", "<b>"]
    ]
    assert session(item("user", "<b>"), completed).live.turns[0].label == "<b>"


def test_a_prompt_that_only_an_event_tells_of_is_an_empty_turn() -> None:
    live = session(META, asked("lost")).live
    assert [(turn.label, turn.messages) for turn in live.turns] == [("lost", ())]


def test_an_event_that_words_the_prompt_otherwise_starts_no_second_turn() -> None:
    live = session(item("user", "go <image>"), asked("go"), item("assistant", "a")).live
    assert turns(live) == [["go <image>", "a"]]


def test_a_compaction_keeps_what_the_user_said_and_the_summary() -> None:
    live = session(
        item("user", "<environment_context>"),
        item("user", "one"),
        item("assistant", "a1"),
        row("compacted", {"message": "what happened"}),
        item("user", "two"),
    ).live
    assert history(live) == ["one", "what happened", "two"]
    assert turns(live)[0] == ["<environment_context>", "one", "a1"]
    assert [turn.replaces for turn in live.turns] == [False, True]


def test_a_compaction_that_holds_the_new_history_is_taken_at_its_word() -> None:
    kept = [item("user", "one")["payload"], {"type": "compaction"}]
    compacted = row("compacted", {"message": "", "replacement_history": kept})
    live = session(item("user", "one"), item("assistant", "a1"), compacted, item("assistant", "a2"))
    assert history(live.live) == ["one", "compaction", "a2"]
    assert [turn.label for turn in live.live.turns] == ["one", "compacted"]


def test_turns_that_were_rolled_back_are_a_branch() -> None:
    whole = session(
        item("user", "one"),
        item("assistant", "a1"),
        item("user", "two"),
        item("assistant", "a2"),
        event("thread_rolled_back", num_turns=1),
        item("user", "three"),
    )
    assert turns(whole.live) == [["one", "a1"], ["three"]]
    assert [(line.name, turns(line)) for line in whole.branches] == [
        ("branch-1", [["one", "a1"], ["two", "a2"]])
    ]


def test_rolling_back_further_adds_no_branch_that_holds_nothing_new() -> None:
    back = event("thread_rolled_back", num_turns=1)
    whole = session(item("user", "one"), item("user", "two"), back, back, item("user", "three"))
    assert turns(whole.live) == [["three"]]
    assert [turns(line) for line in whole.branches] == [[["one"], ["two"]]]


def test_the_line_tells_where_and_with_what_it_ran() -> None:
    context = row("turn_context", {"model": "m", "cwd": "/x"})
    live = session(META, item("user", "go"), context, item("assistant", "a")).live
    assert live.name == "go"
    assert live.turns[0].meta == {"model": "m"}
    assert live.meta == {
        "session_id": "T-1",
        "cwd": "/x",
        "version": "0.1",
        "git_branch": "b",
        "model": "m",
        "first_time": 1_000_000,
        "last_time": 1_000_000,
    }
    assert live.start == {"session_id": "T-1", "cwd": "/w", "version": "0.1", "git_branch": "b"}


def test_what_is_told_later_does_not_count_as_known_from_the_start() -> None:
    assert session(item("user", "go"), META).live.start == {}


def test_the_model_of_the_next_turn_leaves_the_turn_before_it_alone() -> None:
    live = session(
        row("turn_context", {"model": "old"}),
        item("user", "one"),
        item("assistant", "a1"),
        row("turn_context", {"model": "new"}),
        item("user", "two"),
        item("assistant", "a2"),
    ).live
    assert [turn.meta["model"] for turn in live.turns] == ["old", "new"]


def test_the_file_name_tells_the_id_when_the_first_row_is_lost() -> None:
    name = "rollout-2030-01-01T00-00-00-019ed50c-2fb3-7002-a384-360bea6e7f04.jsonl"
    live = read(item("assistant", "a"), name=name).sessions[0].live
    assert live.meta["session_id"] == "019ed50c-2fb3-7002-a384-360bea6e7f04"
    assert live.name == "019ed50c-2fb3-7002-a384-360bea6e7f04"


def test_ordinals_that_do_not_follow_are_reported_and_nothing_is_lost() -> None:
    rows = [item("user", "one"), item("assistant", "a1"), item("assistant", "a2"), asked("x")]
    numbered = [{**r, "ordinal": n} for r, n in zip(rows, (1, 3, 3), strict=False)]
    whole = read(*numbered, rows[3])
    assert history(whole.sessions[0].live)[:3] == ["one", "a1", "a2"]
    assert [str(warning) for warning in whole.warnings] == [
        "line 2: ordinal 3 follows 1; read in the order of lines",
        "line 3: ordinal 3 follows 3; read in the order of lines",
    ]


def test_a_thread_that_goes_on_from_another_file_says_so() -> None:
    meta = row("session_meta", {"id": "C", "forked_from_id": "P", "history_base": {}})
    (warning,) = read(meta).warnings
    assert "thread P" in str(warning)


def test_rows_of_any_shape_are_passed_over() -> None:
    odd: list[Any] = [
        None,
        1,
        [],
        {},
        {"type": "response_item", "payload": "text"},
        row("future", {}),
    ]
    odd += [event("user_message"), event("item_completed", item=5), row("compacted", {})]
    whole = read(*odd, item("user", "go"))
    assert (whole.rows, history(whole.sessions[0].live)) == (10, ["go"])
