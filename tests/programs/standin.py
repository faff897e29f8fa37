"""A stand-in for the APIs of models: notes what it is sent, and says that it is well."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"input_tokens": 1, "output_tokens": 1}


class StandIn:
    """What came in: the bodies of requests that hold a conversation, in their order."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[dict[str, Any]] = []


@contextmanager
def standing_in() -> Iterator[StandIn]:
    """Answers on a port of this machine until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._answer("application/json", b"{}")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
            if "input" in body:
                here.asked.append(body)
                self._answer("text/event-stream", _events(_responses()))
            elif "messages" in body and "count_tokens" not in self.path:
                here.asked.append(body)
                self._answer("text/event-stream", _events(_messages()))
            else:
                self._answer("application/json", b'{"input_tokens":1}')

        def _answer(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here = StandIn(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()


def _events(events: list[dict[str, Any]]) -> bytes:
    told = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(told).encode()


def _messages() -> list[dict[str, Any]]:
    message = {"id": "msg_s", "type": "message", "role": "assistant", "model": "m", "content": []}
    delta = {"type": "text_delta", "text": "all is well"}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": USAGE}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE},
        {"type": "message_stop"},
    ]


def _responses() -> list[dict[str, Any]]:
    content = [{"type": "output_text", "text": "all is well", "annotations": []}]
    item = {"type": "message", "id": "m", "role": "assistant", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]
