"""What is taken for a secret, and what is not."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_keys import AROUND, KEYS, in_text, made_up

from snapstore.maintenance.secrets import ASSIGNMENTS, SHAPES, find, find_given, may_hold

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"


def found_in(text: str) -> list[tuple[str, str]]:
    """The rule of each secret in a text, and the secret."""
    raw = text.encode()
    return [(s.rule, raw[s.start : s.end].decode()) for s in find(raw)]


@pytest.mark.parametrize("rule", KEYS)
def test_each_kind_is_found_in_a_text(rule: str) -> None:
    assert found_in(in_text(rule)) == [(rule, KEYS[rule])]


@pytest.mark.parametrize("rule", KEYS)
def test_each_kind_is_found_in_json_and_in_json_within_json(rule: str) -> None:
    once = json.dumps({"text": in_text(rule)})
    for text in (once, json.dumps({"arguments": once})):
        assert [name for name, _ in found_in(text)] == [rule]


@pytest.mark.parametrize("rule", sorted(KEYS.keys() - AROUND.keys() - {"private-key", "jwt"}))
def test_a_key_is_not_found_in_the_middle_of_a_longer_word(rule: str) -> None:
    assert found_in("abc" + KEYS[rule]) == []


def test_every_rule_has_an_example() -> None:
    assert {rule.name for rule in (*SHAPES, *ASSIGNMENTS)} == KEYS.keys()


@pytest.mark.parametrize("rule", KEYS)
def test_what_holds_a_secret_is_never_passed_over(rule: str) -> None:
    assert may_hold(in_text(rule).encode())


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=" + made_up(32),
        "export OPENAI_API_KEY='" + made_up(40) + "'",
        '"apiKey": "' + made_up(40) + '"',
        "aws_secret_access_key = " + made_up(40),
        "auth-token: " + made_up(24),
        "x-api-key: " + made_up(24),
        "password: correct7horse!battery",
        "PGPASSWORD=s3cr3t-pa55",
        "credentials=" + made_up(30),
        r"{\"access_token\":\"" + made_up(40) + r"\"}",
    ],
)
def test_values_given_to_telling_names_are_found(text: str) -> None:
    assert len(found_in(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "API_KEY=your-api-key-goes-here-12345",
        "API_KEY=${OPENAI_API_KEY}",
        "api_key = os.environ['OPENAI_API_KEY']",
        "api_key=process.env.OPENAI_API_KEY_2024",
        "token = get_access_token_for(user_1234567)",
        "password: str = field(default='')",
        "password: changeme1",
        "password=********",
        "pwd=/home/user/project7",
        "token: 550e8400-e29b-41d4-a716-446655440000",
        "max_tokens: 200000",
        "the secret: never give up, and number 42 is the answer",
        '"nextPageToken": "CAUQAA' + made_up(20) + '"',
        "API_KEY=[redacted:anthropic-key]",
        "API_KEY=[purged]",
        "class sk-folding-cube-animation-wrapper-2",
        "https://example.com/path@2x.png",
        "postgres://user:password@localhost/app",
        "git clone https://github.com/pallets/click.git",
        "-----BEGIN PUBLIC KEY-----",
        "if line.startswith('-----BEGIN RSA PRIVATE KEY-----'):",
        "sha256:" + made_up(64, "0123456789abcdef"),
        "id toolu_" + made_up(24) + " call_" + made_up(24),
        "key = " + made_up(32),
    ],
)
def test_placeholders_code_paths_and_plain_ids_are_not(text: str) -> None:
    assert found_in(text) == []


def test_a_value_is_known_by_the_name_that_it_stands_under() -> None:
    value = b"tR0ub4dor&3"
    assert [s.rule for s in find_given(b"password", value)] == ["password-assignment"]
    assert find_given(b"title", value) == []
    assert find_given(b"password", b"is not set yet") == []


def test_secrets_come_in_their_order_and_none_overlaps_another() -> None:
    text = f"API_KEY={KEYS['anthropic-key']} and {KEYS['github-token']}"
    assert [rule for rule, _ in found_in(text)] == ["anthropic-key", "github-token"]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(sorted(KEYS)), st.binary(max_size=400))
def test_a_key_is_found_whatever_stands_around_it(before: bytes, rule: str, after: bytes) -> None:
    text = before + b"\n" + in_text(rule).encode() + b"\n" + after
    kinds = [text[s.start : s.end].decode("latin-1") for s in find(text)]
    assert any(KEYS[rule] in kind or kind in KEYS[rule] for kind in kinds)


@pytest.mark.parametrize(
    "text",
    [b"a" * 500_000, b"sk-" * 200_000, b"token:" * 100_000, b"-----BEGIN PRIVATE KEY-----" * 20_000,
     b"eyJ" + b"a" * 500_000 + b".eyJ", b"://" * 200_000, b"password=" + b"x " * 250_000,
     b"bearer " * 80_000],
    ids=lambda text: text[:10].decode(),
)  # fmt: skip
def test_no_text_makes_the_search_take_long(text: bytes) -> None:
    start = time.process_time()
    find(text)
    assert time.process_time() - start < 3


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")
def test_transcripts_without_secrets_raise_no_false_alarm() -> None:
    files = sorted(path for path in CORPUS.rglob("*.jsonl") if path.stat().st_size < 300_000)
    assert files
    assert [(path.name, find(path.read_bytes())) for path in files if find(path.read_bytes())] == []
