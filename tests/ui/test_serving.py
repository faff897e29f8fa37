"""snapstore ui: read only, on this machine only, for whoever has the address, and up to date."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser
from chronicle import shown_store, told

from snapstore import Store
from snapstore_cli.serving import HOST, Server, Timeline


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return shown_store(tmp_path)


@pytest.fixture
def server(store: Store) -> Iterator[Server]:
    with Server(Timeline(store, "a store")) as started:
        thread = threading.Thread(target=started.serve_forever, args=(0.02,))
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def ask(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, Any]:
    connection = HTTPConnection(HOST, server.server_port, timeout=5)
    connection.request(method, path, headers=headers)
    answer: HTTPResponse = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, answer.headers


def index(server: Server) -> Any:
    return json.loads(zlib.decompress(ask(server, f"/index?token={server.token}")[1]))


def test_the_address_that_is_printed_leads_to_the_page(server: Server) -> None:
    status, page, headers = ask(
        server, server.url.removeprefix(f"http://{HOST}:{server.server_port}")
    )
    assert status == 200
    assert b"<script" in page
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/index", "/chunk0", "/version", "/index?token=wrong"])
def test_without_the_token_nothing_is_told(server: Server, path: str) -> None:
    status, content, _ = ask(server, path)
    assert status == 403
    assert content == b"open the address that `snapstore ui` printed\n"


@pytest.mark.parametrize("host", ["example.org", "example.org:80", "", "127.0.0.1.example.org"])
def test_under_another_name_nothing_is_told(server: Server, host: str) -> None:
    assert ask(server, f"/index?token={server.token}", Host=host)[0] == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(server: Server, method: str) -> None:
    assert ask(server, f"/?token={server.token}", method)[0] == 501


@pytest.mark.parametrize(
    "path", ["/chunk99", "/chunk-1", "/chunk%D9%A3", "/../etc/passwd", "/page/app.js"]
)
def test_what_is_not_there_is_not_found(server: Server, path: str) -> None:
    assert ask(server, f"{path}?token={server.token}")[0] == 404


def test_it_listens_on_this_machine_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_a_save_comes_into_the_index_and_old_chunks_stay(server: Server, store: Store) -> None:
    before = index(server)
    version = ask(server, f"/version?token={server.token}")[1]
    assert ask(server, f"/version?token={server.token}")[1] == version
    told(store.session("main"), 70)
    after = index(server)
    assert ask(server, f"/version?token={server.token}")[1] != version
    assert len(after["turns"]) == len(before["turns"]) + 1
    assert after["chunks"][: len(before["chunks"])] == before["chunks"]


def test_gc_is_asked_for_what_it_would_let_go_of(server: Server, store: Store) -> None:
    found = store.gc()
    told = json.loads(ask(server, f"/gc?token={server.token}")[1])
    assert told == {"objects": found.objects, "bytes": found.bytes}
    assert ask(server, "/gc")[0] == 403


@pytest.mark.browser
def test_a_save_shows_by_itself(browser: Browser, server: Server, store: Store) -> None:
    with browser.open(server.url) as seen:
        seen.page.locator(".turn h2", has_text="label").wait_for()
        told(store.session("fork"), 80)
        seen.page.locator(".turn", has_text="answer 80").wait_for(timeout=5000)
        seen.page.locator("#rows .row", has_text="question 80").wait_for()
