"""Claude Code transcripts: the tree, the lines through it, and the history of each line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.formats import claude_code, claude_tree, jsonl
from snapstore.formats.transcript import Line, Session, Transcript

Json = dict[str, Any]


def user(uuid: str, parent: Any, content: Any, **more: Any) -> Json:
    message = {"role": "user", "content": content}
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": message, **more}


def said(uuid: str, parent: str | None, reply: str, *blocks: Json, **more: Any) -> Json:
    message = {"id": reply, "role": "assistant", "model": "m", "content": list(blocks)}
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": message, **more}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(tool: str) -> Json:
    return {"type": "tool_use", "id": tool, "name": "Bash", "input": {}}


def result(uuid: str, parent: str | None, *tools: str, **more: Any) -> Json:
    blocks = [{"type": "tool_result", "tool_use_id": tool, "content": ""} for tool in tools]
    return user(uuid, parent, blocks, **more)


def other(kind: str, uuid: str, parent: str | None, **more: Any) -> Json:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, **more}


def boundary(uuid: str, logical: str | None, **metadata: Any) -> Json:
    more = {"subtype": "compact_boundary", "logicalParentUuid": logical}
    return other("system", uuid, None, **more, compactMetadata=metadata)


def written(rows: Iterable[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def read(*rows: Any, name: str = "") -> Transcript:
    return claude_code.read(jsonl.parse(written(rows)), name)


def session(*rows: Any) -> Session:
    (only,) = read(*rows).sessions
    return only


def brief(message: Json) -> str:
    """A message in a word or two: its text, or the calls or results in it."""
    content = message["content"]
    if isinstance(content, str):
        return content
    parts = (b.get("text") or b.get("id") or b.get("tool_use_id") or b["type"] for b in content)
    return "+".join(parts)


def history(line: Line) -> list[str]:
    return [brief(message) for message in line.history()]


def turns(line: Line) -> list[list[str]]:
    return [[brief(message) for message in turn.messages] for turn in line.turns]


def notes(*rows: Any) -> list[str]:
    return [str(warning) for warning in read(*rows).warnings]


# --- replies and their tools -----------------------------------------------------------------


def test_the_rows_of_a_reply_are_one_message() -> None:
    thinking = {"type": "thinking", "thinking": "hm…", "signature": "c2ln+/="}
    live = session(
        user("u1", None, "go"),
        said("a1", "u1", "m1", thinking, apiBlockIndex=0),
        said("a2", "a1", "m1", text("done"), apiBlockIndex=1),
    ).live
    assert live.history()[1] == {
        "id": "m1",
        "role": "assistant",
        "model": "m",
        "content": [thinking, text("done")],
    }


def test_blocks_stand_in_the_order_of_the_reply_not_of_the_file() -> None:
    live = session(
        user("u1", None, "go"),
        said("a1", "u1", "m1", text("second"), apiBlockIndex=1),
        said("a2", "a1", "m1", text("first"), apiBlockIndex=0),
    ).live
    assert history(live) == ["go", "first+second"]


def test_the_facts_of_a_reply_are_those_of_its_last_row_and_usage_counts_once() -> None:
    first = said("a1", "u1", "m1", text("x"))
    first["message"] |= {"stop_reason": None, "usage": {"output_tokens": 1}}
    last = said("a2", "a1", "m1", text("y"))
    last["message"] |= {"stop_reason": "end_turn", "usage": {"output_tokens": 7}}
    (turn,) = session(user("u1", None, "go"), first, last).live.turns
    assert turn.messages[1]["stop_reason"] == "end_turn"
    assert turn.meta == {"model": "m", "usage": {"output_tokens": 7}}


PARALLEL = (
    user("u1", None, "count files"),
    said("a1", "u1", "m1", call("t1"), apiBlockIndex=0),
    said("a2", "a1", "m1", call("t2"), apiBlockIndex=1),
    result("r1", "a1", "t1", sourceToolAssistantUUID="a1"),
    result("r2", "a2", "t2", sourceToolAssistantUUID="a2"),
    said("a3", "r2", "m2", text("both")),
)


def test_results_of_parallel_calls_are_kept_beside_the_parent_path() -> None:
    whole = session(*PARALLEL)
    assert history(whole.live) == ["count files", "t1+t2", "t1", "t2", "both"]
    assert whole.branches == ()


def test_calls_beside_the_parent_path_are_kept_with_their_results() -> None:
    whole = session(*PARALLEL[:5], said("a3", "r1", "m2", text("both")))
    assert sorted(history(whole.live)[2:4]) == ["t1", "t2"]
    assert history(whole.live)[1] == "t1+t2"
    assert whole.branches == ()


def test_results_behind_other_rows_are_found() -> None:
    rows = list(PARALLEL)
    rows[3] = result("r1", "p1", "t1")
    rows.insert(3, other("progress", "p1", "a1"))
    assert history(session(*rows).live) == ["count files", "t1+t2", "t1", "t2", "both"]


def test_a_second_answer_to_the_same_call_is_a_branch_not_a_second_result() -> None:
    whole = session(
        user("u1", None, "go"),
        said("a1", "u1", "m1", call("t1")),
        result("r1", "a1", "t1"),
        result("r2", "a1", "t1"),
        said("a2", "r2", "m2", text("done")),
    )
    assert history(whole.live) == ["go", "t1", "t1", "done"]
    assert [history(branch) for branch in whole.branches] == [["go", "t1", "t1"]]


def test_other_rows_of_the_chain_are_walked_through() -> None:
    live = session(
        other("progress", "p0", None),
        user("u1", "p0", "go"),
        other("attachment", "x1", "u1"),
        other("kind of the future", "x2", "x1"),
        said("a1", "x2", "m1", text("done")),
        other("system", "s1", "a1", subtype="turn_duration"),
    ).live
    assert history(live) == ["go", "done"]


def test_a_reply_without_an_id_is_a_message_of_its_own() -> None:
    first, second = said("a1", "u1", "", text("x")), said("a2", "a1", "", text("y"))
    del first["message"]["id"], second["message"]["id"]
    assert history(session(user("u1", None, "go"), first, second).live) == ["go", "x", "y"]


def test_an_id_that_comes_again_after_a_prompt_is_another_reply() -> None:
    live = session(
        user("u1", None, "p1"),
        said("a1", "u1", "m", text("x")),
        user("u2", "a1", "p2"),
        said("a2", "u2", "m", text("y")),
    ).live
    assert history(live) == ["p1", "x", "p2", "y"]


# --- turns -----------------------------------------------------------------------------------


def test_a_turn_starts_at_every_prompt_and_is_called_by_its_first_line() -> None:
    live = session(
        user("u1", None, "first\nprompt", timestamp="1970-01-01T00:00:01Z"),
        said("a1", "u1", "m1", call("t1"), timestamp="1970-01-01T00:00:02Z"),
        result("r1", "a1", "t1", timestamp="1970-01-01T00:00:03Z"),
        user("u2", "r1", "injected", isMeta=True),
        user("u3", "u2", [text("second")]),
    ).live
    assert turns(live) == [["first\nprompt", "t1", "t1"], ["injected", "second"]]
    assert [(turn.label, turn.time) for turn in live.turns] == [
        ("first", 3_000_000),
        ("second", None),
    ]


def test_a_transcript_without_messages_is_one_empty_turn() -> None:
    whole = read({"type": "summary", "summary": "Old work", "leafUuid": "gone"}, name="d/abc.jsonl")
    assert turns(whole.sessions[0].live) == [[]]
    assert (whole.sessions[0].live.name, whole.rows) == ("abc", 1)


# --- branches --------------------------------------------------------------------------------


def test_a_rewind_makes_the_abandoned_prompt_a_branch() -> None:
    whole = session(
        user("u1", None, "start"),
        said("a1", "u1", "m1", text("ready")),
        user("u2", "a1", "old way"),
        said("a2", "u2", "m2", text("old answer")),
        user("u3", "a1", "new way"),
        said("a3", "u3", "m3", text("new answer")),
    )
    assert turns(whole.live) == [["start", "ready"], ["new way", "new answer"]]
    (branch,) = whole.branches
    assert branch.name == "branch-1"
    assert turns(branch) == [["start", "ready"], ["old way", "old answer"]]


def test_a_branch_has_the_very_turns_of_the_live_line_up_to_where_they_part() -> None:
    trunk = [user(f"u{n}", f"u{n - 1}" if n else None, f"p{n}") for n in range(5)]
    whole = session(*trunk, user("old", "u4", "old"), user("new", "u4", "new"))
    (branch,) = whole.branches
    assert turns(branch)[:5] == turns(whole.live)[:5]
    assert all(a is b for a, b in zip(branch.turns[:3], whole.live.turns[:3], strict=True))


def test_branches_are_numbered_in_the_order_they_were_left() -> None:
    first = [user("u1", None, "p1"), user("u2", "u1", "p2"), user("u3", "u2", "p3")]
    rewound = [*first, user("u4", "u2", "p4"), user("u5", "u1", "p5"), user("u6", None, "p6")]
    whole = session(*rewound)
    assert history(whole.live) == ["p6"]
    assert [history(branch) for branch in whole.branches] == [
        ["p1", "p2", "p3"],
        ["p1", "p2", "p4"],
        ["p1", "p5"],
    ]


def test_a_later_null_root_starts_a_line_of_its_own() -> None:
    whole = session(
        other("progress", "p1", None),
        user("u1", "p1", "before"),
        other("progress", "p2", None),
        user("u2", "p2", "after"),
    )
    assert history(whole.live) == ["after"]
    assert [history(branch) for branch in whole.branches] == [["before"]]


def test_a_root_without_messages_at_the_end_is_not_the_live_line() -> None:
    whole = session(user("u1", None, "hi"), other("system", "s1", None, subtype="informational"))
    assert history(whole.live) == ["hi"]


def test_sidechains_are_lines_of_their_own() -> None:
    whole = session(
        user("u1", None, "go"),
        said("a1", "u1", "m1", call("t1")),
        user("s1", None, "do a part", isSidechain=True, agentId="x"),
        said("s2", "s1", "m9", text("part done"), isSidechain=True, agentId="x"),
        result("r1", "a1", "t1"),
        user("q1", "r1", "another part", isSidechain=True, agentId="y"),
    )
    assert history(whole.live) == ["go", "t1", "t1"]
    assert [(line.name, history(line)) for line in whole.branches] == [
        ("sidechain-1", ["do a part", "part done"]),
        ("sidechain-2", ["another part"]),
    ]


def test_the_main_line_passes_through_sidechain_rows() -> None:
    live = session(
        user("u1", None, "go"),
        user("s1", "u1", "part", isSidechain=True),
        said("a1", "s1", "m1", text("done")),
    ).live
    assert history(live) == ["go", "done"]


def test_a_file_that_is_one_sidechain_is_read_as_a_conversation() -> None:
    whole = session(
        user("s1", None, "part", isSidechain=True),
        said("s2", "s1", "m1", text("done"), isSidechain=True),
    )
    assert turns(whole.live) == [["part", "done"]]
    assert whole.branches == ()


# --- compaction ------------------------------------------------------------------------------

BEFORE = (
    user("u1", None, "p1"),
    said("a1", "u1", "m1", text("one")),
    user("u2", "a1", "p2"),
    said("a2", "u2", "m2", text("two")),
)
SUMMARY = user("s1", "b1", "summary", isCompactSummary=True)


def test_after_a_compaction_the_history_is_the_summary_and_what_follows() -> None:
    live = session(*BEFORE, boundary("b1", "a2"), SUMMARY, user("u3", "s1", "p3")).live
    assert history(live) == ["summary", "p3"]
    assert turns(live) == [["p1", "one"], ["p2", "two"], ["summary", "p3"]]
    assert [turn.replaces for turn in live.turns] == [False, False, True]


@pytest.mark.parametrize(
    "kept",
    [
        {"preservedMessages": {"anchorUuid": "s1", "uuids": ["u2", "a2"]}},
        {"preservedSegment": {"anchorUuid": "s1", "headUuid": "u2", "tailUuid": "a2"}},
    ],
)
@pytest.mark.parametrize("parent", ["s1", "a2"])
def test_preserved_messages_stand_after_the_summary(kept: Json, parent: str) -> None:
    whole = session(*BEFORE, boundary("b1", "a2", **kept), SUMMARY, user("u3", parent, "p3"))
    assert history(whole.live) == ["summary", "p2", "two", "p3"]
    assert len(whole.live.turns) == 3
    assert whole.branches == ()


def test_preserved_messages_anchored_at_the_boundary_stand_before_the_summary() -> None:
    kept = {"preservedMessages": {"anchorUuid": "b1", "uuids": ["u1", "a1", "lost"]}}
    live = session(*BEFORE, boundary("b1", "a2", **kept), SUMMARY).live
    assert history(live) == ["p1", "one", "summary"]


def test_a_compaction_amid_a_turn_splits_it() -> None:
    live = session(
        *BEFORE, boundary("b1", "a2"), SUMMARY, said("a3", "s1", "m3", text("more"))
    ).live
    assert turns(live) == [["p1", "one"], ["p2", "two"], ["summary", "more"]]
    assert live.turns[2].label == "compacted"


def test_a_summary_whose_boundary_is_lost_still_replaces_the_history() -> None:
    live = session(*BEFORE, SUMMARY, user("u3", "s1", "p3")).live
    assert history(live) == ["summary", "p3"]


def test_a_boundary_that_nothing_follows_changes_nothing() -> None:
    assert history(session(*BEFORE, boundary("b1", "a2")).live) == ["p1", "one", "p2", "two"]


def test_a_boundary_without_a_logical_parent_follows_the_row_before_it() -> None:
    whole = session(*BEFORE, boundary("b1", None), user("u3", "b1", "p3"))
    assert turns(whole.live) == [["p1", "one"], ["p2", "two"], ["p3"]]
    assert history(whole.live) == ["p3"]
    assert whole.branches == ()


# --- damage ----------------------------------------------------------------------------------


def test_a_row_whose_parent_is_lost_goes_on_from_the_row_before_it() -> None:
    rows = [*BEFORE[:1], *BEFORE[2:]]
    assert history(session(*rows).live) == ["p1", "p2", "two"]
    assert notes(*rows) == [
        "line 2: its parent a1 is not in the file; it goes on from the row before it"
    ]


def test_rows_that_share_a_lost_parent_are_branches_of_one_point() -> None:
    whole = session(user("u1", None, "p1"), user("u2", "lost", "p2"), user("u3", "lost", "p3"))
    assert history(whole.live) == ["p1", "p3"]
    assert [history(branch) for branch in whole.branches] == [["p1", "p2"]]


def test_a_transcript_whose_beginning_is_lost_begins_with_what_is_there() -> None:
    rows = BEFORE[2:]
    assert history(session(*rows).live) == ["p2", "two"]
    assert notes(*rows) == ["line 1: its parent a1 is not in the file; it begins a line"]


def test_a_reply_or_a_result_without_a_parent_follows_the_row_before_it() -> None:
    rows = [
        user("u1", None, "go"),
        said("a1", None, "m1", call("t1")),
        result("r1", None, "t1"),
        user("u2", None, "new"),
    ]
    whole = session(*rows)
    assert [history(line) for line in whole.lines()] == [["new"], ["go", "t1", "t1"]]
    assert len(notes(*rows)) == 2


def test_parents_may_come_later_in_the_file() -> None:
    assert history(session(*reversed(BEFORE)).live) == ["p1", "one", "p2", "two"]
    lost_beginning = [*reversed(BEFORE[1:])]
    assert history(session(*lost_beginning).live) == ["one", "p2", "two"]


def test_circles_of_parents_are_cut_and_reported() -> None:
    rows = [user("a", "b", "1"), said("b", "a", "m", text("2")), user("c", "c", "3")]
    assert history(session(*rows).live) == ["1", "2", "3"]
    assert notes(*rows) == [
        "line 1: 2 rows name each other as ancestors; cut here",
        "line 3: it names itself as its parent; it goes on from the row before it",
    ]


def test_a_row_that_is_written_twice_counts_once() -> None:
    assert history(session(*BEFORE, BEFORE[3]).live) == ["p1", "one", "p2", "two"]
    assert notes(*BEFORE, BEFORE[3]) == []


def test_of_rows_with_the_same_uuid_the_first_counts_and_a_difference_is_reported() -> None:
    again = said("a2", "u2", "m2", text("changed"))
    assert history(session(*BEFORE, again).live) == ["p1", "one", "p2", "two"]
    assert notes(*BEFORE, again) == [
        "line 5: uuid a2 again, with another content than in line 4; the first one counts"
    ]


def test_rows_of_any_shape_are_passed_over() -> None:
    odd: list[Any] = [None, 42, [1], {}, {"type": []}, {"uuid": 7, "type": "user"}, {"uuid": "x"}]
    malformed = [user("u9", None, "x") | {"message": None}, user("u8", 5, 5) | {"isMeta": 1}]
    whole = read(*odd, *BEFORE, *malformed[:1], {**malformed[1], "parentUuid": "a2"})
    assert whole.rows == 13
    assert [m["content"] for m in whole.sessions[0].live.history()][-2:] == [[text("two")], 5]


def test_a_message_that_is_bare_text_gets_its_role() -> None:
    row = {"type": "user", "uuid": "u1", "message": "hello"}
    assert session(row).live.history() == ({"role": "user", "content": "hello"},)


# --- names and facts -------------------------------------------------------------------------


def title(kind: str, key: str, value: str, **more: Any) -> Json:
    return {"type": kind, key: value, **more}


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([], "p1"),
        ([title("summary", "summary", "Sum Up", leafUuid="a2")], "sum-up"),
        ([title("summary", "summary", "Of another file", leafUuid="elsewhere")], "p1"),
        ([title("ai-title", "aiTitle", "Made up"), title("ai-title", "aiTitle", "Later")], "later"),
        (
            [title("custom-title", "customTitle", "By hand"), title("ai-title", "aiTitle", "x")],
            "by-hand",
        ),
        ([title("custom-title", "customTitle", "🎉")], "p1"),
    ],
)
def test_a_session_is_called_by_its_title_or_its_first_prompt(rows: list[Json], name: str) -> None:
    assert session(*BEFORE, *rows).live.name == name


def test_a_session_that_nothing_names_is_called_by_its_id_or_its_file() -> None:
    row = said("a1", None, "m1", text("x"))
    assert read({**row, "sessionId": "S-1"}, name="f.jsonl").sessions[0].live.name == "s-1"
    assert read(row, name="dir/f.jsonl").sessions[0].live.name == "f"
    assert read(row).sessions[0].live.name == "session"


def test_a_line_tells_where_and_when_it_was() -> None:
    live = session(
        user("u1", None, "x", sessionId="S", cwd="/a", timestamp="1970-01-01T00:00:01Z"),
        user("u2", "u1", "y", sessionId="T", cwd="/b", gitBranch="main", version="2.1"),
        user("u3", "u2", "z", timestamp="1970-01-01T00:00:03Z"),
    ).live
    assert live.meta == {
        "session_id": "T",
        "cwd": "/b",
        "git_branch": "main",
        "version": "2.1",
        "first_time": 1_000_000,
        "last_time": 3_000_000,
    }
    assert live.start == {"session_id": "S", "cwd": "/a"}


# --- for every transcript --------------------------------------------------------------------


@st.composite
def transcripts(draw: st.DrawFn) -> list[Json]:
    """Rows whose parents are anywhere: before, after, lost, null or in circles."""
    rows: list[Json] = []
    count = draw(st.integers(1, 12))
    for n in range(count):
        parent = draw(st.just(n - 1) | st.none() | st.integers(0, count))
        above = None if parent is None else f"n{parent}"
        aside = {"isSidechain": draw(st.booleans())}
        kind = draw(
            st.sampled_from(["prompt", "meta", "reply", "call", "result", "progress", "boundary"])
        )
        tool = f"t{draw(st.integers(0, 2))}"
        reply = f"m{draw(st.integers(0, 2))}"
        match kind:
            case "prompt" | "meta":
                row = user(f"n{n}", above, f"text {n}", isMeta=kind == "meta", **aside)
            case "reply":
                row = said(f"n{n}", above, reply, text(f"text {n}"), **aside)
            case "call":
                row = said(f"n{n}", above, reply, call(tool), text(f"text {n}"), **aside)
            case "result":
                row = result(f"n{n}", above, tool, **aside)
                row["message"]["content"][0]["content"] = f"text {n}"
            case "progress":
                row = other("progress", f"n{n}", above, **aside)
            case _:
                row = boundary(f"n{n}", above)
        rows.append(row)
    return rows


@given(transcripts())
@settings(deadline=None)
def test_no_message_is_lost_whatever_the_tree(rows: list[Json]) -> None:
    told = json.dumps([turn.messages for line in session(*rows).lines() for turn in line.turns])
    for n, row in enumerate(rows):
        if "message" in row:
            assert f'"text {n}"' in told


@given(transcripts())
@settings(deadline=None)
def test_no_line_holds_a_row_twice(rows: list[Json]) -> None:
    for line in session(*rows).lines():
        told = json.dumps([turn.messages for turn in line.turns])
        assert all(told.count(f'"text {n}"') <= 1 for n in range(len(rows)))


@given(transcripts())
@settings(deadline=None, max_examples=400)
def test_a_branch_is_told_as_if_it_were_alone(rows: list[Json]) -> None:
    """Turns that lines have in common change nothing about what a line says."""
    tree, _ = claude_tree.grow(jsonl.parse(written(rows)).rows)
    found = claude_tree.strands(tree)
    strands = [*filter(None, [found.live]), *found.branches, *found.sidechains]
    lines = [line for line in session(*rows).lines() if line.history()]
    alone = [claude_code._Teller(tree).line(strand, "").turns for strand in strands]
    assert [line.turns for line in lines] == alone


@given(st.integers(1, 30), st.data())
@settings(deadline=None)
def test_turns_stay_as_they_are_when_a_session_goes_on(cut: int, data: st.DataObject) -> None:
    rows: list[Json] = []
    for n in range(31):
        parent = f"n{n - 1}" if n else None
        kind = data.draw(st.sampled_from(["prompt", "reply", "meta"])) if n else "prompt"
        if kind == "reply":
            rows.append(said(f"n{n}", parent, f"m{n}", text("x")))
        else:
            rows.append(user(f"n{n}", parent, "y", isMeta=kind == "meta"))
    early, whole = session(*rows[:cut]).live.turns, session(*rows).live.turns
    assert early[:-1] == whole[: len(early) - 1]


# --- the queue -------------------------------------------------------------------------------


def queue(operation: str, **fields: Any) -> dict[str, Any]:
    return {"type": "queue-operation", "operation": operation, "sessionId": "S", **fields}


def test_a_prompt_that_was_queued_and_never_sent_is_told() -> None:
    rows = [user("u1", None, "go"), queue("enqueue", content="and then this")]
    told = [str(warning) for warning in read(*rows).warnings]
    assert told == [
        "line 2: the prompt 'and then this' was queued and never sent; it is kept, and in no turn"
    ]


@pytest.mark.parametrize("gone", [queue("dequeue"), queue("remove"), queue("popAll")])
def test_a_prompt_that_left_the_queue_is_not(gone: dict[str, Any]) -> None:
    assert read(user("u1", None, "go"), queue("enqueue", content="x"), gone).warnings == ()


def test_nor_is_one_that_became_a_turn() -> None:
    rows = [user("u1", None, "go"), queue("enqueue", content="next"), user("u2", "u1", "next")]
    assert read(*rows).warnings == ()
