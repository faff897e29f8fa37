"""Servers that refuse, are slow, or are not there: an error that says so, soon, and no secret."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from buckets import Watched, store_on
from servers.s3 import Server, free_port

from snapstore import (
    AccessDenied,
    InvalidInput,
    SnapstoreError,
    Store,
    StoreNotFound,
    Unreachable,
)
from snapstore.engines.objectstore import client
from snapstore.engines.objectstore.client import Bucket
from snapstore.store import open_store

SECRET = "this-is-the-secret-key"


def options(port: int) -> dict[str, str]:
    return {
        "endpoint": f"http://127.0.0.1:{port}",
        "region": "us-east-1",
        "access_key_id": "AKIDEXAMPLE",
        "secret_access_key": SECRET,
        "timeout": "1s",
    }


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same number of tries in a tenth of the time."""
    pauses = {"init_backoff": client.PAUSE / 50, "max_backoff": client.PAUSE, "base": 2}
    monkeypatch.setitem(client.RETRIES, "backoff", pauses)


@contextmanager
def answering(status: int, code: str) -> Iterator[int]:
    """A server that answers everything alike, as S3 words it; its port."""
    body = (
        f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message>"
        f"<StringToSign>AWS4-HMAC-SHA256 {SECRET}</StringToSign></Error>"
    ).encode()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


REFUSALS = [
    (403, "SignatureDoesNotMatch", AccessDenied, "secret key is wrong"),
    (403, "InvalidAccessKeyId", AccessDenied, "access key is not known"),
    (403, "AccessDenied", AccessDenied, "may not do that"),
    (403, "RequestTimeTooSkewed", AccessDenied, "clock"),
    (400, "ExpiredToken", AccessDenied, "expired"),
    (400, "InvalidToken", AccessDenied, "token"),
    (400, "AuthorizationHeaderMalformed", AccessDenied, "region"),
    (404, "NoSuchBucket", StoreNotFound, "no bucket"),
    (429, "TooManyRequests", Unreachable, "fewer requests"),
    (503, "SlowDown", Unreachable, "fewer requests"),
    (500, "InternalError", Unreachable, "500"),
]


@pytest.mark.parametrize(("status", "code", "kind", "says"), REFUSALS, ids=[r[1] for r in REFUSALS])
def test_a_refusal_is_told_for_what_it_is_and_tells_no_secret(
    status: int, code: str, kind: type[SnapstoreError], says: str
) -> None:
    with answering(status, code) as port:
        bucket = Bucket.at("s3://bucket/root", options(port))
        requests: list[Callable[[], object]] = [
            lambda: bucket.get("key"),
            lambda: bucket.page("refs"),
            lambda: bucket.put("key", b"data"),
        ]
        for request in requests:
            with pytest.raises(kind, match=says) as refused:
                request()
            assert refused.value.hint
            assert SECRET not in str(refused.value) + refused.value.hint


def test_no_server_is_said_soon() -> None:
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="cannot be reached"):
        open_store("s3://bucket/root", options=options(free_port()))
    assert time.monotonic() - begun < 10


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(client.RETRIES, "max_retries", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="in time"):
            open_store("s3://bucket/root", options=options(silent.getsockname()[1]))
        assert time.monotonic() - begun < 10


def test_plain_http_must_be_allowed(moto: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in moto.environment().items():
        if name != "AWS_ALLOW_HTTP":
            monkeypatch.setenv(name, value)
    with pytest.raises(Unreachable, match="plain http"):
        open_store(moto.url(), cache=False)
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    assert open_store(moto.url(), cache=False).sessions() == []


def test_a_missing_bucket_is_no_store(moto: Server) -> None:
    with pytest.raises(StoreNotFound, match="no bucket"):
        open_store("s3://missing-bucket/root", options=moto.options(), cache=False)


def test_an_empty_prefix_is_no_store_unless_it_is_to_be_made(moto: Server) -> None:
    url = moto.url()
    with pytest.raises(StoreNotFound):
        open_store(url, create=False, options=moto.options(), cache=False)
    with open_store(url, options=moto.options(), cache=False) as store:
        assert store.sessions() == []
        assert not store.engine.exists()


@pytest.mark.parametrize("url", ["ftp://host/path", "http://host/path", "file:///tmp/x", "s3://"])
def test_what_is_no_address_of_a_bucket_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        open_store(url, cache=False)


class ReadOnly(Watched):
    """Credentials that may read and nothing else."""

    def put(self, key: str, data: bytes) -> None:
        raise AccessDenied("writing failed: these credentials may not do that")

    def create(self, key: str, data: bytes) -> None:
        raise AccessDenied("writing failed: these credentials may not do that")


def test_who_may_only_read_reads_and_is_told_when_saving() -> None:
    bucket = Bucket.in_memory()
    session = store_on(bucket).session("s")
    session.history.append("first")
    session.save()
    store = Store(store_on(ReadOnly(bucket)).engine)
    reading = store.session("s")
    assert list(reading.history) == ["first"]
    reading.history.append("second")
    with pytest.raises(AccessDenied):
        reading.save()
    assert list(reading.history) == ["first", "second"]
    assert store_on(bucket).session("s").turn == 1
    with pytest.raises(AccessDenied):
        store.delete("s")
    assert store.verify() == []


def test_credentials_that_expire_between_two_saves_lose_nothing() -> None:
    bucket = Watched(Bucket.in_memory())
    session = store_on(bucket).session("s")
    session.save()
    session.history.append("kept in memory")

    def expired(what: str, key: str) -> None:
        raise AccessDenied("the credentials have expired")

    bucket.before = expired
    with pytest.raises(AccessDenied):
        session.save()
    bucket.before = None
    assert session.save().turn == 2
    assert list(store_on(bucket).session("s").history) == ["kept in memory"]
