"""snapstore switch, fork, rename, delete and tag: what names point at."""

from __future__ import annotations

import click

from snapstore import InvalidInput
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import columns
from snapstore_cli.render.words import count, short


@click.command(cls=Command)
@click.argument("name")
@click.pass_obj
def switch(run: Invocation, name: str) -> None:
    """Make NAME the current session, which @ stands for and commands without -s act on.

    \b
    Examples:
      snapstore switch fix-login
    """
    session = run.existing_session(name)
    run.make_current(name)
    head = session.head
    assert head is not None
    document = {"session": name, "turn": head.turn, "head": head.id}
    run.result(document, f"now on {name}, turn {head.turn} ({short(head.id)})")


@click.command(cls=Command)
@click.argument("words", nargs=-1, required=True, metavar="[REV] NAME")
@click.option("--switch", "switch_to", is_flag=True, help="Make it the current session.")
@click.pass_obj
def fork(run: Invocation, words: tuple[str, ...], switch_to: bool) -> None:
    """Start a session NAME from a turn: REV, or the current session's HEAD.

    It shares the history by hash, so it costs a few bytes whatever the length.

    \b
    Examples:
      snapstore fork fix-login@2 try-redis
      snapstore fork try-again --switch
    """
    if len(words) > 2:
        raise click.UsageError("give [REV] NAME, not more")
    name = words[-1]
    source = run.turn(words[0] if len(words) == 2 else None)
    run.store.fork(source, name)
    if switch_to:
        run.make_current(name)
    document = {
        "session": name,
        "id": source.id,
        "turn": source.turn,
        "forked_from": source.id,
        "current": switch_to,
    }
    run.result(document, f"{name} starts from turn {source.turn} ({short(source.id)})")


@click.command(cls=Command)
@click.argument("words", nargs=-1, required=True, metavar="[OLD] NEW")
@click.pass_obj
def rename(run: Invocation, words: tuple[str, ...]) -> None:
    """Give a session another name: OLD, or the current one. Its turns and ids stay.

    \b
    Examples:
      snapstore rename main fix-login
      snapstore rename better-name
    """
    if len(words) > 2:
        raise click.UsageError("give [OLD] NEW, not more")
    new = words[-1]
    old = words[0] if len(words) == 2 else run.session_to_move
    run.store.rename(old, new)
    run.result({"session": new, "from": old}, f"{old} is now called {new}")


@click.command(cls=Command)
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def delete(context: click.Context, name: str, yes: bool) -> None:
    """Take a session out of the list. Its turns stay, and `undo -s NAME` brings it back.

    Asks on a terminal, never elsewhere.

    \b
    Examples:
      snapstore delete try-redis
      snapstore delete try-redis --yes
    """
    run: Invocation = context.obj
    head = run.existing_session(name).head
    assert head is not None
    question = f"delete {name} ({count(head.turn, 'turn')})?"
    if run.may_ask and not yes and not click.confirm(question, err=True):
        run.out.note("nothing was deleted")
        context.exit(1)
    run.store.delete(name)
    document = {"session": name, "deleted": True, "head": head.id}
    run.result(document, f"deleted {name}; `snapstore undo -s {name}` brings it back")


@click.command(cls=Command)
@click.argument("name", required=False)
@click.argument("rev", required=False)
@click.option("-d", "--delete", "remove", is_flag=True, help="Remove the tag.")
@click.pass_obj
def tag(run: Invocation, name: str | None, rev: str | None, remove: bool) -> None:
    """Name a turn for good: REV, or the current session's HEAD. Without NAME, list the tags.

    A tag is a revision, and moves only when it is set again. Sessions and tags have no names in
    common.

    \b
    Examples:
      snapstore tag before-refactoring
      snapstore tag v1 fix-login@12
      snapstore tag
      snapstore tag -d v1
    """
    if name is None:
        _list_tags(run)
        return
    if remove:
        if rev is not None:
            raise InvalidInput("a tag is removed by its name alone")
        run.store.untag(name)
        run.result({"tag": name, "deleted": True}, f"removed tag {name}")
        return
    snapshot = run.turn(rev)
    before = run.store.tags().get(name)
    run.store.tag(name, snapshot)
    document = {"tag": name, "id": snapshot.id, "turn": snapshot.turn}
    text = f"{name} names turn {snapshot.turn} ({short(snapshot.id)})"
    if before is not None and before != snapshot.id:
        text += f", moved from turn {run.store.snapshot(before).turn} ({short(before)})"
    run.result(document, text)


def _list_tags(run: Invocation) -> None:
    tags = {name: run.store.snapshot(found) for name, found in run.store.tags().items()}
    if run.out.json:
        listed = [{"tag": name, "id": s.id, "turn": s.turn} for name, s in tags.items()]
        run.out.document({"tags": listed})
        return
    rows: list[list[columns.Cell]] = [
        [("name", name), ("id", short(s.id)), ("heading", f"turn {s.turn}"), ("", s.label)]
        for name, s in tags.items()
    ]
    run.out.lines(columns.lines(rows, run.out.look))
