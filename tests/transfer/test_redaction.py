"""Transcripts without their secrets: the rest is as it was, to the byte."""

from __future__ import annotations

import json

import pytest

from snapstore.transfer.redaction import without_secrets

KEY = "ghp_" + "0a1B" * 9


def line(text: str, **how: bool) -> bytes:
    return json.dumps({"type": "user", "message": {"content": text}}, **how).encode() + b"\n"


@pytest.mark.parametrize("before", [b"", b"\n", b"\xff\n", b"[" * 20_000 + b"\n", line("clean")])
def test_only_rows_with_a_secret_are_changed(before: bytes) -> None:
    data = before + line("nothing") + line(f"my key: {KEY}") + line("\u00e9") + b'{"torn'
    cleaned = without_secrets(data)
    start, end = before + line("nothing"), b"\n" + line("\u00e9") + b'{"torn'
    assert cleaned.startswith(start) and cleaned.endswith(end)
    changed = json.loads(cleaned[len(start) : -len(end)])
    assert changed["message"]["content"].startswith("my key: [redacted:")


def test_a_secret_in_bytes_that_are_no_row_goes_too() -> None:
    assert KEY.encode() not in without_secrets(line("x") + b'{"torn": "' + KEY.encode())


def test_a_lone_surrogate_beside_a_secret_stays() -> None:
    cleaned = without_secrets(line(f"\ud800 {KEY}"))
    assert json.loads(cleaned)["message"]["content"].startswith("\ud800 [redacted:")


def test_without_secrets_nothing_changes_and_again_is_the_same() -> None:
    cleaned = without_secrets(line("a") + line(KEY))
    assert without_secrets(cleaned) == cleaned
    assert without_secrets(line("a")) == line("a")
