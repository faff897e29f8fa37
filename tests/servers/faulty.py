"""A proxy before an S3 server that loses answers, as networks and gateways do.

Each fault hits a share of the PUT requests, and nothing else:

    lost      carried out, and the connection ends without an answer
    failed    carried out, and answered with 500
    refused   not carried out, and answered with 503
    late      no answer; carried out a second later, when the client has given up or tried again
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass

from servers.relay import Message, read_message

LATE = 1.0
_ANSWER = b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Faults:
    """The share of PUT requests that each fault hits."""

    lost: float = 0.0
    failed: float = 0.0
    refused: float = 0.0
    late: float = 0.0


class FaultyProxy:
    """Listens on a port of its own until it is closed."""

    def __init__(self, upstream: int, faults: Faults, seed: int = 1) -> None:
        self._upstream = upstream
        self._faults = faults
        self._random = random.Random(seed)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.hit: Counter[str] = Counter()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> FaultyProxy:
        return self

    def __exit__(self, *exc: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            stream = client.makefile("rb")
            while (request := read_message(stream)) is not None:
                if not self._answer(client, request):
                    return

    def _answer(self, client: socket.socket, request: Message) -> bool:
        """Deal with one request; whether the connection goes on."""
        fault = self._fault() if request.method == "PUT" else ""
        self.hit[fault] += 1
        if fault == "refused":
            client.sendall(_ANSWER % b"503 Slow Down")
        elif fault == "late":
            threading.Timer(LATE, self._forward, (request,)).start()
            time.sleep(2 * LATE)
        else:
            answer = self._forward(request)
            if fault == "failed":
                client.sendall(_ANSWER % b"500 Internal Server Error")
            elif fault == "":
                client.sendall(answer.whole)
        return fault == ""

    def _fault(self) -> str:
        drawn = self._random.random()
        for name in ("lost", "failed", "refused", "late"):
            share = getattr(self._faults, name)
            if drawn < share:
                return name
            drawn -= share
        return ""

    def _forward(self, request: Message) -> Message:
        with socket.create_connection(("127.0.0.1", self._upstream)) as server:
            server.sendall(request.whole)
            answer = read_message(server.makefile("rb"), request.method)
        if answer is None:
            raise ConnectionError("the server gave no answer")
        return answer
