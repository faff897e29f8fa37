"""The part of snapstore export that writes bundles: sessions for another store, in one file."""

from __future__ import annotations

from pathlib import Path

from snapstore import InvalidInput
from snapstore.disk import DISK
from snapstore.transfer.bundle import bundle, selected
from snapstore_cli.invocation import Invocation
from snapstore_cli.render.words import count, size

FORMAT = "bundle"


def export_bundle(
    run: Invocation, rev: str | None, output: str | None, since: tuple[str, ...]
) -> None:
    """Write a bundle of one session or tag, or of all of them, to a file or to stdout."""
    store = run.store
    moves = selected(store, [rev] if rev is not None else [])
    pieces = bundle(store, moves, [run.turn(text).raw_id for text in since])
    if output in (None, "-"):
        if run.out.json:
            raise InvalidInput("a bundle on stdout leaves no room for JSON", hint="name a file: -o")
        if output is None and run.out.look.terminal:
            raise InvalidInput("a bundle is no text for a terminal", hint="name a file: -o")
        run.out.raw(pieces)
        return
    path = Path(str(output))
    if not path.parent.is_dir():
        raise InvalidInput(f"{path.parent} is no directory")
    DISK.write_pieces(path, pieces)
    held = path.stat().st_size
    names = [move.ref for move in moves]
    run.result(
        {"format": FORMAT, "path": str(path), "bytes": held, "refs": names},
        f"{path}: {count(len(moves), 'session or tag')}, {size(held)}",
    )
