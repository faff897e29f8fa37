"""Where commands write: data on stdout, all else on stderr, long data through a pager."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from snapstore.textdiff import visible
from snapstore_cli.deep import with_room
from snapstore_cli.json_values import jsonable
from snapstore_cli.render.style import Look, Style, wants_color
from snapstore_cli.settings import Settings

SCHEMA = 1
"""Version of the shape of every JSON document."""


class Output:
    """The output of one command."""

    def __init__(self, settings: Settings) -> None:
        self.json = settings.json
        self._quiet = settings.quiet
        terminal = sys.stdout.isatty()
        self._page = terminal and not settings.no_pager
        encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
        self.look = Look(
            style=Style(wants_color(sys.stdout, settings.color)),
            width=shutil.get_terminal_size().columns if terminal else None,
            unicode=terminal and encoding.startswith("utf"),
            now=datetime.now(UTC),
        )
        self.error_style = Style(wants_color(sys.stderr, settings.color))
        self._warning = self.error_style("warning", "warning:")

    def document(self, fields: Mapping[str, Any]) -> None:
        """Print one JSON document; bytes in it become ``{"$bytes": base64}``."""
        indent = 2 if self.look.terminal else None
        text = with_room(
            lambda: json.dumps({"schema": SCHEMA, **fields}, default=jsonable, indent=indent)
        )
        print(text)

    def lines(self, lines: Iterable[str], *, page: bool = False) -> None:
        """Print lines as they come; through the pager when they may be many."""
        if self.look.terminal and not self.look.unicode:
            lines = (line.replace("…", "~") for line in lines)  # where a text was cut
        pager = self._start_pager() if page and self._page else None
        if pager is None:
            for line in lines:
                print(line)
            return
        _feed(pager, lines)

    def raw(self, pieces: Iterable[bytes]) -> None:
        """Print bytes as they are."""
        sys.stdout.flush()
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()

    def say(self, text: str) -> None:
        """Print what was done, unless told to be quiet."""
        if not self._quiet:
            print(visible(text))

    def note(self, text: str) -> None:
        """Tell something on stderr, unless told to be quiet."""
        if not self._quiet:
            print(visible(text), file=sys.stderr)

    def warn(self, text: str) -> None:
        """Warn on stderr, unless told to be quiet."""
        if not self._quiet:
            print(f"{self._warning} {visible(text)}", file=sys.stderr)

    def _start_pager(self) -> subprocess.Popen[str] | None:
        wanted = os.environ.get("SNAPSTORE_PAGER", os.environ.get("PAGER", "less"))
        command = shlex.split(wanted)
        if not command or command == ["cat"] or shutil.which(command[0]) is None:
            return None
        # As git does: end when all fits one screen, let colours through, leave the text standing.
        environment = {"LESS": "FRX", **os.environ}
        sys.stdout.flush()
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, text=True, errors="backslashreplace", env=environment
        )


def _feed(pager: subprocess.Popen[str], lines: Iterable[str]) -> None:
    assert pager.stdin is not None
    try:
        for line in lines:
            pager.stdin.write(line + "\n")
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the reader has seen enough
    finally:
        _finish(pager)


def _finish(pager: subprocess.Popen[str]) -> None:
    while True:
        try:
            pager.communicate()
            return
        except BrokenPipeError:
            pager.wait()
            return
        except KeyboardInterrupt:
            continue  # Ctrl-C is the pager's own while it runs
