"""Session names: which are valid, and how a text becomes one.

A name is 1 to 200 characters of Unicode letters and digits (in normal form C, with the marks that
some scripts write their vowels with) and of ``. _ + - /``. Punctuation does not stand first, so
that a name is never taken for an option or a hidden file; there is no ``..`` and no empty part
between slashes, so that a name never reads as a way out of a folder.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import count

from snapstore import arguments
from snapstore.errors import InvalidInput

MAX_LENGTH = 200
"""Most characters in a session name."""

SLUG_LENGTH = 48
"""Most characters in a name that is made from a text."""

PUNCTUATION = frozenset("._+-/")

_NOT_COMPOSED = "it is not in Unicode normal form C"
_NUMBERED = re.compile(r"(.+)\+[1-9][0-9]*")


def valid_name(text: str) -> None:
    """Return when text may name a session; InvalidInput with the reason when it may not."""
    reason = _objection(arguments.text(text, "a name"))
    if reason:
        hint = "use letters, digits and . _ + - /, beginning with a letter or a digit"
        if reason == _NOT_COMPOSED:
            hint = "it looks the same, but write each letter and its marks as one character"
        elif "@" in text or "~" in text:
            hint = f"that is how a turn is named; `snapstore fork {text} NAME` starts one from it"
        raise InvalidInput(f"{text[:MAX_LENGTH]!r} cannot name a session: {reason}", hint=hint)


def slug(text: str) -> str:
    """A valid name made of the words of text, in lower case with ``-`` between them.

    Empty when text holds no letter and no digit. Cut between words where that leaves at least half
    of SLUG_LENGTH.
    """
    lowered = unicodedata.normalize("NFC", text[: 8 * SLUG_LENGTH].lower())
    words = "".join(c if _is_word(c) else " " for c in lowered).split()
    words = [word for word in words if word[0].isalnum()]
    joined = "-".join(words)
    if len(joined) <= SLUG_LENGTH:
        return joined
    border = joined.rfind("-", 0, SLUG_LENGTH + 1)
    return joined[: border if border >= SLUG_LENGTH // 2 else SLUG_LENGTH]


def numbered(name: str) -> Iterator[str]:
    """name+1, name+2, ...: what is called when the name itself is taken."""
    for n in count(1):
        suffix = f"+{n}"
        yield name[: MAX_LENGTH - len(suffix)] + suffix


def taken_beside(name: str) -> Iterator[str]:
    """The names that this one was kept beside: of a+1+2 that is a+1, and then a."""
    while found := _NUMBERED.fullmatch(name):
        name = found[1]
        yield name


def _objection(text: str) -> str:
    if not text:
        return "it is empty"
    if len(text) > MAX_LENGTH:
        return f"it has {len(text)} characters, more than {MAX_LENGTH}"
    strange = next((c for c in text if not _is_word(c) and c not in PUNCTUATION), "")
    if strange:
        return f"it holds {strange!r}"
    if not text[0].isalnum():
        return f"it begins with {text[0]!r}"
    if ".." in text:
        return "it holds '..'"
    if "" in text.split("/"):
        return "it has an empty part between slashes"
    if not unicodedata.is_normalized("NFC", text):
        return _NOT_COMPOSED
    return ""


def _is_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M"
