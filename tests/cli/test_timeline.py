"""The timeline from the command line: as one file, and served until Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import zlib
from base64 import b64decode
from pathlib import Path
from urllib.request import urlopen

import pytest
from shell import Shell

COMMAND = Path(sys.executable).with_name("snapstore")
KEY = "sk-ant-api03-" + "Ab1" * 31 + "AA"
"""What looks like a key and opens nothing."""


def data_of(page: Path, name: str = r"\w+") -> list[str]:
    """What the data blocks of a page hold, inflated."""
    block = f'<script type="text/plain" id="{name}">([^<]*)<'
    found = re.findall(block, page.read_text())
    return [zlib.decompress(b64decode(text)).decode() for text in found]


def test_export_writes_a_page_of_one_line_or_of_all(two_lines: Shell) -> None:
    one = two_lines.ok("export", "a", "--format", "html", "-o", "a.html", "--json").json
    assert one["format"] == "html" and one["redacted"] is True
    page = (two_lines.folder / "a.html").read_bytes()
    assert page.startswith(b"<!doctype html>") and len(page) == one["bytes"]
    told = two_lines.ok("export", "--all", "--format", "html", "-o", "all.html").out
    assert told.startswith("all.html: 2 sessions, ")
    two_lines.ok("tag", "good", "a@2")
    told = two_lines.ok("export", "--all", "--format", "html", "-o", "all.html").out
    assert told.startswith("all.html: 2 sessions, 1 tag, ")
    told = two_lines.ok("export", "a", "--format", "html", "-o", "a.html").out
    assert told.startswith("a.html: 1 session, ")


@pytest.mark.parametrize(
    ("left", "right", "lines"), [("a", "b", 2), ("a@2", "a@4", 1), ("a@1", "b@4", 2)]
)
def test_diff_writes_a_page_that_opens_with_the_comparison(
    two_lines: Shell, left: str, right: str, lines: int
) -> None:
    written = two_lines.ok("diff", left, right, "--html", "d.html", "--json").json
    assert written["path"] == "d.html"
    page = (two_lines.folder / "d.html").read_text()
    turns = [two_lines.ok("show", side, "--json").json["id"][:16] for side in (left, right)]
    assert f'data-start="compare/{turns[0]}/{turns[1]}"' in page
    (index,) = data_of(two_lines.folder / "d.html", "index")
    assert len(json.loads(index)["named"]) == lines


def test_the_page_of_two_turns_of_a_session_is_called_by_the_turns(two_lines: Shell) -> None:
    told = two_lines.ok("diff", "a@2", "a@4", "--html", "d.html").out
    assert told.startswith("d.html: a@2 and a@4")
    told = two_lines.ok("diff", "a", "b", "--html", "d.html").out
    assert told.startswith("d.html: a and b")


def test_a_page_can_go_to_stdout(two_lines: Shell) -> None:
    assert two_lines.ok("export", "b", "--format", "html").out.startswith("<!doctype html>")
    assert two_lines("export", "b", "--format", "html", "--json").code == 2


def test_keys_are_left_out_of_a_page_unless_asked_for(shell: Shell) -> None:
    shell.save("a", {"role": "user", "content": "x"}, label=f"my key {KEY}")
    shell.ok("export", "a", "--format", "html", "-o", "safe.html")
    shell.ok("export", "a", "--format", "html", "-o", "open.html", "--no-redact")
    assert KEY not in "".join(data_of(shell.folder / "safe.html"))
    assert KEY in "".join(data_of(shell.folder / "open.html"))


@pytest.mark.parametrize(
    "args",
    [
        ("a", "--all", "--format", "html"),
        ("--all", "--format", "markdown"),
        ("a", "--format", "html", "--cwd", "/tmp"),
        ("a", "--format", "html", "-o", "nowhere/page.html"),
    ],
)
def test_what_makes_no_sense_is_refused(two_lines: Shell, args: tuple[str, ...]) -> None:
    assert two_lines("export", *args).code == 2


def test_ui_tells_its_address_serves_and_stops_at_ctrl_c(two_lines: Shell) -> None:
    command = [str(COMMAND), "--store", str(two_lines.store), "ui", "--no-open"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}", url)
        with urlopen(url, timeout=5) as answer:
            assert answer.read().startswith(b"<!doctype html>")
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 0


def test_ui_needs_a_store(shell: Shell, tmp_path: Path) -> None:
    assert shell("--store", str(tmp_path / "none"), "ui", "--no-open").code == 10
