"""snapstore export: a session as a file of another program."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from snapstore import InvalidInput
from snapstore.arguments import place
from snapstore.outfile import put
from snapstore.transfer.exports import FORMATS, HARNESSES, Change, Export, Wish, export, sanitized
from snapstore.transfer.install import Installed, install
from snapstore_cli import outfile
from snapstore_cli.command import Command
from snapstore_cli.commands import bundling, html_page
from snapstore_cli.deep import with_room
from snapstore_cli.homes import here, home_of
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import words


@click.command("export", cls=Command)
@click.argument("rev", required=False)
@click.option(
    "--format",
    "format",
    type=click.Choice((*FORMATS, html_page.FORMAT, bundling.FORMAT)),
    required=True,
    help="What to write.",
)
@click.option("-o", "--output", metavar="FILE", help="Where to; else stdout.")
@click.option(
    "--install",
    "installs",
    is_flag=True,
    help="Put it where the program looks for it, and print the command that goes on.",
)
@click.option("--cwd", metavar="DIR", help="Let the session go on in another directory.")
@click.option("--new", is_flag=True, help="Make it a session of its own in any case.")
@click.option(
    "--redact/--no-redact",
    default=None,
    help="Take secrets out: html does unless told not to, the others only when told to.",
)
@click.option("--all", "everything", is_flag=True, help="Of html and bundles: the whole store.")
@click.option(
    "--since",
    metavar="REV",
    multiple=True,
    help="Of a bundle: leave out what this turn leads to.",
)
@click.option("--sanitize", is_flag=True, help="Put U+FFFD in place of lone surrogates.")
@click.pass_obj
def export_(
    run: Invocation,
    rev: str | None,
    format: str,
    output: str | None,
    installs: bool,
    cwd: str | None,
    new: bool,
    redact: bool | None,
    everything: bool,
    sanitize: bool,
    since: tuple[str, ...],
) -> None:
    """Write a session as it stood after a turn, for another program or to read.

    claude-code and codex are sessions that these programs resume. The HEAD of a session that is as
    it was imported comes out byte for byte; every other turn, and what comes of another program,
    is a new session with an id of its own, and holds nothing of later turns. messages is the array
    as it is stored, anthropic and openai are what their APIs take, markdown is for reading. What
    a format cannot carry is told on stderr.

    html is the timeline as one page that any browser shows: history, turns, comparisons, files.
    With --all it is that of every session.

    bundle is one file for another snapstore: a session with all its turns, files too, or every
    session and tag when no REV is given. `snapstore import FILE` brings them in with the same ids.

    \b
    Examples:
      snapstore export fix-login --format claude-code --install
      snapstore export fix-login@3 --format codex -o rollout.jsonl
      snapstore export fix-login@3 --format claude-code --cwd ~/copy --install
      snapstore export fix-login --format markdown --redact > fix-login.md
      snapstore export fix-login --format html -o fix-login.html
      snapstore export --all --format html -o timeline.html
      snapstore export fix-login --format bundle -o fix-login.bundle
    """
    if installs and (output is not None or format not in HARNESSES):
        raise InvalidInput(
            "--install is for claude-code and codex, and takes no -o",
            hint="leave out --install to write a file",
        )
    if everything and (rev is not None or format not in (html_page.FORMAT, bundling.FORMAT)):
        raise InvalidInput("--all is for html and bundles, and takes no REV")
    file = outfile.named(output)
    if format == html_page.FORMAT:
        if sanitize or new or cwd or since:
            raise InvalidInput("a page takes no other options than --all and --no-redact")
        html_page.export_page(run, rev, everything, file, redact is not False)
        return
    if format == bundling.FORMAT:
        if redact or sanitize or installs or new or cwd:
            raise InvalidInput(
                "a bundle holds turns as they are",
                hint="`snapstore purge` takes a text out of all turns",
            )
        bundling.export_bundle(run, rev, file, since, wanted=output is not None)
        return
    if since:
        raise InvalidInput("--since is for --format bundle")
    found = run.revision(rev)
    wish = Wish(
        format,
        cwd=None if cwd is None else str(Path(place(cwd, "--cwd")).expanduser().resolve()),
        here=here(),
        change=_change(bool(redact), sanitize),
        fresh=new,
        beside=installs,
    )
    made = with_room(lambda: export(run.store, found.snapshot, found.session, wish))
    installed = install(made, home_of(format)) if installs else None
    if file is not None:
        put(file, [made.data])
    _tell(run, made, file, installed)


def _change(redact: bool, sanitize: bool) -> Change | None:
    if redact:
        from snapstore.maintenance.redact import redact as without_secrets

        return (lambda value: sanitized(without_secrets(value))) if sanitize else without_secrets
    return sanitized if sanitize else None


# --- telling -------------------------------------------------------------------------------------


def _tell(run: Invocation, made: Export, file: Path | None, installed: Installed | None) -> None:
    for what, times in made.losses:
        run.out.warn(f"not carried: {times} {what}")
    if run.out.json:
        run.out.document(_document(made, file, installed))
    elif installed is not None:
        if not installed.written:
            run.out.note("it is there already")
        if installed.cwd and not Path(installed.cwd).is_dir():
            run.out.warn(
                f"{installed.cwd} is not there, and {made.format} goes on in that directory; "
                "--cwd DIR names another"
            )
        run.out.say(_command(installed))
    elif file is None:
        run.out.raw([made.data])
    else:
        run.out.note(f"{file}: {words.size(len(made.data))}")


def _command(installed: Installed) -> str:
    command = shlex.join(installed.command)
    return f"cd {shlex.quote(installed.cwd)} && {command}" if installed.cwd else command


def _document(made: Export, file: Path | None, installed: Installed | None) -> dict[str, Any]:
    path = installed.path if installed else file
    document: dict[str, Any] = {
        "format": made.format,
        "session_id": made.session_id or None,
        "original": made.is_original,
        "bytes": len(made.data),
        "path": str(path) if path else None,
        "not_carried": [{"what": what, "count": times} for what, times in made.losses],
    }
    if installed is not None:
        document["resume"] = _command(installed)
    if path is None:
        document["text"] = made.data.decode("utf-8", "surrogateescape")
    return document
