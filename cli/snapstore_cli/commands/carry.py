"""snapstore push, pull, clone: sessions between stores."""

from __future__ import annotations

from pathlib import Path

import click

from snapstore import Refused, Store, refs
from snapstore.transfer.carry import carry
from snapstore.transfer.remotes import DEFAULT, add_remote
from snapstore_cli import elsewhere
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.place import HERE
from snapstore_cli.progress import Bar


@click.command(cls=Command)
@click.argument("other", metavar="[STORE]", required=False)
@click.argument("names", metavar="[NAME]..", nargs=-1)
@click.pass_obj
def push(run: Invocation, other: str | None, names: tuple[str, ...]) -> None:
    """Bring sessions and tags of this store into another one: all, or those that are named.

    STORE is a remote (see `snapstore remote`), a path or a URL; without it the remote `origin`. A
    store that is not there is made. Only what is missing goes over. Where both stores went on with
    a session, the other keeps its own, and ours is put beside it as NAME+1.

    It may be interrupted at any time, and goes on from there when it is run again.

    \b
    Examples:
      snapstore push ~/backup/store
      snapstore push origin fix-login
    """
    place = elsewhere.place_of(run, other)
    elsewhere.require(run.store, names)
    with elsewhere.opened(run, place, create=True) as target:
        _carry(run, run.store, target, names, "push", run.place)


@click.command(cls=Command)
@click.argument("other", metavar="[STORE]", required=False)
@click.argument("names", metavar="[NAME]..", nargs=-1)
@click.pass_obj
def pull(run: Invocation, other: str | None, names: tuple[str, ...]) -> None:
    """Bring sessions and tags of another store here: all, or those that are named.

    STORE is a remote (see `snapstore remote`), a path or a URL; without it the remote `origin`.
    Only what is missing comes over, with the same ids. Where both stores went on with a session,
    ours stays as it is and theirs is put beside it as NAME+1.

    \b
    Examples:
      snapstore pull /mnt/laptop/project/.snapstore
      snapstore pull origin fix-login
    """
    place = elsewhere.place_of(run, other)
    with elsewhere.opened(run, place, create=False) as source:
        elsewhere.require(source, names, place)
        _carry(run, source, run.writable_store, names, "pull", place)


@click.command(cls=Command)
@click.argument("other", metavar="STORE")
@click.argument("path", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.pass_obj
def clone(run: Invocation, other: str, path: Path | None) -> None:
    """Make a store in .snapstore/ here, or in PATH, with all sessions and tags of another one.

    The other store becomes its remote `origin`, so that `snapstore pull` and `snapstore push` know
    where to go. With --store the new store is made at that place instead.

    \b
    Examples:
      snapstore clone /mnt/laptop/project/.snapstore
      snapstore clone s3://bucket/agents ~/agents
    """
    if path is None and run.settings.store:
        place = run.settings.store
    else:
        place = str((path or Path.cwd()).absolute() / HERE)
    other = elsewhere.absolute(other)
    with (
        elsewhere.opened(run, other, create=False) as source,
        elsewhere.opened(run, place, create=True) as target,
    ):
        if next(iter(target.engine.tips(refs.SESSIONS)), None) is not None:
            raise Refused(f"{place} holds sessions already", hint="`snapstore pull` adds to them")
        _carry(run, source, target, (), "clone", other)
        run.out.note(f"a store in {place}")
        add_remote(target, DEFAULT, other)
        if source.current is not None and target.exists(source.current):
            target.switch(source.current)


def _carry(
    run: Invocation,
    source: Store,
    target: Store,
    names: tuple[str, ...],
    op: str,
    described: str,
) -> None:
    with Bar(run.settings, amount=None) as bar:
        done = carry(source, target, names, op=op, described=described, progress=bar.progress)
    elsewhere.tell(run, done)
