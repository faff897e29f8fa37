"""Keys that open nothing, put together here so that no scanner takes this file for a leak."""

from __future__ import annotations

import random
import string

LETTERS = string.ascii_letters + string.digits


def made_up(length: int, alphabet: str = LETTERS, seed: int = 9) -> str:
    """Random characters, the same every time, at least one digit and one letter among them."""
    found = "".join(random.Random(seed).choices(alphabet, k=length - 2))
    return found + next(c for c in "aA" if c in alphabet + "a") + "7"


HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
ANTHROPIC = "sk-ant-api03-" + made_up(93)

KEYS = {
    "anthropic-key": ANTHROPIC,
    "openrouter-key": "sk-or-v1-" + made_up(64, HEX),
    "openai-key": "sk-proj-" + made_up(48),
    "stripe-key": "sk_live_" + made_up(24),
    "github-token": "ghp_" + made_up(36),
    "gitlab-token": "glpat-" + made_up(20),
    "aws-access-key": "AKIA" + made_up(16, UPPER).upper(),
    "slack-token": "xoxb-" + "1234567890-" + made_up(24),
    "slack-webhook": "T0" + made_up(9, UPPER) + "/B0" + made_up(9, UPPER) + "/" + made_up(24),
    "google-api-key": "AIza" + made_up(35),
    "google-oauth-token": "ya29." + made_up(60),
    "npm-token": "npm_" + made_up(36),
    "pypi-token": "pypi-AgEI" + made_up(80),
    "huggingface-token": "hf_" + made_up(34),
    "groq-key": "gsk_" + made_up(52),
    "replicate-token": "r8_" + made_up(37),
    "perplexity-key": "pplx-" + made_up(48),
    "xai-key": "xai-" + made_up(80),
    "sendgrid-key": "SG." + made_up(22) + "." + made_up(43),
    "digitalocean-token": "dop_v1_" + made_up(64, HEX),
    "databricks-token": "dapi" + made_up(32, HEX),
    "shopify-token": "shpat_" + made_up(32, HEX),
    "linear-key": "lin_api_" + made_up(40),
    "telegram-token": "123456789:AA" + made_up(33),
    "age-key": "AGE-SECRET-KEY-1" + made_up(58, UPPER).upper(),
    "jwt": "eyJ" + made_up(20) + ".eyJ" + made_up(60) + "." + made_up(43),
    "private-key": "-----BEGIN RSA PRIVATE " + "KEY-----\n" + made_up(64) + "\n" + made_up(64)
    + "\n-----END RSA PRIVATE " + "KEY-----",
    "password-in-address": "tR0ub4dor",
    "bearer-token": made_up(40),
    "secret-assignment": made_up(32),
    "password-assignment": "tR0ub4dor&3",
}  # fmt: skip
"""By rule: something that it must find."""

AROUND = {
    "slack-webhook": "https://hooks.slack.com/services/{}",
    "password-in-address": "postgres://app:{}@db.internal:5432/app",
    "bearer-token": "Authorization: Bearer {}",
    "secret-assignment": 'client_secret = "{}"',
    "password-assignment": "DB_PASSWORD={}",
}
"""By rule: the text that must stand around it, where it is not known by its own shape."""


def in_text(rule: str) -> str:
    """The key of a rule as it stands in a text."""
    return AROUND.get(rule, "take {} and go").format(KEYS[rule])
