"""What keys, tokens and passwords look like, so that they are found wherever they were saved.

Most rules know a shape that only the keys of one service have: what fits is a key. One rule knows
assignments (``API_KEY=...``, ``"password": "..."``) and asks of the value that it look random and
not like a placeholder, a path or a piece of code.

A rule for a shape names byte strings of which any text that it fits holds one. All of them are
looked for at once, and a pattern runs only where one of its own was found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from typing import NamedTuple


class Secret(NamedTuple):
    """Where in a text something stands that must not be passed on."""

    rule: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret. What it finds is the group ``secret``, or all when there is none."""

    name: str
    anchors: tuple[bytes, ...]
    """Lower-case bytes, of which every text that fits holds one in whatever case."""
    pattern: re.Pattern[bytes]
    holds: Callable[[bytes], bool] | None = None
    """What else must be true of a secret."""

    def search(self, text: bytes, within: bytes) -> list[Secret]:
        """The secrets of this kind; within is the text, or its lower-case twin to match on."""
        group = "secret" if "secret" in self.pattern.groupindex else 0
        found: list[Secret] = []
        for match in self.pattern.finditer(within):
            start, end = match.span(group)
            if self.holds is None or self.holds(text[start:end]):
                found.append(Secret(self.name, start, end))
        return found


# --- what a value must be like ---------------------------------------------------------------

