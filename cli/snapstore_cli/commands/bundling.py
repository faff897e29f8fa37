"""The part of snapstore export that writes bundles: sessions for another store, in one file."""

from __future__ import annotations

from pathlib import Path

from snapstore import InvalidInput
from snapstore.outfile import put
from snapstore.transfer.bundle import bundle, selected
from snapstore_cli.invocation import Invocation
from snapstore_cli.render.words import count, size

FORMAT = "bundle"


def export_bundle(
    run: Invocation, rev: str | None, file: Path | None, since: tuple[str, ...], *, wanted: bool
) -> None:
    """Write a bundle of one session or tag, or of all of them, to a file or to stdout.

    wanted: whether stdout was asked for, and so may be a terminal."""
    store = run.store
    moves = selected(store, [rev] if rev is not None else [])
    pieces = bundle(store, moves, [run.turn(text).raw_id for text in since])
    if file is None:
        if run.out.json:
            raise InvalidInput("a bundle on stdout leaves no room for JSON", hint="name a file: -o")
        if not wanted and run.out.look.terminal:
            raise InvalidInput("a bundle is no text for a terminal", hint="name a file: -o")
        run.out.raw(pieces)
        return
    held = put(file, pieces)
    names = [move.ref for move in moves]
    run.result(
        {"format": FORMAT, "path": str(file), "bytes": held, "refs": names},
        f"{file}: {count(len(moves), 'session or tag')}, {size(held)}",
    )
