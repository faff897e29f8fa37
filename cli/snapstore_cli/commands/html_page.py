"""The parts of snapstore export and diff that write a page for a browser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from snapstore import InvalidInput
from snapstore.outfile import put
from snapstore.revisions import Revision
from snapstore_cli.invocation import Invocation
from snapstore_cli.render.words import count, size

if TYPE_CHECKING:
    from snapstore.formats.html import Branches

FORMAT = "html"


def export_page(
    run: Invocation, rev: str | None, everything: bool, file: Path | None, redacted: bool
) -> None:
    """Write the page of one line, as it stood after a turn, or of the whole store."""
    from snapstore.formats.html import branches, export

    if everything:
        shown, title = branches(run.store), "snapstore"
    else:
        found = run.revision(rev)
        shown, title = _lines([found]), _name(found)
    pieces = export(run.store, shown, title, redacted=redacted, whole=everything)
    _write(run, file, pieces, redacted, _counted(shown))


def diff_page(
    run: Invocation, left: str, right: str | None, file: Path | None, redacted: bool
) -> None:
    """Write the page of two lines, which opens with their comparison."""
    from snapstore.formats.html import export

    sides = run.revision(left), run.revision(right)
    title = " and ".join(_sides_names(*sides))
    start = "/".join(["compare", *(side.snapshot.id[:16] for side in sides)])
    pieces = export(run.store, _lines(sides), title, redacted=redacted, start=start)
    _write(run, file, pieces, redacted, title)


def _counted(shown: Branches) -> str:
    tags = sum(one.is_tag for one in shown.named)
    sessions = count(len(shown.named) - tags, "session")
    return f"{sessions}, {count(tags, 'tag')}" if tags else sessions


def _name(found: Revision) -> str:
    return found.session or found.snapshot.id[:12]


def _sides_names(left: Revision, right: Revision) -> list[str]:
    """What two sides are called: by their turns where the session is the same."""
    names = [_name(left), _name(right)]
    if names[0] != names[1]:
        return names
    return [f"{_name(side)}@{side.snapshot.turn}" for side in (left, right)]


def _lines(found: Sequence[Revision]) -> Branches:
    """The lines of turns, and nothing that came after them. Of two turns of one session the later
    bears its name."""
    from snapstore.formats.html import Branches, Named

    latest = {_name(one): one for one in sorted(found, key=lambda one: one.snapshot.turn)}
    named = tuple(Named(name, one.snapshot.raw_id) for name, one in latest.items())
    heads = {one.head for one in named}
    others = (one.snapshot.raw_id for one in found if one.snapshot.raw_id not in heads)
    return Branches(named, tuple(others))


def _write(
    run: Invocation, file: Path | None, pieces: Iterable[bytes], redacted: bool, what: str
) -> None:
    if file is not None:
        held = put(file, pieces)
        facts = {"format": FORMAT, "path": str(file), "bytes": held, "redacted": redacted}
        run.result(facts, f"{file}: {what}, {size(held)}")
    elif run.out.json:
        raise InvalidInput("a page on stdout leaves no room for JSON", hint="name a file")
    else:
        run.out.raw(pieces)
