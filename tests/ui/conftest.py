"""A real browser for pages, which notes every complaint that it makes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from chronicle import page_of, shown_store

playwright: Any = None
with suppress(ImportError):
    from playwright import sync_api as playwright

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a browser these tests are skipped, and say so."""
    reason = None
    if CHROMIUM is None:
        reason = "there is no chromium: apt-get install chromium, or name one in $CHROMIUM"
    elif playwright is None:
        reason = "there is no playwright: pip install 'snapstore[browser]'"
    for item in items:
        if reason and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=reason))


@dataclass
class Seen:
    """A page in the browser."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def go(self, place: str) -> None:
        """Another view: the part of the address behind #."""
        address = self.page.url.partition("#")[0]
        self.page.goto(f"{address}#/{place}")
        self.page.wait_for_timeout(150)

    def run(self, script: str) -> Any:
        """The value of a script. Past the page's policy, which forbids this to all others."""
        told = self.page.context.new_cdp_session(self.page).send(
            "Runtime.evaluate", {"expression": script, "returnByValue": True}
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    @property
    def main(self) -> str:
        """What the main part shows."""
        return str(self.page.locator("#main").inner_text())


class Browser:
    """Opens pages, each in a profile of its own."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium

    @contextmanager
    def open(self, url: str, **how: Any) -> Iterator[Seen]:
        """A page; at the end the browser must have had nothing to complain about."""
        context = self._chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **how})
        context.set_default_timeout(8000)
        seen = Seen(context.new_page())
        notes = seen.complaints
        seen.page.on("console", lambda message: notes.append(message.text))
        seen.page.on("pageerror", lambda error: notes.append(str(error)))
        seen.page.on("dialog", lambda dialog: notes.append(dialog.message))
        seen.page.goto(url)
        seen.page.locator("html[data-ready]").wait_for(state="attached")
        yield seen
        context.close()
        assert notes == []


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield Browser(chromium)
        chromium.close()


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the store that shown_store makes."""
    return written(tmp_path_factory.mktemp("page"))


def written(root: Path, text: str = "") -> str:
    """A page in a file; its address."""
    path = root / "page.html"
    path.write_bytes(page_of(shown_store(root, text), redacted=False))
    return path.as_uri()
