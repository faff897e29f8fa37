"""Takes the pictures that the README shows: `python tests/ui/take_pictures.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import Any
from zlib import crc32

from chromium import Browser, missing, started

import snapstore
from snapstore import Session, Store
from snapstore.formats.html import branches, export

PICTURES = Path(__file__).parent / "pictures"
SIZE = {"width": 1280, "height": 760}
_MINUTES = 1_000_000 * 60

Call = tuple[str, dict[str, str], str]
"""A tool, its input, its result."""

LOGIN = "def login(user):\n    return Session(user, lifetime=3600)\n"
TOUCH = LOGIN + "\n\ndef touch(session):\n    session.expires = now() + session.lifetime\n"
TEST = "def test_a_session_in_use_stays():\n    session = login('you')\n    later(minutes=90)\n"
PASSED = ".......                                  [100%]\n7 passed in 0.41s"
FAILED = "......F                                  [100%]\n1 failed, 6 passed in 0.43s"


def told(question: str, thought: str, calls: Sequence[Call], answer: str) -> Iterator[Any]:
    """The messages of one turn: a question, calls with their results, an answer."""
    yield {"role": "user", "content": question}
    for n, (tool, given, result) in enumerate(calls):
        number = f"call_{crc32(question.encode()):08x}_{n}"
        call = {"type": "tool_use", "id": number, "name": tool, "input": given}
        before = [{"type": "thinking", "thinking": thought, "signature": "s"}] if not n else []
        yield {"role": "assistant", "content": [*before, call]}
        block = {"type": "tool_result", "tool_use_id": number, "content": result}
        yield {"role": "user", "content": [block]}
    yield {"role": "assistant", "content": answer}


def bash(command: str, result: str) -> Call:
    return "Bash", {"command": command}, result


def made(root: Path) -> Store:
    """A store in which a login is mended, in two ways."""
    work = root / "work"
    work.mkdir()
    begun = int(time() * 1_000_000) - 130 * _MINUTES
    store = snapstore.open(root / "store", durable=False, clock=count(begun, 5 * _MINUTES).__next__)
    main = store.session("fix-login")
    main.worktree = work

    def turn(
        session: Session, label: str, *said: Any, files: dict[str, str] | None = None, **notes: Any
    ) -> None:
        for name, text in (files or {}).items():
            (work / name).write_text(text)
        session.history.extend(told(*said))
        for key, value in notes.items():
            session.scratchpad[key] = value
        session.save(label)

    read = ("Read", {"path": "login.py"}, LOGIN)
    turn(main, "", "Logins fail after an hour, even for people who are busy. Why?",
         "The lifetime may be counted from the login on.", [read],
         "A session lives for an hour from its start, whether it is used or not.",
         files={"login.py": LOGIN}, step="understand")  # fmt: skip
    turn(main, "A failing test", "Write a test that shows it.", "An hour and a half is enough.",
         [("Write", {"path": "test_login.py"}, "wrote test_login.py"), bash("pytest -q", FAILED)],
         "The test fails, as it should.", files={"test_login.py": TEST}, step="test")  # fmt: skip
    edit = ("Edit", {"path": "login.py", "new": "def touch(session): ..."}, "edited login.py")
    turn(main, "Sessions are renewed", "Fix it.", "Each use should move the end.",
         [edit, bash("pytest -q", PASSED)],
         "Fixed: `touch()` renews a session each time it is used, and the test passes.",
         files={"login.py": TOUCH}, step="fix", tests=7)  # fmt: skip
    turn(main, "", "Does it hold with several servers?", "Where are they kept?",
         [("Grep", {"pattern": "SESSIONS"}, "login.py:1: SESSIONS = {}")],
         "No: each server has a dictionary of its own.", step="several servers")  # fmt: skip
    fork = store.fork(store.resolve("fix-login@4"), "try-redis")
    turn(main, "Sessions in the database", "Keep them in the database.", "One table is enough.",
         [edit, bash("pytest -q", PASSED)], "Done: a table, and an index on its end.",
         files={"login.py": TOUCH + "\n\nSESSIONS = Table('sessions')\n"},
         step="database", store="table")  # fmt: skip
    turn(main, "", "How long does a request take now?", "To be measured.",
         [bash("python bench.py", "p99 11.8 ms")], "11.8 ms at the 99th percentile.",
         p99_ms=11.8)  # fmt: skip
    turn(main, "", "Cache them in memory as well.", "That may be stale.",
         [bash("pytest -q", FAILED)], "A test fails: a logout takes a minute to show.")  # fmt: skip
    main.rewind(6)
    turn(fork, "Sessions in Redis", "Keep them in Redis instead.", "It can expire them itself.",
         [edit, bash("pytest -q", PASSED)], "Done: Redis expires them by itself.",
         step="redis", store="redis")  # fmt: skip
    turn(fork, "", "And how long does a request take?", "To be measured.",
         [bash("python bench.py", "p99 4.1 ms")], "4.1 ms at the 99th percentile.",
         p99_ms=4.1)  # fmt: skip
    turn(main, "", "Write the change up for review.", "Short, with the figures.",
         [bash("git diff --stat", "2 files changed")], "Written: CHANGES.md.",
         files={"CHANGES.md": "Sessions in use stay.\n"}, step="review")  # fmt: skip
    store.tag("reviewed", main.head)
    turn(store.session("docs/intro"), "", "Write an introduction for new people.",
         "For whom?", [], "Here is a first page.")  # fmt: skip
    return store


def take(browser: Browser, url: str) -> None:
    """Both pictures."""
    with browser.open(f"{url}#/turn/fix-login@3", viewport=SIZE, color_scheme="light") as seen:
        seen.page.locator(".turn", has_text="Fixed:").wait_for()
        seen.page.screenshot(path=PICTURES / "history.png")
    place = "compare/fix-login/try-redis"
    with browser.open(f"{url}#/{place}", viewport=SIZE, color_scheme="dark") as seen:
        seen.page.get_by_text("Both go on from").wait_for()
        seen.page.screenshot(path=PICTURES / "compare.png")


if __name__ == "__main__":
    if reason := missing():
        raise SystemExit(reason)
    with TemporaryDirectory() as folder, made(Path(folder)) as shown, started() as chromium:
        page = Path(folder) / "page.html"
        page.write_bytes(b"".join(export(shown, branches(shown), "snapstore", whole=True)))
        take(chromium, page.as_uri())
