"""The part of snapstore export that writes the timeline as one page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from snapstore import InvalidInput
from snapstore.disk import DISK
from snapstore_cli.invocation import Invocation
from snapstore_cli.render.words import count, size

if TYPE_CHECKING:
    from snapstore.formats.html import Branches

FORMAT = "html"


def export_page(
    run: Invocation, rev: str | None, everything: bool, output: str | None, redacted: bool
) -> None:
    """Write the page of one line, as it stood after a turn, or of the whole store."""
    from snapstore.formats.html import branches, export

    shown, title = (branches(run.store), "snapstore") if everything else _line(run, rev)
    pieces = export(run.store, shown, title, redacted=redacted)
    if output in (None, "-"):
        if run.out.json:
            raise InvalidInput("a page on stdout leaves no room for JSON", hint="name a file: -o")
        run.out.raw(pieces)
        return
    path = Path(str(output))
    if not path.parent.is_dir():
        raise InvalidInput(f"{path.parent} is no directory")
    DISK.write_pieces(path, pieces)
    held = path.stat().st_size
    facts = {"format": FORMAT, "path": str(path), "bytes": held, "redacted": redacted}
    run.result(facts, f"{path}: {count(len(shown.named), 'session or tag')}, {size(held)}")


def _line(run: Invocation, rev: str | None) -> tuple[Branches, str]:
    """The line of one turn, and nothing that came after it."""
    from snapstore.formats.html import Branches, Named

    found = run.revision(rev)
    name = found.session or found.snapshot.id[:12]
    return Branches((Named(name, found.snapshot.raw_id),)), name
