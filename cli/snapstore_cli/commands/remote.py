"""snapstore remote: other stores by name."""

from __future__ import annotations

from dataclasses import asdict

import click

from snapstore import InvalidInput
from snapstore.transfer.remotes import (
    Remote,
    add_remote,
    remotes,
    remove_remote,
    set_auto_push,
)
from snapstore_cli import elsewhere
from snapstore_cli.command import Group
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import columns


@click.group(cls=Group, no_args_is_help=False, invoke_without_command=True)
@click.pass_context
def remote(context: click.Context) -> None:
    """Other stores by name, for push and pull. Without a subcommand they are listed.

    \b
    Examples:
      snapstore remote add origin s3://bucket/agents
      snapstore remote add backup /mnt/backup/store --auto-push
      snapstore remote
      snapstore remote remove origin
    """
    if context.invoked_subcommand is None:
        with list_.make_context("list", [], parent=context) as listing:
            list_.invoke(listing)


@remote.command("add")
@click.argument("name")
@click.argument("place", metavar="STORE")
@click.option("--auto-push", is_flag=True, help="Push there after every save.")
@click.pass_obj
def add(run: Invocation, name: str, place: str, auto_push: bool) -> None:
    """Remember another store, a path or a URL, under a name.

    The one named `origin` is meant by `push` and `pull` when none is named.

    With --auto-push what was saved is pushed there by itself after each save, each turn of a chat
    and each phase of a task, in the background: nothing waits for it, and what fails or is offline
    goes over after a later save. `snapstore status` tells when the last such push failed.

    \b
    Examples:
      snapstore remote add origin s3://bucket/agents
      snapstore remote add backup /mnt/backup/store --auto-push
    """
    if not place:
        raise InvalidInput("a remote is a path or a URL, not an empty text")
    place = elsewhere.absolute(place)
    add_remote(run.writable_store, name, place, auto_push=auto_push)
    run.result({"name": name, "place": place, "auto_push": auto_push}, f"{name} is {place}")


@remote.command("set")
@click.argument("name")
@click.option("--auto-push/--no-auto-push", required=True, help="Whether to push after every save.")
@click.pass_obj
def set_(run: Invocation, name: str, auto_push: bool) -> None:
    """Have a remote pushed to after every save, or no longer.

    \b
    Examples:
      snapstore remote set origin --auto-push
      snapstore remote set origin --no-auto-push
    """
    set_auto_push(run.writable_store, name, auto_push)
    told = "is pushed to after every save" if auto_push else "is pushed to only when asked"
    run.result({"name": name, "auto_push": auto_push}, f"{name} {told}")


@remote.command("list")
@click.pass_obj
def list_(run: Invocation) -> None:
    """Every remote and where it is.

    \b
    Examples:
      snapstore remote list
      snapstore remote list --json
    """
    known = remotes(run.store)
    if run.out.json:
        listed = [{"name": name, **asdict(known[name])} for name in sorted(known)]
        run.out.document({"remotes": listed})
    else:
        run.out.lines(columns.lines((_cells(n, known[n]) for n in sorted(known)), run.out.look))


@remote.command("remove")
@click.argument("name")
@click.pass_obj
def remove(run: Invocation, name: str) -> None:
    """Forget a remote. The store that it stands for stays as it is.

    \b
    Examples:
      snapstore remote remove origin
    """
    remove_remote(run.store, name)
    run.result({"name": name, "removed": True}, f"forgot {name}")


def _cells(name: str, one: Remote) -> list[columns.Cell]:
    return [("name", name), ("", one.place), ("dim", "auto-push" if one.auto_push else "")]
