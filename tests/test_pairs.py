"""Tool pairs: matching, borders and repair, in every shape and with everything that goes wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import InvalidInput
from snapstore.pairs import (
    Call,
    Orphan,
    Pending,
    border_before,
    calls,
    is_border,
    orphans,
    pending,
    repair,
    results,
    validate,
)

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"

Message = dict[str, Any]
Shape = tuple[Callable[..., list[Message]], Callable[..., list[Message]]]


def text(words: str, role: str = "user") -> Message:
    return {"role": role, "content": words}


def tool_use(*ids: str) -> list[Message]:
    blocks = [{"type": "tool_use", "id": i, "name": "Bash", "input": {}} for i in ids]
    return [{"role": "assistant", "content": blocks}]


def tool_result(*ids: str) -> list[Message]:
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": "ok"} for i in ids]
    return [{"role": "user", "content": blocks}]


def chat_call(*ids: str) -> list[Message]:
    entries = [{"id": i, "type": "function", "function": {"name": "f"}} for i in ids]
    return [{"role": "assistant", "content": None, "tool_calls": entries}]


def chat_result(*ids: str) -> list[Message]:
    return [{"role": "tool", "tool_call_id": i, "content": "ok"} for i in ids]


def item_call(*ids: str) -> list[Message]:
    return [{"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"} for i in ids]


def item_result(*ids: str) -> list[Message]:
    return [{"type": "function_call_output", "call_id": i, "output": "ok"} for i in ids]


def chain_call(*ids: str) -> list[Message]:
    return [
        {
            "type": "ai",
            "content": "",
            "tool_calls": [{"name": "f", "args": {}, "id": i} for i in ids],
        }
    ]


def chain_result(*ids: str) -> list[Message]:
    return [{"type": "tool", "content": "ok", "tool_call_id": i} for i in ids]


SHAPES: dict[str, Shape] = {
    "anthropic": (tool_use, tool_result),
    "chat": (chat_call, chat_result),
    "responses": (item_call, item_result),
    "langchain": (chain_call, chain_result),
}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)

CHAT = [text("q"), text("done", "assistant")]
THINKING = {"type": "thinking", "thinking": "hm\u0000\ud83d", "signature": "c2ln"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


# --- any JSON value is a message ---------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
SHAPE_WORDS = st.sampled_from(
    [
        "tool_use",
        "tool_result",
        "x_tool_result",
        "function_call",
        "function_call_output",
        "tool",
        "assistant",
        "function",
        "computer_call",
        "local_shell_call",
        "id",
        "reasoning",
    ]
)
almost_messages = st.dictionaries(
    st.sampled_from(
        [
            "type",
            "role",
            "content",
            "tool_calls",
            "function_call",
            "id",
            "call_id",
            "tool_call_id",
            "tool_use_id",
            "name",
        ]
    ),
    SHAPE_WORDS
    | json_values
    | st.lists(
        st.dictionaries(
            st.sampled_from(["type", "id", "tool_use_id", "name", "function"]),
            SHAPE_WORDS | json_values,
            max_size=4,
        ),
        max_size=3,
    ),
    max_size=6,
)


@settings(deadline=None, max_examples=300)
@given(st.lists(json_values | almost_messages, max_size=6), st.integers(-2, 8))
def test_no_json_value_is_too_odd_to_be_a_message(messages: list[Any], index: int) -> None:
    before = copy.deepcopy(messages)
    assert is_border(messages, border_before(len(messages), messages, index))
    for how in ("drop", "answer"):
        first, tail = repair(messages, how)
        assert pending(messages[:first] + tail) == []
    assert messages == before


# --- who is whose ------------------------------------------------------------------------------


@every_shape
def test_calls_and_results_are_found_in_order(shape: Shape) -> None:
    call, result = shape
    called = [found for message in call("a", "b") for found in calls(message)]
    answered = [found for message in result("a", "b") for found in results(message)]
    assert [found.id for found in called] == answered == ["a", "b"]
    assert all(found.name in ("Bash", "f") for found in called)


@pytest.mark.parametrize("call, result", [
    ({"type": "custom_tool_call", "call_id": "x", "name": "apply_patch", "input": "p"},
     {"type": "custom_tool_call_output", "call_id": "x", "output": "ok"}),
    ({"type": "local_shell_call", "id": "x", "action": {}},
     {"type": "local_shell_call_output", "id": "x", "output": "ok"}),
    ({"type": "local_shell_call", "id": "ls_1", "call_id": "x", "action": {}},
     {"type": "function_call_output", "call_id": "x", "output": "ok"}),
    ({"type": "computer_call", "id": "cu_1", "call_id": "x", "action": {}},
     {"type": "computer_call_output", "call_id": "x", "output": {}}),
    ({"type": "tool_search_call", "call_id": "x", "arguments": {}},
     {"type": "tool_search_output", "call_id": "x", "tools": []}),
    ({"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
     {"role": "function", "name": "f", "content": "ok"}),
])  # fmt: skip
def test_other_kinds_of_call_are_answered_by_their_own_kinds_of_result(
    call: Message, result: Message
) -> None:
    assert len(calls(call)) == len(results(result)) == 1
    assert validate([call, result]) == []
    assert not is_border([call, result], 1)


@pytest.mark.parametrize("call, result", [
    ({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
     {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}),
    ({"type": "mcp_tool_use", "id": "s", "name": "echo", "input": {}},
     {"type": "mcp_tool_result", "tool_use_id": "s", "content": []}),
])  # fmt: skip
def test_a_tool_that_the_server_ran_is_answered_within_the_message(
    call: Message, result: Message
) -> None:
    message = {"role": "assistant", "content": [call, result]}
    assert calls(message) == (Call("s", call["name"]),)
    assert results(message) == ("s",)
    assert validate([message]) == []


def test_hosted_tools_of_the_responses_api_need_no_answer() -> None:
    assert pending([{"type": "web_search_call", "id": "ws_1", "status": "completed"}]) == []


def test_pending_names_call_tool_and_position() -> None:
    history = [text("q"), *tool_use("a", "b"), *tool_result("b")]
    assert pending(history) == [Pending("a", "Bash", 1)]
    assert pending(history[1:], start=1) == [Pending("a", "Bash", 1)]


@every_shape
def test_an_id_that_comes_again_is_a_new_call(shape: Shape) -> None:
    call, result = shape
    once = [*call("a"), *result("a")]
    assert validate(once + once) == []
    assert [p.index for p in pending([*once, *call("a")])] == [2]
    # The first call was never answered, and the result of the second does not answer it.
    assert [p.index for p in pending([*call("a"), *once])] == [0]


def test_a_result_before_its_call_is_an_orphan_and_leaves_the_call_pending() -> None:
    history = [*tool_result("a"), *tool_use("a")]
    assert orphans(history) == [Orphan("a", 0)]
    assert pending(history) == [Pending("a", "Bash", 1)]


def test_validate_lists_every_problem_in_order() -> None:
    history = [*tool_result("o"), *tool_use("a", "b"), *tool_result("a"), *tool_result("a")]
    assert [(p.kind, p.id, p.index) for p in validate(history)] == [
        ("orphan", "o", 0),
        ("pending", "b", 1),
        ("duplicate", "a", 3),
    ]


# --- borders -----------------------------------------------------------------------------------


def model_is_border(history: list[Any], index: int) -> bool:
    """The rule in plain words, event by event, over the whole history."""
    events = [
        (at, kind, number)
        for at, message in enumerate(history)
        for kind, number in [
            *(("call", call.id) for call in calls(message)),
            *(("result", number) for number in results(message)),
        ]
    ]
    answer: dict[int, int] = {}
    for n, (at, kind, number) in enumerate(events):
        if kind == "result":
            earlier = [m for m in range(n) if events[m][1:] == ("call", number)]
            waiting = [m for m in earlier if m not in answer]
            if waiting:
                answer[waiting[-1]] = at
            elif earlier:
                answer[earlier[-1]] = at
    last = len(history)
    while last and results(history[last - 1]):
        last -= 1
    while last and calls(history[last - 1]):
        last -= 1
    for n, (at, kind, _) in enumerate(events):
        if kind == "call" and n not in answer and at >= last:
            answer[n] = len(history)
    return not any(events[n][0] < index <= end for n, end in answer.items())


@st.composite
def histories(draw: st.DrawFn) -> list[Any]:
    """Turns of any shape: parallel calls, lost and late and repeated results, ids used again."""
    history: list[Any] = []
    late: list[Message] = []
    for _ in range(draw(st.integers(0, 6))):
        call, result = draw(st.sampled_from(list(SHAPES.values())))
        ids = draw(st.lists(st.sampled_from("abcde"), min_size=1, max_size=3, unique=True))
        history += [text("q")] * draw(st.integers(0, 2)) + call(*ids)
        for number in draw(st.permutations(ids)):
            fate = draw(st.sampled_from(["now", "now", "now", "now", "late", "lost", "twice"]))
            if fate in ("now", "twice"):
                history += result(number) * (2 if fate == "twice" else 1)
            elif fate == "late":
                late += result(number)
        if draw(st.booleans()):
            history += [*late, text("done", "assistant")]
            late = []
    return history


@settings(deadline=None, max_examples=400)
@given(histories(), st.integers(-1, 45))
def test_the_border_is_the_last_one_before_the_index(history: list[Any], index: int) -> None:
    length = len(history)
    wanted = max(b for b in range(length + 1) if b <= max(index, 0) and model_is_border(history, b))
    assert border_before(length, history, index) == wanted
    assert [is_border(history, b) for b in range(length + 1)] == [
        model_is_border(history, b) for b in range(length + 1)
    ]


@settings(deadline=None, max_examples=200)
@given(histories(), st.lists(st.integers(0, 8), max_size=4))
def test_trimming_makes_no_orphan_however_often(history: list[Any], keeps: list[int]) -> None:
    had = {(orphan.id) for orphan in orphans(history)}
    for keep in keeps:
        left = history[border_before(len(history), history, len(history) - keep) :]
        assert len(left) >= min(keep, len(history))
        assert {orphan.id for orphan in orphans(left)} <= had
        history = [text("summary"), *left]


@every_shape
@pytest.mark.parametrize("keep", range(1, 40))
def test_a_trim_keeps_parallel_calls_whole_and_hardly_more_than_asked(
    shape: Shape, keep: int
) -> None:
    call, result = shape
    whole = [
        message
        for n in range(8)
        for message in [
            text(f"q{n}"), *call(f"t{n}", f"u{n}"), *result(f"t{n}", f"u{n}"), text("", "assistant")
        ]
    ]  # fmt: skip
    left = whole[border_before(len(whole), whole, len(whole) - keep) :]
    assert keep <= len(left) <= keep + 3 or left == whole
    assert validate(left) == []


@every_shape
def test_a_call_in_flight_is_kept_for_its_result_to_come(shape: Shape) -> None:
    call, result = shape
    history = [text("q"), *call("a", "b"), *result("b")]
    left = history[border_before(len(history), history, len(history)) :]
    assert orphans([*left, *result("a")]) == []


def test_a_call_that_was_left_unanswered_long_ago_holds_nothing_back() -> None:
    history = [*tool_use("a"), text("never mind"), *item_call("b"), *item_result("b"), text("ok")]
    assert border_before(len(history), history, 4) == 4
    assert border_before(len(history), history, 1) == 1


def test_an_orphan_holds_nothing_back_but_its_call_far_before_does() -> None:
    middle = [text(str(n)) for n in range(20)]
    assert border_before(21, [*middle, *tool_result("a")], 20) == 20
    assert border_before(22, [*tool_use("a"), *middle, *tool_result("a")], 21) == 0


def test_a_long_history_is_read_only_near_its_end() -> None:
    length = 100_000
    read: set[int] = set()

    def at(index: int) -> Message:
        read.add(index)
        turn, step = divmod(index, 4)
        call, result = tool_use(f"t{turn}", f"u{turn}"), tool_result(f"t{turn}", f"u{turn}")
        return [text("q"), call[0], result[0], text("done", "assistant")][step]

    assert border_before(length, at, length - 42) == length - 43
    assert min(read) >= length - 44


# --- repair ------------------------------------------------------------------------------------


def repaired(history: list[Any], how: str) -> list[Any]:
    first, tail = repair(history, how)  # type: ignore[arg-type]
    return history[:first] + tail


@every_shape
def test_dropping_takes_out_the_pending_call_and_no_more(shape: Shape) -> None:
    call, result = shape
    history = [text("q"), *call("a"), *result("a"), text("then"), *call("b")]
    assert repaired(history, "drop") == history[:-1]
    assert repair(history, "drop") == (4, [])


@every_shape
def test_dropping_one_of_parallel_calls_leaves_the_others(shape: Shape) -> None:
    call, result = shape
    assert repaired([*call("a", "b", "c"), *result("a"), *result("c")], "drop") == [
        *call("a", "c"), *result("a"), *result("c")
    ]  # fmt: skip


def test_dropping_keeps_what_else_the_message_said() -> None:
    said = {"type": "text", "text": "let me see"}
    use = tool_use("a")[0]["content"][0]
    assert repaired(
        [{"role": "assistant", "content": [THINKING, said, use], "id": "m"}], "drop"
    ) == [{"role": "assistant", "content": [THINKING, said], "id": "m"}]
    assert repaired([{**chat_call("a")[0], "content": "let me see"}], "drop") == [
        text("let me see", "assistant")
    ]


def test_dropping_takes_along_thinking_that_led_only_to_the_call() -> None:
    use = tool_use("a")[0]["content"][0]
    said = {"type": "text", "text": "let me see"}
    thought = {"role": "assistant", "content": [THINKING]}
    assert repaired([text("q"), {"role": "assistant", "content": [THINKING, use]}], "drop") == [
        text("q")
    ]
    assert repaired([{"role": "assistant", "content": [said, THINKING, use]}], "drop") == [
        {"role": "assistant", "content": [said]}
    ]
    assert repaired([text("q"), thought, *tool_use("a")], "drop") == [text("q")]
    assert repaired([text("q"), REASONING, *item_call("a", "b"), text("stop")], "drop") == [
        text("q"), text("stop")
    ]  # fmt: skip
    kept = [REASONING, *item_call("a"), *item_call("b"), *item_result("b")]
    assert repaired(kept, "drop") == [REASONING, *item_call("b"), *item_result("b")]


def test_dropping_takes_out_orphans_and_answering_leaves_them() -> None:
    history = [*tool_result("o"), text("q"), *tool_use("a"), *tool_result("a", "p")]
    assert repaired(history, "drop") == [text("q"), *tool_use("a"), *tool_result("a")]
    assert repair(history, "answer") == (len(history), [])


def test_an_answer_joins_the_other_results_of_an_anthropic_reply() -> None:
    more = {"type": "text", "text": "and hurry"}
    history = [
        *tool_use("a", "b"),
        {"role": "user", "content": [*tool_result("b")[0]["content"], more]},
    ]
    _, message = repaired(history, "answer")
    assert repair(history, "answer") == (1, [message])
    assert [b.get("tool_use_id") for b in message["content"]] == ["b", "a", None]
    assert message["content"][1]["is_error"] is True
    assert "interrupted" in message["content"][1]["content"]


def test_answers_to_an_anthropic_reply_are_one_user_message_right_after_it() -> None:
    history = [*tool_use("a"), *tool_use("b"), text("never mind")]
    *reply, answer, after = repaired(history, "answer")
    assert [*reply, after] == history
    assert (answer["role"], results(answer)) == ("user", ("a", "b"))


def test_a_tool_of_the_server_is_answered_within_its_message() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    remote = {"type": "mcp_tool_use", "id": "m", "name": "echo", "input": {}}
    said = {"type": "text", "text": "so"}
    history = [{"role": "assistant", "content": [THINKING, search, remote, said]}]
    (message,) = repaired(history, "answer")
    assert [block["type"] for block in message["content"]] == [
        "thinking", "server_tool_use", "web_search_tool_result",
        "mcp_tool_use", "mcp_tool_result", "text",
    ]  # fmt: skip
    assert message["content"][2]["content"]["type"] == "web_search_tool_result_error"


def test_answers_in_other_shapes_are_messages_after_the_results_that_are_there() -> None:
    chat = [*chat_call("a", "b"), *chat_result("b"), text("q")]
    (call, there, answer, after) = repaired(chat, "answer")
    assert ([call], [there], after) == (chat_call("a", "b"), chat_result("b"), text("q"))
    assert (answer["role"], answer["tool_call_id"]) == ("tool", "a")

    (_, answer, *_) = repaired([*item_call("a", "b"), *item_result("b")], "answer")
    assert (answer["type"], answer["call_id"]) == ("function_call_output", "a")

    (_, answer) = repaired(chain_call("a"), "answer")
    assert (answer["type"], answer["status"], answer["tool_call_id"]) == ("tool", "error", "a")

    legacy = {"role": "assistant", "content": None, "function_call": {"name": "f"}}
    (_, answer) = repaired([legacy], "answer")
    assert (answer["role"], answer["name"]) == ("function", "f")


@settings(deadline=None, max_examples=400)
@given(histories())
def test_repair_leaves_nothing_pending_and_shares_what_it_did_not_touch(history: list[Any]) -> None:
    before = copy.deepcopy(history)
    dropped, answered = repaired(history, "drop"), repaired(history, "answer")
    assert history == before
    assert {problem.kind for problem in validate(dropped)} <= {"duplicate"}
    assert pending(answered) == []
    assert len(orphans(answered)) == len(orphans(history))
    for whole in (dropped, answered):
        assert [m for m in whole if m in CHAT] == [m for m in history if m in CHAT]
    assert repair(dropped, "drop") == (len(dropped), [])
    assert repair(answered, "answer") == (len(answered), [])


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_answered_anthropic_histories_are_what_the_api_asks_for(data: st.DataObject) -> None:
    """Right after each reply with calls stands one user message with exactly their results."""
    history: list[Message] = []
    for turn in range(data.draw(st.integers(1, 4))):
        ids = [f"{turn}{letter}" for letter in "abc"[: data.draw(st.integers(1, 3))]]
        rows = [[THINKING], *(message["content"] for message in tool_use(*ids))]
        if data.draw(st.booleans()):
            rows = [[THINKING, *rows[1]]]
        history += [{"role": "assistant", "content": blocks} for blocks in rows]
        if there := [number for number in ids if data.draw(st.booleans())]:
            history += tool_result(*there)
        history.append(text("q"))
    whole = repaired(history, "answer")
    for index, message in enumerate(whole):
        if wanted := {call.id for call in calls(message)}:
            assert whole[index + 1]["role"] == "user"
            assert set(results(whole[index + 1])) == wanted
    assert [m for m in whole if m["role"] == "assistant"] == [
        m for m in history if m["role"] == "assistant"
    ]


def test_there_are_two_ways_to_repair() -> None:
    with pytest.raises(InvalidInput):
        repair([], "guess")  # type: ignore[arg-type]


# --- real sessions -----------------------------------------------------------------------------


def codex_items(path: Path) -> list[Any]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [row["payload"] for row in rows if row.get("type") == "response_item"]


@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs the corpus of real sessions")
def test_real_sessions_can_be_cut_and_repaired_anywhere() -> None:
    chain = json.loads((CORPUS / "messages/langgraph_deerflow_3823e443.json").read_text("utf-8"))
    flights = json.loads((CORPUS / "messages/taubench_gpt4o_airline.json").read_text("utf-8"))
    for history in (
        chain["values"]["messages"],
        flights[0]["traj"],
        codex_items(CORPUS / "codex/small.jsonl"),
        codex_items(CORPUS / "codex/growth_c_2.jsonl"),
    ):
        assert sum(len(calls(message)) for message in history) > 0
        lost = {orphan.id for orphan in orphans(history)}
        for index in range(0, len(history), 3):
            tail = history[border_before(len(history), history, index) :]
            assert {orphan.id for orphan in orphans(tail)} <= lost
        assert pending(repaired(history, "answer")) == []
