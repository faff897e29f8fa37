"""A real browser for pages, which notes every complaint that it makes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

playwright: Any = None
with suppress(ImportError):
    from playwright import sync_api as playwright

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


def missing() -> str | None:
    """Why pages cannot be shown here, if they cannot."""
    if CHROMIUM is None:
        return "there is no chromium: apt-get install chromium, or name one in $CHROMIUM"
    if playwright is None:
        return "there is no playwright: pip install 'snapstore[test]'"
    return None


@contextmanager
def started() -> Iterator[Browser]:
    """The browser, until the end of the block."""
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield Browser(chromium)
        chromium.close()


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
        """The value of a script, or what it promises. Past the page's policy, which forbids this
        to all others."""
        told = self.page.context.new_cdp_session(self.page).send(
            "Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True}
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
