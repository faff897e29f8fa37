"""The page of a store, served to its owner: on this machine only, read only, and always up to date.

Every address needs the token of this run, and every request must name this server as its host, so
that neither another user of the machine nor a page of the web that had its own name lead here
(DNS rebinding) can read a turn.
"""

from __future__ import annotations

import hmac
import json
import secrets
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import sha256
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from snapstore import SnapstoreError, Store, refs
from snapstore.formats.html import Payload, Redaction, branches, collectable, held, page, policy

HOST = "127.0.0.1"
_CHUNK = "/chunk"


class Timeline:
    """What the page holds, growing with the store. Several threads may ask at once."""

    def __init__(self, store: Store, title: str, redaction: Redaction | None = None) -> None:
        self._store = store
        self._redaction = redaction
        self._mutex = threading.Lock()
        self._collecting = threading.Lock()
        self._collectable: tuple[object, bytes] = None, b""
        self._version = ""
        self._payload = Payload(store, redaction)
        self._chunks: list[bytes] = []
        self._index = b""
        self._purges = 0
        self.page = b"".join(page(title, (), live=True))

    def version(self) -> str:
        """Another text each time that a ref has moved."""
        moves = [
            f"{tip.ref}\0{tip.gen}"
            for prefix in (refs.SESSIONS, refs.TAGS)
            for tip in self._store.engine.tips(prefix)
        ]
        return b64encode(sha256("\n".join(moves).encode()).digest()).decode()

    def prepare(self) -> None:
        """Take in the store while the browser starts."""
        with suppress(SnapstoreError):  # told to who asks for the index
            self.index()

    def index(self) -> bytes:
        """The index of the store as it is now."""
        with self._mutex:
            self._follow()
            return self._index

    def chunk(self, number: int) -> bytes | None:
        """A chunk of values; None when there is none of this number."""
        with self._mutex:
            return self._chunks[number] if number < len(self._chunks) else None

    def _follow(self) -> None:
        version = self.version()
        if version == self._version:
            return
        purges = sum(tip.op == refs.PURGE for tip in self._store.engine.tips())
        if purges != self._purges:  # what was taken out for good must not live on here
            self._purges, self._chunks = purges, []
            self._payload = Payload(self._store, self._redaction)
        shown = branches(self._store)
        self._chunks += self._payload.add(shown.heads)
        self._index = self._payload.index(shown, held(self._store))
        self._version = version

    def collectable(self) -> bytes:
        """What gc would let go of, as JSON; found out anew when anything was written since."""
        with self._collecting:
            state = self.version(), held(self._store)
            if self._collectable[0] != state:
                self._collectable = state, json.dumps(collectable(self._store)).encode()
            return self._collectable[1]


class Server(ThreadingHTTPServer):
    """Serves one timeline until it is shut down."""

    daemon_threads = True

    def __init__(self, timeline: Timeline, port: int = 0) -> None:
        """Listen on this machine; port 0 takes a free one. Raises OSError when it is taken."""
        self.timeline = timeline
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """Where the page is, the token in it."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may call this server."""
        return frozenset({f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"})

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away in the middle of an answer is no matter."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version = "snapstore"
    sys_version = ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        given = parse_qs(asked.query).get("token", [""])[0]
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name")
        elif not hmac.compare_digest(given.encode(), self.server.token.encode()):
            self._refuse(HTTPStatus.FORBIDDEN, "open the address that `snapstore ui` printed")
        else:
            self._answer(asked.path)

    def _answer(self, path: str) -> None:
        timeline = self.server.timeline
        fixed: dict[str, Callable[[], bytes]] = {
            "/": lambda: timeline.page,
            "/index": timeline.index,
            "/version": lambda: timeline.version().encode(),
            "/gc": timeline.collectable,
        }
        number = path.removeprefix(_CHUNK)
        content: bytes | None = None
        if path in fixed:
            content = fixed[path]()
        elif path.startswith(_CHUNK) and number.isascii() and number.isdigit():
            content = timeline.chunk(int(number[:9]))
        if content is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
            return
        kind = "text/html; charset=utf-8" if path == "/" else "application/octet-stream"
        self._send(HTTPStatus.OK, kind, content)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{why}\n".encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in _headers(kind, len(content)):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are nobody's business, and their addresses hold the token."""


def _headers(kind: str, length: int) -> Iterable[tuple[str, str]]:
    return (
        ("Content-Type", kind),
        ("Content-Length", str(length)),
        ("Content-Security-Policy", f"{policy(live=True)}; frame-ancestors 'none'"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-store"),
    )
