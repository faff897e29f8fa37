"""Which program a file is of."""

from __future__ import annotations

import pytest

from snapstore.errors import InvalidInput
from snapstore.formats import detect, read
from snapstore.formats.jsonl import load

CLAUDE = b'{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"x"}}\n'
CODEX = b'{"type":"session_meta","payload":{"id":"t"}}\n'
GEMINI = b'{"sessionId":"s","projectHash":"p","messages":[{"type":"user","content":"x"}]}\n'


@pytest.mark.parametrize(
    ("data", "harness"),
    [
        (CLAUDE, "claude-code"),
        (b'{"type":"queue-operation","sessionId":"s"}\n', "claude-code"),
        (b'{"type":"summary","summary":"x","leafUuid":"u"}\n', "claude-code"),
        (b'{"type":"file-history-snapshot","messageId":"m","snapshot":{}}\n', "claude-code"),
        (CODEX, "codex"),
        (GEMINI, "gemini"),
        (b'[{"role":"user","content":"x"}]', "messages"),
        (b'{"role":"user","content":"x"}\n{"role":"assistant","content":"y"}\n', "messages"),
        (b'{"messages":[]}\n', "messages"),
        (b'{"values":{"messages":[]},"next":[]}', "messages"),
        (b'[{"traj":[]}]', "messages"),
        (b'[\n {"type": "human",\n  "content": "x"}\n]\n', "messages"),
        (b'{\n "projectHash": "p",\n "messages": []\n}\n', "gemini"),
        (b"", None),
        (b"\n\n", None),
        (b"42\n", None),
        (b'{"type":"x","v":1}\n', None),
        (b"plain text\n", None),
    ],
)
def test_the_content_tells_the_program(data: bytes, harness: str | None) -> None:
    assert detect(data) == harness


@pytest.mark.parametrize("before", [b"{broken\n", b"\0\0\0\n", b'\n42\n[1]\n"x"\n{}\n'])
def test_damaged_and_odd_rows_before_the_first_that_tells_are_passed_over(before: bytes) -> None:
    assert detect(before + CLAUDE) == "claude-code"
    assert detect(before + CODEX) == "codex"


def test_the_name_tells_only_what_the_content_does_not() -> None:
    assert detect(b"{broken", "d/rollout-2030-01-01T00-00-00-x.jsonl") == "codex"
    assert detect(CLAUDE, "rollout-x.jsonl") == "claude-code"


def test_a_file_is_read_by_the_reader_of_its_program() -> None:
    for data, harness in (
        (CLAUDE, "claude-code"),
        (CODEX, "codex"),
        (b'{"messages":[]}', "messages"),
    ):
        assert read(data, "f.jsonl").harness == harness
    assert read(CLAUDE, harness="messages").harness == "messages"
    assert len(load(CLAUDE).rows) == 1


@pytest.mark.parametrize(("data", "said"), [(b"42", "no session format"), (GEMINI, "gemini")])
def test_a_file_that_cannot_be_read_is_refused_with_a_reason(data: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(data, "f.json")
