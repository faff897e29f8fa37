"""A relay that counts what goes through it, and the reading of HTTP messages."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from dataclasses import dataclass
from typing import BinaryIO


@dataclass(frozen=True, slots=True)
class Message:
    """A request or an answer, as its bytes."""

    head: bytes
    body: bytes

    @property
    def whole(self) -> bytes:
        """All of it."""
        return self.head + self.body

    @property
    def method(self) -> str:
        """Of a request: its method."""
        return self.head.split(b" ", 1)[0].decode()


def read_message(stream: BinaryIO, answers: str | None = None) -> Message | None:
    """The next message; None at the end. ``answers`` is the method that an answer is to."""
    lines: list[bytes] = []
    while True:
        try:
            line = stream.readline()
        except OSError:
            return None
        if not line:
            return None
        lines.append(line)
        if line == b"\r\n":
            break
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(b":") for line in lines[1:])
    }
    head = b"".join(lines)
    status = head.split(b" ", 2)[1] if answers else b""
    if answers == "HEAD" or status in (b"204", b"304", b"100"):
        return Message(head, b"")
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        return Message(head, _chunked(stream))
    return Message(head, stream.read(int(fields.get(b"content-length", 0))))


def _chunked(stream: BinaryIO) -> bytes:
    parts: list[bytes] = []
    while True:
        size = stream.readline()
        chunk = stream.read(int(size.split(b";")[0], 16) + 2)
        parts += [size, chunk]
        if len(chunk) == 2:
            return b"".join(parts)


class CountingRelay:
    """Passes requests on and counts them by method, and the bytes of both ways."""

    def __init__(self, upstream: int) -> None:
        self._upstream = upstream
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.requests: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CountingRelay:
        return self

    def __exit__(self, *exc: object) -> None:
        self._listening.close()

    def forget(self) -> None:
        """Begin to count anew."""
        self.requests.clear()
        self.bytes.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._upstream)) as server:
            asked, answered = client.makefile("rb"), server.makefile("rb")
            while (request := read_message(asked)) is not None:
                self.requests[request.method] += 1
                self.bytes["up"] += len(request.whole)
                server.sendall(request.whole)
                answer = read_message(answered, request.method)
                if answer is None:
                    return
                self.bytes["down"] += len(answer.whole)
                client.sendall(answer.whole)
