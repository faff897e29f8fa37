"""Models behind an API, against stand-ins on this machine that speak as they do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from shell import Shell


class StandIn(BaseHTTPRequestHandler):
    """Streams "Hello there" in the form that was asked for, or an error."""

    asked: list[dict[str, Any]]
    status = 200

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        type(self).asked.append(body)
        if self.status != 200:
            self._send(json.dumps({"error": {"type": "x", "message": "no credit"}}), "json")
            return
        events = _anthropic(body) if self.path.endswith("/messages") else _openai(body)
        self._send("".join(events), "event-stream")

    def _send(self, text: str, kind: str) -> None:
        self.send_response(self.status)
        self.send_header("content-type", f"{'text' if 'stream' in kind else 'application'}/{kind}")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


def _anthropic(body: dict[str, Any]) -> Iterator[str]:
    message = {"id": "m", "type": "message", "role": "assistant", "model": body["model"],
               "content": [], "stop_reason": None, "stop_sequence": None,
               "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": t}}
          for t in ("Hello", " there")),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def _openai(body: dict[str, Any]) -> Iterator[str]:
    for text in ("Hello", " there"):
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"],
                 "choices": [choice]}  # fmt: skip
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


@pytest.fixture(params=["anthropic", "openai"])
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of an API whose stand-in runs."""
    name: str = request.param
    pytest.importorskip(name)
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    monkeypatch.setattr(StandIn, "asked", [], raising=False)
    monkeypatch.setattr(StandIn, "status", 200)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for variable in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(f"{name.upper()}_API_KEY", "key")
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv(f"{name.upper()}_BASE_URL", address + ("/v1" if name == "openai" else ""))
    yield name
    server.shutdown()
    server.server_close()


def test_a_model_answers_when_its_key_is_there(shell: Shell, api: str) -> None:
    shell.ok("scratch", "set", "-s", "c", 'file="a.py"')
    done = shell.ok("chat", "c", "--model", "some-model", stdin="hi\n")
    assert done.out == "Hello there\n"
    shown = shell.ok("show", "c", "--json").json["messages"]
    assert shown[-1] == {"role": "assistant", "content": "Hello there"}
    (asked,) = StandIn.asked
    assert asked["model"] == "some-model" and "file: a.py" in json.dumps(asked)
    assert asked["messages"][-1] == {"role": "user", "content": "hi"}


def test_what_is_ours_in_a_message_is_not_sent(shell: Shell, api: str) -> None:
    shell.save("c", {"role": "user", "content": "q"},
               {"role": "assistant", "content": "half", "interrupted": True})  # fmt: skip
    shell.ok("chat", "c", "--api", api, stdin="go on\n")
    assert [m["content"] for m in StandIn.asked[0]["messages"]] == ["q", "half", "go on"]
    assert "interrupted" not in json.dumps(StandIn.asked)


def test_an_error_of_the_api_is_the_agent_s(
    shell: Shell, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StandIn, "status", 400)
    done = shell("chat", "c", stdin="hi\n")
    assert done.code == 1 and "no credit" in done.err
    assert len(shell.ok("show", "c", "--json").json["messages"]) == 1


def test_messages_of_another_shape_are_refused_by_their_number(shell: Shell, api: str) -> None:
    shell.save("c", "just text")
    done = shell("chat", "c", stdin="hi\n")
    assert done.code == 1 and "message 0 is not of the shape" in done.err


def test_the_echo_answers_when_it_is_asked_for(shell: Shell, api: str) -> None:
    assert shell.ok("chat", "c", "--api", "none", stdin="hi\n").out == "hi\n"
    assert StandIn.asked == []


def test_an_api_without_its_package_or_key_says_what_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("snapstore_cli.chat.api.find_spec", lambda name: None)
    missing = shell("chat", "c", "--api", "openai", stdin="hi\n")
    assert missing.code == 2 and "pip install 'snapstore[openai]'" in missing.err
    monkeypatch.setattr("snapstore_cli.chat.api.find_spec", lambda name: True)
    keyless = shell("chat", "c", "--api", "openai", stdin="hi\n")
    assert keyless.code == 2 and "set OPENAI_API_KEY" in keyless.err
    both = shell("chat", "c", "--api", "openai", "--agent", "x", stdin="hi\n")
    assert both.code == 2
