"""Azurite, an emulator of Azure Blob Storage, where it is installed (npm package ``azurite``)."""

from __future__ import annotations

import base64
import hmac
import os
import secrets
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

from servers.s3 import await_port, free_port

ACCOUNT = "snapaccess"
KEY = base64.b64encode(b"snapsecret").decode()
CONTAINER = "snapstore"
_VERSION = "2021-12-02"
_UNTIL_STDIN_ENDS = '"$0" "$@" </dev/null & read -r _; kill $!; wait'
"""Runs a command for as long as whoever started it lives, however that ends."""


@dataclass(frozen=True, slots=True)
class Azurite:
    """A running emulator with an empty container."""

    port: int

    def options(self) -> dict[str, str]:
        """How to reach it."""
        return {
            "endpoint": f"http://127.0.0.1:{self.port}/{ACCOUNT}",
            "account_name": ACCOUNT,
            "account_key": KEY,
        }

    def url(self) -> str:
        """An address at which no store is yet."""
        return f"az://{CONTAINER}/{secrets.token_hex(6)}"

    def make_container(self) -> None:
        """Make the container, by a request signed with the account's key."""
        date = formatdate(usegmt=True)
        headers = f"x-ms-date:{date}\nx-ms-version:{_VERSION}"
        resource = f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
        signed = "PUT" + "\n" * 12 + f"{headers}\n{resource}"
        digest = hmac.digest(base64.b64decode(KEY), signed.encode(), "sha256")
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/{ACCOUNT}/{CONTAINER}?restype=container",
            method="PUT",
            headers={
                "x-ms-date": date,
                "x-ms-version": _VERSION,
                "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
            },
        )
        with urllib.request.urlopen(request):
            pass


def why_no_azurite() -> str | None:
    """Why there is no Azurite to test on; None where there is one."""
    found = shutil.which("azurite-blob")
    return None if found else "azurite-blob is not on the path: npm install azurite"


@contextmanager
def azurite(folder: Path) -> Iterator[Azurite]:
    """Azurite, which keeps its blobs in a folder."""
    server = Azurite(free_port())
    process = subprocess.Popen(
        ["sh", "-c", _UNTIL_STDIN_ENDS, "azurite-blob", "--blobHost", "127.0.0.1",
         "--blobPort", str(server.port), "--location", str(folder), "--silent",
         "--skipApiVersionCheck", "--disableTelemetry"],
        env=os.environ | {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await_port(server.port, process)
        server.make_container()
        yield server
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
