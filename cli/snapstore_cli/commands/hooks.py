"""snapstore hooks: have harnesses run `snapstore hook`, or no longer."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from snapstore_cli.command import Group
from snapstore_cli.hooking import entries
from snapstore_cli.hooking.harnesses import HARNESSES, Harness
from snapstore_cli.hooking.settings_file import SettingsFile
from snapstore_cli.invocation import Invocation
from snapstore_cli.place import named_in_environment
from snapstore_cli.render import words

_HARNESS = click.argument("name", metavar="HARNESS", type=click.Choice(sorted(HARNESSES)))
_USER = click.option("--user", is_flag=True, help="Your own settings, for every project.")


@click.group(cls=Group, no_args_is_help=False)
def hooks() -> None:
    """Hooks of Claude Code and Codex: every turn is saved by itself, with the files.

    HARNESS is claude-code or codex. Without --user it is about the project in the working
    directory: .claude/settings.json or .codex/hooks.json there.

    \b
    Examples:
      snapstore hooks install claude-code
      snapstore hooks status codex --user
    """


@hooks.command("install")
@_HARNESS
@_USER
@click.option("--redact", is_flag=True, help="Leave keys and passwords out of what is saved.")
@click.pass_obj
def install(run: Invocation, name: str, user: bool, redact: bool) -> None:
    """Let the harness run `snapstore hook` at its events.

    All else in its settings stays as it is; to install again changes nothing. A store that is
    named with --store is the one that the hooks save to; else they look for it as every command
    does. With --redact secrets are left out of the history; files are kept as they are.

    \b
    Examples:
      snapstore hooks install claude-code
      snapstore hooks install codex --user
    """
    harness = HARNESSES[name]
    settings = SettingsFile.read(harness.settings(os.environ, user=user))
    command = _command(run.settings.store, redact)
    place = run.place
    new = entries.installed(settings.document, harness.calls, command)
    changed = new is not settings.document
    if changed:
        settings.write(new)
    told = "now runs" if changed else "already runs"
    events = words.count(len(harness.calls), "event")
    run.result(
        _document(harness, settings.path, new) | {"store": place, "changed": changed},
        f"{harness.title} {told} `{command}` at {events} ({settings.path})\n"
        f"turns {_where(run, user)} are saved in {place}",
    )
    if changed and harness.advice:
        run.out.note(harness.advice)


@hooks.command("uninstall")
@_HARNESS
@_USER
@click.pass_obj
def uninstall(run: Invocation, name: str, user: bool) -> None:
    """Take our hooks out of the settings again, and nothing else. What was saved stays.

    \b
    Examples:
      snapstore hooks uninstall claude-code
    """
    harness = HARNESSES[name]
    settings = SettingsFile.read(harness.settings(os.environ, user=user))
    new = entries.removed(settings.document)
    changed = new != settings.document
    if changed and not new and settings.is_our_own:
        settings.remove()
    elif changed:
        settings.write(new)
    told = "no longer runs our hook" if changed else "has no hook of ours"
    run.result(
        _document(harness, settings.path, new) | {"changed": changed},
        f"{harness.title} {told} ({settings.path})",
    )


@hooks.command("status")
@_HARNESS
@_USER
@click.pass_obj
def status(run: Invocation, name: str, user: bool) -> None:
    """Whether hooks are installed, at which events, and whether their command is found.

    Ends with exit code 1 when they are not, or only at some events, or with a command that is not
    there.

    \b
    Examples:
      snapstore hooks status claude-code --user
    """
    harness = HARNESSES[name]
    settings = SettingsFile.read(harness.settings(os.environ, user=user))
    document = _document(harness, settings.path, settings.document)
    missing = [event for event in harness.calls if event not in document["events"]]
    lost = [command for command in document["commands"] if _program(command) is None]
    if run.out.json:
        run.out.document(document | {"missing": missing, "not_found": lost})
    else:
        run.out.say(_sentence(harness, document, missing))
        if document["events"] and not any("--store" in one for one in document["commands"]):
            run.out.say(f"turns {_where(run, user)} are saved in {run.place}")
        for command in lost:
            run.out.warn(f"`{command}` is not found on the PATH: install the hooks again")
    if missing or lost:
        click.get_current_context().exit(1)


def _where(run: Invocation, user: bool) -> str:
    """Of what turns it is true that they are saved in the store that is found now."""
    if run.settings.store:
        return "of every project" if user else "here"
    if named_in_environment():
        return "of a harness that is given $SNAPSTORE_STORE too"
    return "here" if not user else "of sessions in this directory"


def _sentence(harness: Harness, document: dict[str, Any], missing: list[str]) -> str:
    at = f"({document['settings']})"
    if not document["events"]:
        return f"{harness.title} has no hook of ours {at}"
    commands = " and ".join(f"`{command}`" for command in document["commands"])
    events = ", ".join(document["events"])
    without = f"; not at {', '.join(missing)}" if missing else ""
    return f"{harness.title} runs {commands} at {events}{without} {at}"


def _document(harness: Harness, path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    found = entries.commands(settings)
    return {
        "harness": harness.name,
        "settings": str(path),
        "events": list(found),
        "commands": sorted({command for named in found.values() for command in named}),
    }


def _command(store: str | None, redact: bool) -> str:
    """The command line of the hook: by name where the name leads here, else by its whole path."""
    here = Path(sys.argv[0]).absolute()
    found = shutil.which("snapstore")
    by_name = found is not None or here.name != "snapstore" or not here.exists()
    program = "snapstore" if by_name else str(here)
    named = store if store is None or "://" in store else str(Path(store).absolute())
    options = [*(["--store", named] if named else []), *(["--redact"] if redact else [])]
    return shlex.join([program, "hook", *options])


def _program(command: str) -> str | None:
    return shutil.which(shlex.split(command)[0])
