"""Errors as users and programs meet them: one place for exit codes, messages and hints."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from errno import ENOENT, ENOTDIR
from pathlib import Path

import click

from snapstore import errors
from snapstore.textdiff import visible
from snapstore_cli.render.style import Style, wants_color

USAGE = 2
BUG = 70
INTERRUPTED = 130
PIPE_CLOSED = 141

_CODES: dict[type[BaseException], int] = {
    errors.NothingToDo: 1,
    errors.PhaseTimedOut: 1,
    errors.UncertainEffect: 1,
    errors.InvalidInput: 2,
    errors.ReadOnlyValue: 2,
    errors.NotFound: 3,
    errors.Ambiguous: 3,
    errors.RefMoved: 4,
    errors.Corrupt: 5,
    errors.ObjectMissing: 5,
    errors.UnsupportedFormat: 5,
    errors.Refused: 6,
    errors.StoreNotFound: 10,
    errors.Locked: 11,
    errors.DiskError: 12,
    errors.UnknownOutcome: 12,
    errors.Unreachable: 12,
    errors.AccessDenied: 12,
    errors.UnsuitableServer: 12,
}

# The library's hints speak to its callers; these speak to who types commands.
_HINTS: dict[type[BaseException], str] = {
    errors.RefMoved: "another writer was first; see `snapstore log`, then save again",
    errors.UnsupportedValue: "only JSON values can be stored",
}
_ON_A_SESSION = frozenset({"save", "undo", "redo", "status", "find", "op log", "reflog"})
"""Commands that act on a session but take no name of one among their words."""
_EXTRA = re.compile(r"unexpected extra argument \((\S+)\)")
_NO_FOLDER = "--store names a directory that is there or can be made, or s3://bucket/prefix"


@dataclass(frozen=True, slots=True)
class Report:
    """What is said about an error. ``code`` is for programs: a class name in snake_case."""

    code: str
    message: str
    hint: str
    exit_code: int


def report(error: BaseException, args: Sequence[str]) -> int:
    """Say on stderr what went wrong and return the exit code; as JSON when args ask for JSON."""
    if isinstance(error, BrokenPipeError):
        _close_stdout()
        return PIPE_CLOSED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    told = describe(error)
    if _wants_json(args):
        print(json.dumps({"error": asdict(told)}), file=sys.stderr)
        return told.exit_code
    style = Style(wants_color(sys.stderr, _color_choice(args)))
    if told.exit_code == BUG and _is_verbose(args):
        traceback.print_exception(error, file=sys.stderr)
    tell(told.message, told.hint, style)
    return told.exit_code


def tell(message: str, hint: str, style: Style) -> None:
    """Say on stderr what went wrong, and what to do about it."""
    print(f"{style('error', 'error:')} {visible(message)}", file=sys.stderr)
    if hint:
        print(f"{style('dim', 'hint:')} {visible(hint)}", file=sys.stderr)


def describe(error: BaseException) -> Report:
    """An error in words and with its exit code."""
    if isinstance(error, (KeyboardInterrupt, EOFError, click.Abort)):
        return Report("interrupted", "interrupted", "", INTERRUPTED)
    if isinstance(error, click.ClickException):
        return Report("usage", _usage_message(error), _usage_hint(error), USAGE)
    for kind in type(error).__mro__:
        if kind in _CODES:
            hint = _HINTS.get(type(error), getattr(error, "hint", ""))
            if kind is errors.DiskError and getattr(error, "errno", None) in (ENOENT, ENOTDIR):
                hint = _NO_FOLDER
            return Report(_snake_case(type(error).__name__), str(error), hint, _CODES[kind])
    if isinstance(error, errors.SnapstoreError):
        return Report(_snake_case(type(error).__name__), str(error), error.hint, BUG)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return Report("disk_error", f"{where}{error.strerror or error}", "", 12)
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = f" ({Path(last[0].filename).name}:{last[0].lineno})" if last else ""
    message = f"this is a bug: {type(error).__name__}: {error}{where}"
    return Report("bug", message, "-v shows the traceback", BUG)


def _usage_message(error: click.ClickException) -> str:
    message = re.sub(r"\s+", " ", error.format_message().strip())  # choices come one a line
    return message[:1].lower() + message[1:].rstrip(".")


def _usage_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return ""
    extra = _EXTRA.search(error.message)
    if extra and context.command_path.partition(" ")[2] in _ON_A_SESSION:
        return f"a session is named with -s, as in -s {extra[1]}"
    return f"see `{context.command_path} --help`"


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# An error may come before the options are read, so these look at the words themselves.


def _options(args: Sequence[str]) -> list[str]:
    words = list(args)
    return words[: words.index("--")] if "--" in words else words


def _wants_json(args: Sequence[str]) -> bool:
    return "--json" in _options(args)


def _is_verbose(args: Sequence[str]) -> bool:
    return any(word in ("-v", "--verbose") for word in _options(args))


def _color_choice(args: Sequence[str]) -> str:
    words = _options(args)
    for at, word in enumerate(words):
        if word.startswith("--color="):
            return word.removeprefix("--color=")
        if word == "--color":
            return "".join(words[at + 1 : at + 2])
    return "auto"


def _close_stdout() -> None:
    """Let the interpreter's own flush at exit go nowhere instead of failing once more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
