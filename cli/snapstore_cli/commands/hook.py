"""snapstore hook: what harnesses run."""

from __future__ import annotations

import sys

import click

from snapstore_cli.command import Command
from snapstore_cli.hooking.main import Arguments
from snapstore_cli.hooking.main import run as handle_event
from snapstore_cli.invocation import Invocation


@click.command(cls=Command, context_settings={"ignore_unknown_options": True})
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.pass_obj
def hook(run: Invocation, rest: tuple[str, ...]) -> None:
    """Save what a harness has just done. Claude Code and Codex run it, not you: see `hooks`.

    Reads one event as JSON on stdin. At Stop, SubagentStop, PreCompact and SessionEnd the
    transcript is imported, as far as it is new; Stop makes a turn with the files of that moment.
    At SessionStart, UserPromptSubmit, PostToolUse and PostToolUseFailure the files are captured,
    which is no turn. Other events are passed over.

    With --redact keys, tokens and passwords are left out of the history; not of files.

    Prints nothing and always ends with exit code 0, so that no harness is held up by it. What it
    did stands in cache/hook.log in the store. Where that is no directory yet, or not on this
    machine, the log is in the user's state directory (~/.local/state/snapstore/hook.log).

    \b
    Examples:
      snapstore hooks install claude-code
      echo '{"hook_event_name": "Stop", ...}' | snapstore hook
    """
    if sys.stdin.isatty():
        run.out.note("an event of a harness is expected on stdin; see `snapstore hooks --help`")
        return
    given = Arguments.of(rest)
    handle_event(given._replace(store=run.settings.store or given.store))
