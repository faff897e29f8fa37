"""snapstore save: one turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from snapstore import InvalidInput, RefMoved, Session, Snapshot, UnsupportedValue
from snapstore.ids import is_hex_prefix
from snapstore_cli import pushing
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.json_values import parse_setting, read_messages, refuse_odd
from snapstore_cli.render.words import one_line, short


@click.command(cls=Command)
@click.option("-m", "--label", metavar="LABEL", help="What to call this turn.")
@click.option(
    "--messages", metavar="FILE|-", help="Append these messages: a JSON array, or JSON Lines."
)
@click.option(
    "--set", "settings", metavar="K=JSON", multiple=True, help="Set a key of the scratchpad."
)
@click.option("--unset", metavar="K", multiple=True, help="Remove a key of the scratchpad.")
@click.option(
    "--worktree", metavar="DIR", help="Capture the files of DIR, with this turn and from now on."
)
@click.option("--force", is_flag=True, help="Capture even a home directory, of any size.")
@click.option("--expect", metavar="ID", help="Save only if HEAD is this turn; else exit with 4.")
@click.option(
    "--redact", "without_secrets", is_flag=True, help="Leave keys and passwords out; not of files."
)
@click.pass_obj
def save(
    run: Invocation,
    label: str | None,
    messages: str | None,
    settings: tuple[str, ...],
    unset: tuple[str, ...],
    worktree: str | None,
    force: bool,
    expect: str | None,
    without_secrets: bool,
) -> None:
    """Save one turn, and print its id and number.

    Messages are appended to the history of the session (-s, else the current one, else `main`),
    which becomes the current one. When it prints, the turn is durable. A save that would repeat
    the last turn writes nothing.

    With --worktree the files of a directory are kept too, but for what .gitignore and
    .snapstoreignore leave out; later saves of the session capture it again.

    With --redact keys, tokens and passwords in messages, scratchpad and label are replaced before
    anything is written. Files are kept as they are, for a restore brings them back: name those that
    hold secrets in .snapstoreignore.

    \b
    Examples:
      snapstore save -s fix-login -m "first question" --messages turn.jsonl
      echo '[{"role": "user", "content": "hi"}]' | snapstore save --messages -
      snapstore save --set 'file="login.py"' --set tries=3 --unset draft
      snapstore save -m "tests pass" --worktree .
      snapstore save --expect 3f9a0c21 --messages more.jsonl
    """
    # All input is read before the store is touched: what is wrong in it must not make a store.
    new = read_messages(messages) if messages is not None else []
    pairs = dict(parse_setting(text) for text in settings)
    if without_secrets:
        new, pairs, label = _redacted(new, pairs, label)
    session = run.session_to_save
    if expect is not None:
        _expect(session, expect)
    if worktree is not None or force:
        session.bind(worktree or session.worktree, force=force, home=Path.home())
    try:
        session.history.extend_json(new)
    except UnsupportedValue:
        refuse_odd(new)  # names the place in what was handed in, not in the history
        raise
    save_turn(run, session, pairs, unset, label)


def _redacted(
    messages: list[Any], settings: dict[str, Any], label: str | None
) -> tuple[list[Any], dict[str, Any], str | None]:
    from snapstore.maintenance.redact import redact, redact_text

    return redact(messages), redact(settings), label and redact_text(label)


def save_turn(
    run: Invocation,
    session: Session,
    settings: dict[str, Any],
    unset: tuple[str, ...],
    label: str | None,
) -> None:
    """Save what was appended and these changes to the scratchpad, and tell the turn."""
    session.scratchpad.update(settings)
    for key in unset:
        session.scratchpad.pop(key, None)
    before = session.head
    saved = session.save(label)
    run.make_current(session.name)
    if saved.worktree and not Path(saved.worktree).is_dir():
        from snapstore_cli.render import files

        run.out.warn(f"{files.gone(saved.worktree, session.name)}; the files are those of before")
    elif saved.partial:
        run.out.warn(
            "some files could not be read: `show --files` lists them, and a restore of this turn "
            "leaves them alone"
        )
    run.result(_document(session, saved, saved != before), _told(saved, saved != before))
    pushing.begin(run.store)


def _document(session: Session, saved: Snapshot, created: bool) -> dict[str, Any]:
    return {"id": saved.id, "turn": saved.turn, "session": session.name, "created": created}


def _told(saved: Snapshot, created: bool) -> str:
    text = f"{short(saved.id)} turn {saved.turn}"
    if not created:
        return f"{text} (nothing new)"
    return f"{text} {one_line(saved.label)}".rstrip()


def _expect(session: Session, expect: str) -> None:
    if not is_hex_prefix(expect.lower()):
        raise InvalidInput(f"{expect!r} is no id", hint="give at least 4 hex digits of a turn's id")
    head = session.head.id if session.head else ""
    if not head.startswith(expect.lower()):
        expected = bytes.fromhex(expect[: len(expect) // 2 * 2])
        raise RefMoved(session.name, expected, bytes.fromhex(head) or None)
