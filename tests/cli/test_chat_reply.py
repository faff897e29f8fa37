"""What agents print, read as answers: text, messages, JSON Lines, and things that are none."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore_cli.chat.agents import AgentError, Answer, Piece
from snapstore_cli.chat.reply import Reply

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "function": {"name": "f"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "42"}
ITEM = {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"}
SAID = {"role": "assistant", "content": "done"}


def answer(output: bytes, cuts: tuple[int, ...] = ()) -> list[Any]:
    """The messages of an answer that comes in pieces, cut at these places."""
    reply, found = Reply(), Answer()
    places = [0, *sorted(min(cut, len(output)) for cut in cuts), len(output)]
    for start, end in pairwise(places):
        for piece in reply.feed(output[start:end]):
            found.add(piece)
    for piece in reply.end():
        found.add(piece)
    return found.messages()


def lines(*values: Any) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize(
    ("output", "messages"),
    [
        (b"", []),
        (b" \n\n", []),
        (b"hello\n", [said("hello")]),
        (b"two\nlines\n\n", [said("two\nlines")]),
        ("  é\n".encode(), [said("  é")]),
        (b"\xff", [said("\udcff")]),
        (lines(SAID), [SAID]),
        (json.dumps(SAID, indent=2).encode(), [SAID]),
        (json.dumps([CALL, RESULT, SAID]).encode(), [CALL, RESULT, SAID]),
        (lines(CALL, RESULT, ITEM, SAID), [CALL, RESULT, ITEM, SAID]),
        (lines({"content": "hi"}), [said("hi")]),
        (lines({"text": "a"}, {"delta": "b"}), [said("ab")]),
        (lines({"text": "a"}, CALL, RESULT, {"text": "b"}), [said("a"), CALL, RESULT, said("b")]),
        (b'\n\n{"text": "a"}\n\n{"text": "b"}', [said("ab")]),
        # JSON that is no message is what the agent was asked to say.
        (b'{"a": 1}\n', [said('{"a": 1}')]),
        (b'{"a": 1}\n{"b": 2}\n', [said('{"a": 1}\n{"b": 2}')]),
        (b"[1, 2]", [said("[1, 2]")]),
        (b"[]", [said("[]")]),
        (b"{not json", [said("{not json")]),
        (b'"text"', [said('"text"')]),
        (b'{"role": "assistant", "content": NaN}', [said('{"role": "assistant", "content": NaN}')]),
    ],
)  # fmt: skip
def test_an_output_has_the_form_that_it_shows(output: bytes, messages: list[Any]) -> None:
    assert answer(output) == messages


@settings(deadline=None, max_examples=200)
@given(
    output=st.sampled_from(
        [lines(CALL, RESULT, {"text": "é日"}, SAID), "text é\n日\n".encode(),
         json.dumps([CALL, RESULT], indent=1).encode(), b'{"a": 1}\nb\n']
    ),
    cuts=st.lists(st.integers(0, 200), max_size=6).map(tuple),
)  # fmt: skip
def test_it_does_not_matter_how_the_output_is_cut_on_its_way(
    output: bytes, cuts: tuple[int, ...]
) -> None:
    assert answer(output, cuts) == answer(output)


def test_text_and_lines_are_passed_on_as_they_come() -> None:
    reply = Reply()
    assert list(reply.feed(b"Hel")) == ["Hel"] and list(reply.feed(b"lo")) == ["lo"]
    reply = Reply()
    pieces: list[Piece] = list(reply.feed(b'{"text": "a"}\n{"text"'))
    assert pieces == ["a"]
    assert list(reply.feed(b': "b"}\n')) == ["b"]


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (lines({"error": "no credit"}), "no credit"),
        (b'{"error": {"code": 5}}', "code"),
        (lines(SAID) + b"Traceback: boom\n", "line 2 of its answer is no message: 'Traceback"),
        (lines(SAID, {"a": 1}), "line 2"),
    ],
)
def test_an_error_that_is_told_and_lines_that_are_none_are_failures(
    output: bytes, why: str
) -> None:
    with pytest.raises(AgentError, match=why):
        answer(output)


def test_what_is_cut_off_is_marked_and_what_is_whole_is_not() -> None:
    found = Answer()
    for piece in ("I look", CALL, RESULT, "and th"):
        found.add(piece)  # type: ignore[arg-type]
    assert found.messages(cut_off=True) == [
        said("I look"), CALL, RESULT, {**said("and th"), "interrupted": True}
    ]  # fmt: skip
