"""Files that commands are told to write: where -o and --html lead to."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from shell import Shell

COMMAND = Path(sys.executable).with_name("snapstore")
FORMATS = ["claude-code", "codex", "messages", "markdown", "html", "bundle"]
WRITERS = [["export", "a", "--format", format, "-o"] for format in FORMATS]
WRITERS.append(["diff", "a", "b", "--html"])


def every(writers: list[list[str]]) -> pytest.MarkDecorator:
    """One test for each command that writes a file."""
    return pytest.mark.parametrize("command", writers, ids=lambda words: words[-2])


@every(WRITERS)
def test_a_file_that_is_there_keeps_its_mode_and_its_neighbours(
    two_lines: Shell, command: list[str]
) -> None:
    out, beside = two_lines.folder / "out", two_lines.folder / "out.tmp"
    beside.write_text("precious")
    two_lines.ok(*command, "out")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    out.chmod(0o644)
    two_lines.ok(*command, "out")
    assert stat.S_IMODE(out.stat().st_mode) == 0o644
    assert beside.read_text() == "precious"
    assert {p.name for p in two_lines.folder.iterdir()} == {".snapstore", "out", "out.tmp"}


@every(WRITERS)
def test_what_a_link_leads_to_is_written(two_lines: Shell, command: list[str]) -> None:
    link, target, null = (two_lines.folder / name for name in ("link", "target", "null"))
    target.write_text("old")
    link.symlink_to("target")
    null.symlink_to(os.devnull)
    two_lines.ok(*command, "link")
    two_lines.ok(*command, "null")
    assert link.is_symlink() and null.is_symlink()
    assert len(target.read_bytes()) > 3


@every(WRITERS)
@pytest.mark.parametrize("given", ["", "folder", "folder/", "gone/", "gone/out", "link"])
def test_what_is_no_file_is_bad_input(two_lines: Shell, command: list[str], given: str) -> None:
    (two_lines.folder / "folder").mkdir()
    (two_lines.folder / "link").symlink_to("folder")
    result = two_lines(*command, given, "--json")
    assert (result.code, result.error["code"]) == (2, "invalid_input")
    if given in ("folder", "folder/", "link"):
        assert result.error["message"] == f"{given} is a directory"
    assert not any((two_lines.folder / "folder").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors have no names here")
@every(WRITERS)
def test_stdout_by_its_name_is_stdout(two_lines: Shell, command: list[str]) -> None:
    link, log = two_lines.folder / "link", two_lines.folder / "log"
    link.symlink_to("/proc/self/fd/1")
    plain = subprocess.run([COMMAND, *command, "-"], capture_output=True, check=True, timeout=60)
    log.write_bytes(b"old\n")
    with log.open("ab") as appended:
        subprocess.run([COMMAND, *command, "link"], stdout=appended, check=True, timeout=60)
    written = log.read_bytes()
    assert written.startswith(b"old\n")
    # Two new sessions have each an id of its own.
    assert len(written) == len(plain.stdout) + 4
    assert link.is_symlink()
