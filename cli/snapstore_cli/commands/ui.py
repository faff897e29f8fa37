"""snapstore ui: the timeline of the store in a browser."""

from __future__ import annotations

import sys
import threading
import webbrowser
from pathlib import Path

import click

from snapstore import InvalidInput
from snapstore.formats.html import REDACTED
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.serving import HOST, Server, Timeline


@click.command(cls=Command)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Where to listen on 127.0.0.1; a free port when not given.",
)
@click.option("--no-open", is_flag=True, help="Only print the address.")
@click.option("--redact", is_flag=True, help="Show secrets as [redacted:RULE].")
@click.pass_obj
def ui(run: Invocation, port: int, no_open: bool, redact: bool) -> None:
    """Show the timeline in a browser, until Ctrl-C.

    History, turns, comparisons, scratchpad, files and storage; a new save appears by itself. The
    page is served on this machine only, to whoever has the address that is printed, and changes
    nothing: it offers the commands that do, to copy.

    \b
    Examples:
      snapstore ui
      snapstore ui --no-open --port 8765
      snapstore export --all --format html -o timeline.html   the same as a file
    """
    title = Path(run.place).resolve().parent.name if "://" not in run.place else run.place
    timeline = Timeline(run.store, title or "snapstore", REDACTED if redact else None)
    try:
        server = Server(timeline, port)
    except OSError as error:
        raise InvalidInput(
            f"cannot listen on {HOST}:{port}: {error.strerror}", hint="choose another --port"
        ) from error
    with server:
        if run.out.json:
            run.out.document({"url": server.url, "port": server.server_port})
        else:
            run.out.say(server.url)
            run.out.note("Ctrl-C stops it")
        sys.stdout.flush()
        threading.Thread(target=timeline.prepare, daemon=True).start()
        if not no_open:
            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            run.out.note("stopped")
