"""Secrets taken out of texts and values, and nothing else changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_keys import ANTHROPIC, KEYS, in_text

from snapstore.maintenance.redact import (
    change_strings,
    redact,
    redact_bytes,
    redact_text,
    signed_thinking,
)
from snapstore.maintenance.secrets import find

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize("rule", KEYS)
def test_a_mark_that_names_the_rule_takes_its_place(rule: str) -> None:
    assert redact_text(in_text(rule)) == in_text(rule).replace(KEYS[rule], f"[redacted:{rule}]")


@pytest.mark.parametrize("rule", KEYS)
def test_what_was_redacted_holds_no_secret_any_more(rule: str) -> None:
    once = redact_text(in_text(rule))
    assert find(once.encode()) == []
    assert redact_text(once) == once


@pytest.mark.parametrize("rule", KEYS)
def test_a_transcript_stays_json(rule: str) -> None:
    row = json.dumps({"text": in_text(rule), "more": json.dumps({"arguments": in_text(rule)})})
    redacted = redact_bytes(row.encode())
    assert json.loads(json.loads(redacted)["more"]).keys() == {"arguments"}
    assert json.dumps(KEYS[rule])[1:-1].encode() not in redacted


def test_binary_content_is_left_alone() -> None:
    content = b"\x7fELF\0" + ANTHROPIC.encode()
    assert redact_bytes(content) is content


def test_keys_order_and_structure_stay() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": f"a {ANTHROPIC}"}, 1, None]}
    assert redact(message) == {
        "role": "user",
        "content": [{"type": "text", "text": "a [redacted:anthropic-key]"}, 1, None],
    }
    assert list(redact({"b": 1, "a": 2})) == ["b", "a"]


def test_a_password_is_known_by_its_key() -> None:
    assert redact({"password": "tR0ub4dor&3", "title": "tR0ub4dor&3"}) == {
        "password": "[redacted:password-assignment]",
        "title": "tR0ub4dor&3",
    }


def test_lone_surrogates_and_bytes_pass() -> None:
    assert redact(f"\ud83d {ANTHROPIC}") == "\ud83d [redacted:anthropic-key]"
    assert redact({"raw": ANTHROPIC.encode()}) == {"raw": b"[redacted:anthropic-key]"}


def test_nesting_deeper_than_pythons_stack_is_no_obstacle() -> None:
    value: Any = ANTHROPIC
    for _ in range(5000):
        value = [value]
    redacted = redact(value)
    for _ in range(5000):
        (redacted,) = redacted
    assert redacted == "[redacted:anthropic-key]"


@settings(max_examples=100, deadline=None)
@given(json_values)
def test_values_without_secrets_stay_what_they_are(value: Any) -> None:
    assert json.dumps(redact(value)) == json.dumps(value)


def test_keys_of_objects_are_changed_on_request_and_none_is_lost() -> None:
    def shout(name: bytes, text: bytes) -> bytes:
        return text.upper()

    assert change_strings({"a": "x", "A": "y"}, shout) == {"a": "X", "A": "Y"}
    assert change_strings({"a": "x", "A": "y"}, shout, keys=True) == {"A": "X", "A+1": "Y"}


def test_changed_thinking_is_told_for_its_signature_no_longer_fits() -> None:
    def thought(text: str) -> dict[str, Any]:
        block = {"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}
        return {"role": "assistant", "content": [block, {"type": "text", "text": text}]}

    assert signed_thinking(thought(ANTHROPIC), redact(thought(ANTHROPIC)))
    assert not signed_thinking({"content": ANTHROPIC}, redact({"content": ANTHROPIC}))
