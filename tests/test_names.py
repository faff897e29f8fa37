"""Which texts may name a session, and the names that are made of texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.errors import InvalidInput
from snapstore.names import MAX_LENGTH, SLUG_LENGTH, slug, taken_beside, valid_name


@pytest.mark.parametrize(
    "name",
    ["a", "fix-login", "release/1.0+rc_2", "naïve", "数据/分析", "हिन्दी", "7", "a" * MAX_LENGTH],
)
def test_letters_digits_and_inner_punctuation_make_a_name(name: str) -> None:
    valid_name(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"),
        ("a" * (MAX_LENGTH + 1), "201 characters"),
        ("two words", "' '"),
        ("line\nbreak", "'\\n'"),
        ("nul\0", "'\\x00'"),
        ("zero\u200bwidth", "'\\u200b'"),
        ("half\ud83d", "'\\ud83d'"),
        ("a@2", "'@'"),
        ("a~1", "'~'"),
        ("a:b", "':'"),
        ("-rf", "begins"),
        (".hidden", "begins"),
        ("/etc", "begins"),
        ("a..b", "'..'"),
        ("a//b", "empty part"),
        ("a/", "empty part"),
        ("cafe\u0301", "normal form"),
    ],
)
def test_what_is_not_a_name_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name a session") as caught:
        valid_name(name)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Fix the login!", "fix-the-login"),
        ("  what's in /usr/lib?\n", "what-s-in-usr-lib"),
        ("Cafe\u0301 au lait", "café-au-lait"),
        ("__init__.py", "init-py"),
        ("🎉 …", ""),
        ("", ""),
    ],
)
def test_a_slug_is_the_words_of_a_text(text: str, name: str) -> None:
    assert slug(text) == name


def test_a_long_slug_ends_with_a_whole_word() -> None:
    assert slug("lorem ipsum dolor " * 9) == "lorem-ipsum-dolor-lorem-ipsum-dolor-lorem-ipsum"


@given(st.text())
@settings(deadline=None)
def test_every_slug_is_a_valid_name_or_empty(text: str) -> None:
    name = slug(text)
    assert len(name) <= SLUG_LENGTH
    if name:
        valid_name(name)


@pytest.mark.parametrize(
    ("name", "beside"),
    [("a", []), ("a+1", ["a"]), ("a+1+20", ["a+1", "a"]), ("a+b", []), ("a+0", []), ("1+1", ["1"])],
)
def test_a_numbered_name_tells_what_it_was_kept_beside(name: str, beside: list[str]) -> None:
    assert list(taken_beside(name)) == beside