_PLACEHOLDER = re.compile(
    rb"(?i)example|change.?me|placeholder|your|x{4}|\*{3}|\.{3}|dummy|redacted|purged|sample|todo"
    rb"|process\.env|environ|getenv|secrets?\.|config\.|self\.|settings\.|args\.|options\."
)
_UUID = re.compile(rb"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NO_VALUE = re.compile(rb"[/~.$]|[A-Za-z]:[\\/]|[a-z]+://")
_WORDS = re.compile(rb"[A-Za-z]+(?:[_.:-][A-Za-z]+)*[0-9]?")
_RANDOM = 3.3
"""Bits a character from which on a text of 16 characters or more is taken for random."""


def entropy(text: bytes) -> float:
    """Bits a byte, by how often each occurs (Shannon)."""
    total = len(text)
    return -sum(n / total * log2(n / total) for n in Counter(text).values())


def _mixed(text: bytes) -> bool:
    return any(48 <= c <= 57 for c in text) and any(c >= 65 and c != 95 for c in text)


def _random(text: bytes) -> bool:
    return _mixed(text) and entropy(text) >= _RANDOM and not _PLACEHOLDER.search(text)


def _random_word(text: bytes) -> bool:
    """Random, and no words with dashes between them."""
    return _random(text) and any(_mixed(part) and len(part) > 11 for part in text.split(b"-"))


def _given_value(text: bytes) -> bool:
    """Whether what is assigned to a name such as ``api_key`` is a secret."""
    if _PLACEHOLDER.search(text) or _NO_VALUE.match(text) or _WORDS.fullmatch(text):
        return False
    return len(text) >= 16 and _random(text) and not _UUID.fullmatch(text)


def _password(text: bytes) -> bool:
    if _PLACEHOLDER.search(text) or _NO_VALUE.match(text) or _WORDS.fullmatch(text):
        return False
    return len(set(text)) >= 5 and any(c >= 65 for c in text) and not text.isalpha()


def _in_address(text: bytes) -> bool:
    words = (b"pass", b"password", b"passwd", b"pwd", b"secret", b"token", b"user")
    return text.lower() not in words and not _PLACEHOLDER.search(text)


# --- the rules -------------------------------------------------------------------------------


def _rule(
    name: str, anchors: str, pattern: str, holds: Callable[[bytes], bool] | None = None
) -> Rule:
    found = re.compile(pattern.encode())
    return Rule(name, tuple(anchor.encode() for anchor in anchors.split()), found, holds)


def _key(name: str, anchors: str, body: str, holds: Callable[[bytes], bool] | None = None) -> Rule:
    """A rule for a key that stands by itself: no letter or digit before it or after it."""
    return _rule(name, anchors, rf"(?<![A-Za-z0-9_])(?:{body})(?![A-Za-z0-9])", holds)


_BLOCK = r"(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_VALUE = r"""[^\s"'`\\,;<>(){}\[\]]"""
_QUOTE = r"""(?:\\{0,7}["'`])?"""
_GIVEN = rf"[\w.-]{{0,24}}{_QUOTE}\s{{0,4}}(?::=|=>|==?|:)\s{{0,4}}{_QUOTE}"
_OF_WHAT = (
    "access", "account", "api", "auth", "client", "encryption", "master", "private", "secret",
    "service", "signing", "storage",
)  # fmt: skip
_SECRET_KEY = "|".join(f"(?<={what}key)|(?<={what}[_. -]key)" for what in _OF_WHAT)
# The word comes first and what stands before it is looked at from there: a pattern that began with
# all that may stand there would be tried at nearly every letter.
_NAMES = (
    rf"(?:key(?:{_SECRET_KEY})|token(?<!nexttoken)(?<!next[_-]token)(?<!pagetoken)"
    r"(?<!page[_-]token)|secret|credential)"
)
_PASSWORDS = r"(?:pass(?:word|wd|phrase)|pwd)"

SHAPES: tuple[Rule, ...] = (
    _key("anthropic-key", "sk-ant-", r"sk-ant-[\w-]{20,200}"),
    _key("openrouter-key", "sk-or-", r"sk-or-v1-[0-9a-f]{64}"),
    _key("openai-key", "sk-", r"sk-(?!ant-|or-v1-)[\w-]{20,220}", _random_word),
    _key("stripe-key", "sk_ rk_ whsec_", r"(?:[sr]k_(?:live|test)_|whsec_)[A-Za-z0-9]{16,250}"),
    _key("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{36,251}"),
    _key("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{36,251}"),
    _key("gitlab-token", "glpat- gldt- glrt- glptt- glcbt- glsoat-", r"gl[a-z]{2,5}-[\w-]{20,200}"),
    _key("aws-access-key", "akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    _key("slack-token", "xox xapp-", r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,250}", _mixed),
    _rule(
        "slack-webhook",
        "hooks.slack.com",
        r"https://hooks\.slack\.com/(?:services|workflows)/(?P<secret>[\w/+-]{30,120})",
    ),
    _key("google-api-key", "aiza", r"AIza[\w-]{35}"),
    _key("google-oauth-token", "ya29. gocspx-", r"ya29\.[\w-]{30,2000}|GOCSPX-[\w-]{24,40}"),
    _key("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _key("pypi-token", "pypi-ageiC".lower(), r"pypi-AgEI[\w-]{50,500}"),
    _key("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{30,60}", _random),
    _key("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,80}"),
    _key("replicate-token", "r8_", r"r8_[A-Za-z0-9]{37,40}"),
    _key("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{40,64}"),
    _key("xai-key", "xai-", r"xai-[A-Za-z0-9]{60,100}"),
    _key("sendgrid-key", "sg.", r"SG\.[\w-]{18,26}\.[\w-]{36,50}"),
    _key("digitalocean-token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _key("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _key("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _key("linear-key", "lin_api_", r"lin_api_[A-Za-z0-9]{40}"),
    _key("telegram-token", ":aa", r"[0-9]{8,10}:AA[\w-]{33}"),
    _key("age-key", "age-secret-key-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _key("jwt", "eyj", r"eyJ[\w-]{10,4000}\.eyJ[\w-]{10,8000}\.[\w-]{10,2000}"),
    _rule(
        "private-key",
        "private key",
        rf"-----BEGIN {_BLOCK}(?:\\[nr]|\s|[^-]|-(?!----)){{64,16384}}?-----END {_BLOCK}"
        rf"|-----BEGIN {_BLOCK}(?:(?:\\[nr]|\s){{1,4}}[A-Za-z0-9+/=]{{40,76}}){{1,400}}",
    ),
    _rule(
        "password-in-address",
        "://",
        r"://[^\s:/@\"'`<>]{0,64}:(?P<secret>[^\s:/@\"'`<>{}()$\[\]*]{3,128})@[\w.-]",
        _in_address,
    ),
    _rule(
        "bearer-token",
        "bearer basic",
        r"(?i)\b(?:bearer|basic)\s{1,4}(?P<secret>[\w.~+/=-]{16,2000}+)",
        _given_value,
    ),
)
"""Where two fit the same place, the one that stands first here names it."""

ASSIGNMENTS: tuple[Rule, ...] = (
    _rule(
        "secret-assignment",
        "key token secret credential",
        rf"{_NAMES}{_GIVEN}(?P<secret>{_VALUE}{{16,500}}+)(?![(\[])",
        _given_value,
    ),
    _rule(
        "password-assignment",
        "passw passphrase pwd",
        rf"{_PASSWORDS}{_GIVEN}(?P<secret>{_VALUE}{{8,200}}+)(?![(\[])",
        _password,
    ),
)
"""These match on lower-case text, which is quicker than to ignore case."""

_ANCHORS = sorted({anchor for rule in SHAPES for anchor in rule.anchors}, key=len, reverse=True)
_ANY_ANCHOR = re.compile(b"|".join(map(re.escape, _ANCHORS)))
_ANY_NAME = re.compile(b"|".join(anchor for rule in ASSIGNMENTS for anchor in rule.anchors))


def may_hold(text: bytes) -> bool:
    """Whether a text, or what it is the encoding of, can hold a secret; False is certain."""
    lowered = text.lower()
    return bool(_ANY_NAME.search(lowered) or _ANY_ANCHOR.search(lowered))


def find(text: bytes) -> list[Secret]:
    """The secrets in a text, UTF-8, in their order; none overlaps another."""
    lowered = text.lower()
    present = set(_ANY_ANCHOR.findall(lowered))
    found: list[Secret] = []
    for rule in SHAPES:
        if not present.isdisjoint(rule.anchors):
            found += _apart_from(found, rule.search(text, text))
    for rule in ASSIGNMENTS:
        found += _apart_from(found, rule.search(text, lowered))
    return sorted(found, key=lambda secret: secret.start)


def _apart_from(found: list[Secret], more: list[Secret]) -> list[Secret]:
    """Those of more that overlap none of what was found."""
    return [
        secret
        for secret in more
        if not any(secret.start < other.end and other.start < secret.end for other in found)
    ]


def find_given(name: bytes, value: bytes) -> list[Secret]:
    """As find, for a value that stands under a name: ``{"password": "..."}``."""
    found = find(value)
    if found or not _ANY_NAME.search(name.lower()):
        return found
    before = name + b": "
    text = before + value
    return [
        Secret(secret.rule, 0, len(value))
        for rule in ASSIGNMENTS
        for secret in rule.search(text, text.lower())
        if (secret.start, secret.end) == (len(before), len(text))
    ][:1]
