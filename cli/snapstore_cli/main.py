"""The entry point: a table of commands, each imported when it is run and not before.

``snapstore --help`` and ``--version`` import click and nothing of snapstore, so a shell prompt or a
completion that calls them never waits.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from snapstore_cli.command import GIVEN, Group, LazyCommand

COMMANDS: dict[str, tuple[LazyCommand, ...]] = {
    "Sessions and turns": (
        LazyCommand("init", "init:init", "Make a store in .snapstore/ here."),
        LazyCommand("save", "save:save", "Save a turn: messages, scratchpad, label."),
        LazyCommand("sessions", "sessions:sessions", "List every session.", ("list",)),
        LazyCommand("status", "status:status", "Where you stand: store, session, turn."),
        LazyCommand("switch", "naming:switch", "Make a session the current one."),
        LazyCommand("fork", "naming:fork", "Start a session from a turn of another."),
        LazyCommand("rename", "naming:rename", "Give a session another name."),
        LazyCommand(
            "delete", "naming:delete", "Take a session out of the list; undo brings it back."
        ),
        LazyCommand("tag", "naming:tag", "Name a turn, or list the tags."),
        LazyCommand("scratch", "scratch:scratch", "Read and write the scratchpad."),
    ),
    "Looking": (
        LazyCommand("log", "log:log", "The turns of a session, newest first."),
        LazyCommand("show", "show:show", "One turn: messages, scratchpad, files."),
        LazyCommand("diff", "diff:diff", "What two turns or sessions do not share."),
        LazyCommand("ui", "ui:ui", "The timeline in a browser."),
        LazyCommand("find", "find:find", "Search prompts, tool calls, results, files."),
        LazyCommand("resume", "resume:resume", "What a harness needs to go on."),
    ),
    "Going back and forth": (
        LazyCommand("rewind", "moving:rewind", "Move HEAD back to an earlier turn."),
        LazyCommand("restore", "moving:restore", "Bring back files of a turn; HEAD stays."),
        LazyCommand("undo", "moving:undo", "Take back the last moves of a session."),
        LazyCommand("redo", "moving:redo", "Go forth again over what undo took back."),
        LazyCommand("op", "op:op", "Every move of every ref.", ()),
        LazyCommand("reflog", "op:op_log", "The same as `op log`."),
    ),
    "Work": (
        LazyCommand("chat", "chat:chat", "Talk to an agent; every turn is saved."),
        LazyCommand("task", "task:task", "Phases of commands, none of which runs twice."),
    ),
    "Other programs": (
        LazyCommand("import", "import_:import_", "Read sessions of Claude Code, Codex and others."),
        LazyCommand("export", "export:export_", "Write a session for another program, or to read."),
        LazyCommand("hooks", "hooks:hooks", "Have every turn of a harness saved by itself."),
        LazyCommand("hook", "hook:hook", "What the harness then runs."),
    ),
    "Other stores": (
        LazyCommand("push", "carry:push", "Bring sessions into another store."),
        LazyCommand("pull", "carry:pull", "Bring sessions of another store here."),
        LazyCommand("clone", "carry:clone", "Make a store with the sessions of another."),
        LazyCommand("remote", "remote:remote", "Other stores, by name."),
    ),
    "Care of the store": (
        LazyCommand("verify", "verify:verify", "Check every byte and every link.", ("fsck",)),
        LazyCommand("stats", "stats:stats", "What the store holds, and what it saves."),
        LazyCommand("scan", "scan:scan", "Look for keys and passwords in what was saved."),
        LazyCommand("purge", "purge:purge", "Take a text out of every turn for good."),
        LazyCommand("repair", "repair:repair", "Go on with what is whole after damage."),
        LazyCommand("gc", "gc:gc", "Let go of what nothing reaches, and pack the rest."),
        LazyCommand("doctor", "doctor:doctor", "Whether all is well, and what to do if not."),
        LazyCommand("recover", "recover:recover", "Find turns that no session leads to."),
        LazyCommand("forget", "forget:forget", "Delete old sessions by a rule."),
    ),
    "Getting to know it": (
        LazyCommand("tour", "tour:tour", "A guided walk through a store made for it."),
        LazyCommand("completion", "completion:completion", "Print shell completion."),
    ),
}


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    import runpy
    from importlib.util import find_spec
    from pathlib import Path

    # Importing the package for one string would load the whole library.
    spec = find_spec("snapstore")
    assert spec is not None and spec.origin is not None
    found = runpy.run_path(str(Path(spec.origin).with_name("_version.py")))
    click.echo(f"snapstore {found['__version__']}")
    ctx.exit()


@click.group(
    cls=Group,
    table=COMMANDS,
    hide_global_options=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Keep the sessions of AI agents: every turn can be gone back to, every fork is free.

    \b
    Turns are named like this:
      fix-login        the last turn of a session (or a tag)
      fix-login@12     turn 12 of its line
      fix-login~3      three turns before the last
      fix-login@{2}    where it was 2 moves ago
      @  @~1  @@12     the current session, and turns of it
      3f9a0c           an id, or the first 4 digits of it or more

    \b
    Begin with:
      snapstore init
      echo '[{"role": "user", "content": "hi"}]' | snapstore save --messages -
      snapstore log
    """
    if ctx.invoked_subcommand is None:
        if ctx.meta.get(GIVEN, {}).get("json"):
            raise click.UsageError("name a command", ctx)
        click.echo(ctx.get_help())


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; never raises."""
    args = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    # Messages may hold integers of any size, and Python would read and write 4,300 digits only.
    sys.set_int_max_str_digits(0)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the output's encoding lacks is written out; no text may end a command.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if "_SNAPSTORE_COMPLETE" in os.environ:
            cli.main(list(args), prog_name="snapstore")
        # A copy, for click takes the words away that it has read, and an error report needs them.
        with cli.make_context("snapstore", list(args)) as context:
            cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:
        return _flushed(ended.exit_code, args)
    except BaseException as error:
        from snapstore_cli.errors import report

        return report(error, args)
    return 0


def _open_closed_streams() -> None:
    """Let the standard streams that the caller closed read nothing and write nowhere.

    Not only in name: a descriptor below 3 left free would become that of a file of the store, and
    what a child process says would be written into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # It takes the lowest free descriptor, which is the one of the stream.
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def _flushed(code: int, args: Sequence[str]) -> int:
    try:
        sys.stdout.flush()
    except OSError as error:
        from snapstore_cli.errors import report

        return report(error, args)
    return code
