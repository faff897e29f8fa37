"""What a shell may complete: session names, revisions, keys. Errors complete nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from snapstore import SnapstoreError
from snapstore.engine import Kind
from snapstore.ids import MIN_PREFIX, is_hex_prefix
from snapstore_cli.command import GIVEN
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import words
from snapstore_cli.settings import Settings

if TYPE_CHECKING:
    from snapstore import Session

_MOST = 50
"""More candidates than this are no help to anybody."""


def complete(context: click.Context, parameter: str, incomplete: str) -> list[CompletionItem]:
    """The values of a parameter, known by its name, that begin so."""
    settings = Settings.of(context.find_root().meta.get(GIVEN, {}))
    try:
        with Invocation(settings) as run:
            return list(islice(_CANDIDATES[parameter](run, incomplete), _MOST))
    except (SnapstoreError, OSError):
        return []


def _sessions(run: Invocation, incomplete: str) -> Iterator[CompletionItem]:
    infos = (info for info in run.store.sessions() if info.name.startswith(incomplete))
    for info in infos:
        yield CompletionItem(info.name, help=words.count(info.turn, "turn"))


def _revisions(run: Invocation, incomplete: str) -> Iterator[CompletionItem]:
    name, at, _ = incomplete.rpartition("@")
    if at:
        yield from _turns(run, name, incomplete)
        return
    yield from _sessions(run, incomplete)
    for tag in run.store.tags():
        if tag.startswith(incomplete):
            yield CompletionItem(tag, help="tag")
    if is_hex_prefix(incomplete):
        yield from _ids(run, incomplete)


def _turns(run: Invocation, name: str, incomplete: str) -> Iterator[CompletionItem]:
    # @@12 is a turn of the current session
    session: Session = run.existing_session(None if name in ("", "@") else name)
    prefix = "@@" if name in ("", "@") else f"{name}@"
    for snapshot in session.log():
        value = f"{prefix}{snapshot.turn}"
        if value.startswith(incomplete):
            yield CompletionItem(value, help=words.one_line(snapshot.label) or None)


def _ids(run: Invocation, incomplete: str) -> Iterator[CompletionItem]:
    assert len(incomplete) >= MIN_PREFIX
    even = bytes.fromhex(incomplete + "0" * (len(incomplete) % 2))
    for found, kind in run.store.engine.ids(even, len(incomplete)):
        if kind == Kind.SNAPSHOT:
            yield CompletionItem(found.hex())


def _keys(run: Invocation, incomplete: str) -> Iterator[CompletionItem]:
    keys: Iterable[str] = run.existing_session().scratchpad
    return (CompletionItem(key) for key in keys if key.startswith(incomplete))


_CANDIDATES: Mapping[str, Callable[[Invocation, str], Iterator[CompletionItem]]] = {
    "global_session": _sessions,
    "name": _sessions,
    "rev": _revisions,
    "left": _revisions,
    "right": _revisions,
    "words": _revisions,
    "key": _keys,
}
