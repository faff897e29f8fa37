"""Object stores that the tests run on: moto in this process, nanio, and Ceph where installed."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import boto3

from snapstore.engines.objectstore.client import Bucket

BUCKET = "snapstore"
CEPH_UP = Path(__file__).parent / "ceph_up.sh"


@dataclass(frozen=True, slots=True)
class Server:
    """An S3 server with an empty bucket."""

    name: str
    port: int
    access_key: str = "snapaccess"
    secret_key: str = "snapsecret"

    def options(self, port: int | None = None) -> dict[str, str]:
        """How to reach it, or what stands before it on another port."""
        return {
            "endpoint": f"http://127.0.0.1:{port or self.port}",
            "region": "us-east-1",
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
        }

    def environment(self) -> dict[str, str]:
        """The same, for processes."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_ALLOW_HTTP": "true",
        }

    def url(self) -> str:
        """An address at which no store is yet."""
        return f"s3://{BUCKET}/{secrets.token_hex(6)}"

    def bucket(self) -> Bucket:
        """A prefix with nothing in it."""
        return Bucket.at(self.url(), self.options())

    def make_bucket(self) -> None:
        """Make the bucket, if there is none."""
        boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
        ).create_bucket(Bucket=BUCKET)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def lasting_port() -> int:
    """A port to be bound in a while. Connections are given ports too, all above these."""
    while True:
        port = random.randrange(20_000, 26_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def moto() -> Iterator[Server]:
    """moto, in a thread of this process."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with _one_put_at_a_time():
        running.start()
        try:
            server = Server("moto", running.get_host_and_port()[1])
            server.make_bucket()
            yield server
        finally:
            running.stop()


@contextmanager
def _one_put_at_a_time() -> Iterator[None]:
    """moto looks whether an object is there and then writes it; between the two, its threads would
    let two creators win, as no S3 does."""
    from moto.s3.responses import S3Response

    alone, put = threading.Lock(), S3Response.put_object

    def put_alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        with alone:
            return put(self, *args, **kwargs)

    with mock.patch.object(S3Response, "put_object", put_alone):
        yield


@contextmanager
def nanio(folder: Path) -> Iterator[Server]:
    """nanio, which takes ``If-None-Match`` and overwrites all the same. Keeps buckets in folder."""
    server = Server("nanio", free_port())
    (folder / BUCKET).mkdir()
    keys = {"NANIO_ACCESS_KEY": server.access_key, "NANIO_SECRET_KEY": server.secret_key}
    process = subprocess.Popen(
        [sys.executable, "-m", "nanio", "serve", "--host", "127.0.0.1", "--port", str(server.port),
         "--data-dir", str(folder)],
        env=os.environ | keys, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await_port(server.port, process)
        yield server
    finally:
        process.terminate()
        process.wait()


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until something listens on a port."""
    for _ in range(300):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError("the server did not start")


def why_no_ceph() -> str | None:
    """Why there is no Ceph to test on; None where there is one."""
    missing = [name for name in ("ceph-mon", "ceph-osd", "radosgw") if shutil.which(name) is None]
    return f"{', '.join(missing)} not installed: see {CEPH_UP.name} install" if missing else None


@dataclass(frozen=True, slots=True)
class Ceph:
    """A running cluster of one node, and its gateway."""

    server: Server
    folder: Path

    def run(self, command: str, *arguments: str) -> None:
        """Run a command of the script that started it."""
        _script(self.folder, self.server.port, command, *arguments)


@contextmanager
def ceph() -> Iterator[Ceph]:
    """A Ceph cluster of one node on loopback, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="snapstore-ceph-"))
    cluster = Ceph(Server("ceph", lasting_port()), folder)
    try:
        cluster.run("start")
        cluster.server.make_bucket()
        yield cluster
    finally:
        cluster.run("stop")
        shutil.rmtree(folder, ignore_errors=True)


def _script(folder: Path, port: int, *command: str) -> None:
    more = {
        "CEPH_DIR": str(folder / "cluster"),
        "RGW_PORT": str(port),
        "CEPH_OWNER": str(os.getpid()),
    }
    done = subprocess.run(
        ["bash", str(CEPH_UP), *command], env=os.environ | more, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(
            f"{CEPH_UP.name} {command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
