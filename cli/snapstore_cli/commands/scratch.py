"""snapstore scratch: the scratchpad of a session."""

from __future__ import annotations

import sys
from typing import Any

import click

from snapstore import NotFound
from snapstore.textdiff import render_value, visible
from snapstore_cli.command import Group
from snapstore_cli.commands.save import save_turn
from snapstore_cli.invocation import Invocation
from snapstore_cli.json_values import as_text, parse_setting, parse_value
from snapstore_cli.render import columns, words


@click.group(cls=Group, no_args_is_help=False)
def scratch() -> None:
    """The scratchpad: keys and values that live outside the history and survive trimming.

    Values are JSON, so strings need their quotes. `snapstore save --unset KEY` removes a key.

    \b
    Examples:
      snapstore scratch set plan='"first the tests"'
      snapstore scratch list
      snapstore scratch summary
    """


@scratch.command("get")
@click.argument("key")
@click.argument("rev", required=False)
@click.pass_obj
def get(run: Invocation, key: str, rev: str | None) -> None:
    """Print the value of KEY. Text comes as it is, bytes raw, all else as JSON.

    \b
    Examples:
      snapstore scratch get file
      snapstore scratch get plan fix-login@3
    """
    snapshot = run.turn(rev)
    if key not in snapshot.scratchpad:
        raise NotFound(
            f"the scratchpad of turn {snapshot.turn} has no {key!r}",
            hint="`snapstore scratch list` shows the keys",
        )
    value = snapshot.scratchpad[key]
    if run.out.json:
        run.out.document({"key": key, "value": value})
    elif run.out.look.terminal:
        print(render_value(value) if not isinstance(value, str) else visible(value))
    elif isinstance(value, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(value)
    else:
        print(value if isinstance(value, str) else as_text(value))


@scratch.command("set")
@click.argument("settings", nargs=-1, required=True, metavar="K=JSON..")
@click.option("--unset", metavar="K", multiple=True, help="Remove a key.")
@click.option("-m", "--label", metavar="LABEL", help="What to call this turn.")
@click.pass_obj
def set_(
    run: Invocation, settings: tuple[str, ...], unset: tuple[str, ...], label: str | None
) -> None:
    """Set keys of the scratchpad, in a turn of its own. KEY JSON does for one key, too.

    \b
    Examples:
      snapstore scratch set tries=3 'file="login.py"'
      snapstore scratch set plan '["read", "write"]' -m "made a plan"
    """
    pairs = _pairs(settings)
    save_turn(run, run.session_to_save, pairs, unset, label)


def _pairs(settings: tuple[str, ...]) -> dict[str, Any]:
    if len(settings) == 2 and "=" not in settings[0]:
        return {settings[0]: parse_value(*settings)}
    return dict(parse_setting(text) for text in settings)


@scratch.command("list")
@click.argument("rev", required=False)
@click.pass_obj
def list_(run: Invocation, rev: str | None) -> None:
    """Every key and its value, a line each, the value as JSON.

    \b
    Examples:
      snapstore scratch list
      snapstore scratch list fix-login@3 --json
    """
    snapshot = run.turn(rev)
    if run.out.json:
        run.out.document({"turn": snapshot.turn, "scratchpad": dict(snapshot.scratchpad)})
        return
    rows: list[list[columns.Cell]] = [
        [("name", words.one_line(key)), ("", words.one_line(as_text(value)))]
        for key, value in snapshot.scratchpad.items()
    ]
    run.out.lines(columns.lines(rows, run.out.look), page=True)


@scratch.command("summary")
@click.argument("rev", required=False)
@click.option(
    "--max-chars", type=click.IntRange(min=0), default=2000, show_default=True, metavar="N"
)
@click.pass_obj
def summary(run: Invocation, rev: str | None, max_chars: int) -> None:
    """The scratchpad as text to inject into a prompt, at most N characters.

    \b
    Examples:
      snapstore scratch summary
      snapstore scratch summary --max-chars 500
    """
    text = run.turn(rev).scratchpad.summary(max_chars)
    if run.out.json:
        run.out.document({"summary": text})
    elif text:
        print(visible(text) if run.out.look.terminal else text)
