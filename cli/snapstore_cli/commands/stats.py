"""snapstore stats: what a store holds and what it saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.render import words
from snapstore_cli.render.style import Look


@click.command(cls=Command)
@click.pass_obj
def stats(run: Invocation) -> None:
    """What the store holds: sessions, turns, objects, and their bytes.

    `as whole copies` is what the messages would take if every turn kept its whole history; of a
    young store that is less than what is on disk, and left out.

    \b
    Examples:
      snapstore stats
      snapstore stats --json
    """
    found = run.store.stats()
    if run.out.json:
        run.out.document(found)
    else:
        run.out.lines(_lines(found, run.out.look))


def _lines(found: Mapping[str, int], look: Look) -> Iterator[str]:
    for name in ("sessions", "turns", "objects"):
        yield f"{name:<15}  {found[name]:,}"
    kept, whole = found["bytes"], found["logical_bytes"]
    largest = max(kept, whole, 1)
    saves = whole > kept
    for name, number in (("on disk", kept), ("as whole copies", whole))[: 1 + saves]:
        bar = ""
        if look.width is not None:
            room = max(10, min(50, look.width - 32))
            glyph = "█" if look.unicode else "#"
            bar = "  " + look.style("bar", glyph * max(1, round(room * number / largest)))
        yield f"{name:<15}  {words.size(number):>9}{bar}"
    if kept and saves:
        yield f"{'saved':<15}  {100 * (1 - kept / whole):.1f} %"
