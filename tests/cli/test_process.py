"""The installed command as a process of its own: what only the operating system can show."""

from __future__ import annotations

import os
import pty
import resource
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shell import Shell

COMMAND = [sys.executable, "-m", "snapstore_cli"]
MODULES = """
import sys
from snapstore_cli.main import run
run([sys.argv[1]])
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"snapstore", "rich", "msgpack", "blake3", "zstandard", "platformdirs"}))
"""


def cpu(argv: list[str]) -> float:
    """The least CPU seconds of a few runs."""
    used = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(used)


def test_help_costs_little_more_than_importing_click() -> None:
    assert cpu([*COMMAND, "--help"]) < 2 * cpu([sys.executable, "-c", "import click"]) + 0.03


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_nothing_of_the_library(option: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MODULES, option], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


STOPPED = """
import builtins, sys
found = builtins.__import__
def stop(name, *rest):
    if name == "snapstore_cli.main":
        raise KeyboardInterrupt
    return found(name, *rest)
builtins.__import__ = stop
sys.argv = ["snapstore", *sys.argv[1:]]
from snapstore_cli.__main__ import run
sys.exit(run())
"""


def test_ctrl_c_while_it_still_starts_shows_no_traceback() -> None:
    for option, told in ((), "error: interrupted\n"), (("--json",), '"code": "interrupted"'):
        done = subprocess.run(
            [sys.executable, "-c", STOPPED, "log", *option], capture_output=True, text=True
        )
        assert done.returncode == 130
        assert told in done.stderr and "Traceback" not in done.stderr


def test_a_reader_that_goes_away_ends_the_command_quietly(shell: Shell) -> None:
    shell.save("a", *[f"message {n} " + "x" * 200 for n in range(2000)])
    command = subprocess.Popen(
        [*COMMAND, "show", "a"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=shell.folder
    )
    assert command.stdout is not None and command.stderr is not None
    command.stdout.readline()
    command.stdout.close()
    assert command.wait(timeout=30) == 141
    assert command.stderr.read() == b""
    command.stderr.close()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("save --messages - <&-", 2),
        ("chat x <&-", 0),
        ("resume <&-", 0),
        ("delete a --yes <&-", 0),
        ("log >&-", 0),
        ("save -m label >&-", 0),
        ("--version >&-", 0),
        ("--help >&-", 0),
        ("log 2>&-", 0),
        ("log nosuch 2>&-", 3),
        ("log nosuch --json 2>&-", 3),
        ("log <&- >&- 2>&-", 0),
    ],
)
def test_a_closed_stream_reads_nothing_and_writes_nowhere(
    shell: Shell, line: str, code: int
) -> None:
    shell.save("a", "x")
    command = f"{shlex.quote(sys.executable)} -m snapstore_cli {line}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=shell.folder)
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr and "bug" not in done.stderr
    assert shell("verify").code == 0


def test_ctrl_c_ends_with_130_and_one_line(shell: Shell) -> None:
    command = subprocess.Popen(
        [*COMMAND, "save", "--messages", "-"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.folder,
    )
    time.sleep(0.6)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=30)
    assert command.returncode == 130
    assert err == b"error: interrupted\n"


def test_text_that_the_encoding_lacks_is_written_out(shell: Shell) -> None:
    shell.save("a", "x", label="日本 é")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*COMMAND, "log"], capture_output=True, cwd=shell.folder, env=environment, check=True
    )
    assert b"\\u65e5\\u672c \\xe9" in done.stdout


def test_a_terminal_gets_colour_and_a_pager_that_ends_by_itself(
    shell: Shell, tmp_path: Path
) -> None:
    shell.save("a", "x", label="first")
    paged = tmp_path / "paged"
    environment = {**os.environ, "SNAPSTORE_PAGER": f"tee {paged}", "TERM": "xterm"}
    main, side = pty.openpty()
    command = subprocess.Popen(
        [*COMMAND, "log"], stdin=side, stdout=side, stderr=side, cwd=shell.folder, env=environment
    )
    os.close(side)
    shown = b""
    while select.select([main], [], [], 20)[0]:
        try:
            shown += os.read(main, 4096)
        except OSError:  # Linux says so when the last process has let go of the terminal
            break
    os.close(main)
    assert command.wait(timeout=20) == 0
    assert b"\x1b[33m" in shown and b"first" in shown
    assert b"first" in paged.read_bytes()
