"""The document: the page's own source in one file, which lets nothing but itself run.

The script and the style are named by their hashes in a Content-Security-Policy, and trusted types
forbid the script to make markup of text. Values come as base64 in data blocks, which no browser
runs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

SCRIPTS = (
    "data", "dom", "diff", "graph", "turn", "history", "compare", "grids", "storage", "search",
    "app",
)  # fmt: skip
"""The parts of the script, in the order in which they are joined."""

_STYLE, _DATA = "<!--style-->", "<!--data-->"


@cache
def _source(name: str) -> str:
    return (files(__package__) / "page" / name).read_text("utf-8")


@cache
def script() -> str:
    """The whole script: one scope, strict."""
    parts = "\n".join(_source(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();\n'


@cache
def policy(*, live: bool = False) -> str:
    """The Content-Security-Policy of the page; live lets it ask its own server for more."""
    allowed = {
        "default-src": "'none'",
        "script-src": _hash(script()),
        "style-src": _hash(_source("app.css")),
        "img-src": "data:",
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return "; ".join(f"{name} {what}" for name, what in allowed.items())


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def page(
    title: str, data: Iterable[tuple[str, bytes]], *, live: bool = False, start: str = ""
) -> Iterator[bytes]:
    """The page in pieces, as its data comes: pairs of a name and of compressed bytes.

    A page without an ``index`` in its data asks the server that it came from. ``start`` is the view
    that it opens with, as it stands behind # in its address.
    """
    text = _source("index.html").replace("{{title}}", escape(title))
    text = text.replace("{{start}}", escape(start))
    text = text.replace("{{policy}}", escape(policy(live=live)))
    top, _, rest = text.partition(_STYLE)
    body, _, end = rest.partition(_DATA)
    yield f"{top}<style>{_source('app.css')}</style>{body}".encode()
    for name, content in data:
        yield f'<script type="text/plain" id="{name}">'.encode()
        yield b64encode(content)
        yield b"</script>\n"
    yield f"<script>{script()}</script>{end}".encode()
