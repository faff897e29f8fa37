"""snapstore import: sessions of other programs."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from snapstore import InvalidInput, refs
from snapstore.engine import Progress
from snapstore.names import valid_name
from snapstore.snapshot import Line
from snapstore.transfer.imports import Imported
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.progress import Bar
from snapstore_cli.reading import Reader
from snapstore_cli.render import columns, words
from snapstore_cli.render.columns import Cell
from snapstore_cli.side_by_side import read_all, worth_it
from snapstore_cli.sources import Source, moment, sources

_FEW = 3
"""So many warnings are shown unasked."""


@dataclass(frozen=True, slots=True)
class _Skipped:
    """A file in a folder that is no session."""

    path: str
    reason: str


@dataclass(slots=True)
class _Outcome:
    """What became of the files so far."""

    imported: list[Imported] = field(default_factory=list)
    skipped: list[_Skipped] = field(default_factory=list)
    failed: list[InvalidInput] = field(default_factory=list)

    def take(self, source: Source, result: list[Imported] | InvalidInput) -> None:
        """What became of one file."""
        if not isinstance(result, InvalidInput):
            self.imported += result
        elif source.named:
            self.failed.append(result)
        else:
            self.skipped.append(_Skipped(str(source.path), str(result)))


@click.command("import", cls=Command)
@click.argument("paths", metavar="PATH..", nargs=-1, required=True, type=click.Path())
@click.option("--as", "name", metavar="NAME", help="What to call the session; for one file only.")
@click.option(
    "--since", metavar="TIME", help="In folders only files changed since: 2030-01-31, or 7d, 12h."
)
@click.option(
    "--redact",
    "without_secrets",
    is_flag=True,
    help="Take keys and passwords out of transcripts first.",
)
@click.option("--force", is_flag=True, help="Look through a whole home or disk, too.")
@click.pass_obj
def import_(
    run: Invocation,
    paths: tuple[str, ...],
    name: str | None,
    since: str | None,
    without_secrets: bool,
    force: bool,
) -> None:
    """Import sessions of Claude Code and Codex, plain messages as JSON or JSON Lines, and bundles.

    Each PATH is a file, or a folder in which every .jsonl and .json is looked at, however deep.
    Every turn becomes a turn here. What was rewound away or ran beside it becomes NAME/branch-1,
    NAME/sidechain-1, the agents that it called NAME/agent-1. Large outputs and backups of files
    that Claude Code keeps beside a transcript are kept with it. Without --as a session is called by
    its title or its first prompt. A file that holds several sessions makes NAME-1, NAME-2.

    Nothing of a file is lost: `snapstore export` writes it again byte for byte.

    Import again when a session has grown: the new turns are added to it. An unchanged file writes
    nothing. A file that was rewritten becomes NAME+1, and NAME stays.

    A bundle, which `snapstore export --format bundle` wrote, brings its sessions under their names
    and with the same ids; as NAME+1 where this store has gone on with a session differently. It is
    verified first, and refused whole when it is damaged.

    Prints one line a session: name, turns, messages, branches (the live one counts), warnings,
    whether anything was new, and the file. The current session stays what it was. A PATH that is
    no session ends with exit code 2 after the others are imported; in a folder such files are
    passed over.

    \b
    Examples:
      snapstore import ~/.claude/projects
      snapstore import ~/.codex --since 7d
      snapstore import chat.json --as support-case
      snapstore import session.jsonl --json | jq '.sessions[].warnings'
      snapstore import fix-login.bundle
    """
    since_then = moment(since, datetime.now(UTC)) if since else None
    found = sources(paths, since_then, force=force)
    if name is not None:
        valid_name(name)
        if len(found) > 1:
            raise InvalidInput(
                f"--as names one session, and there are {len(found)} files",
                hint="import them one by one, or without --as",
            )
        if not run.writable_store.exists(name):
            refs.refuse_namesake(run.store.engine, refs.SESSIONS + name)
    outcome = _Outcome()
    try:
        with Bar(run.settings) as bar, _collector_paused():
            _import_all(run, found, name, without_secrets, outcome, bar)
    except KeyboardInterrupt:
        _tell(run, outcome)
        run.out.note(f"interrupted: {_so_far(outcome)}; importing again goes on from there")
        raise
    _tell(run, outcome)
    if not found:
        changed = f" that changed since {since}" if since else ""
        where = ", ".join(paths)
        run.out.note(f"no session found in {where}: no .jsonl and no .json{changed} is there")
    if outcome.failed:
        raise outcome.failed[0]


def _import_all(
    run: Invocation,
    found: Sequence[Source],
    name: str | None,
    without_secrets: bool,
    outcome: _Outcome,
    bar: Bar,
) -> None:
    store = run.writable_store
    if worth_it(found, run.place):
        store.engine.create()
        results = read_all(run.place, [source.path for source in found], without_secrets)
        before, total = 0, sum(source.size for source in found)
        for source, result in zip(found, results, strict=True):
            outcome.take(source, result)
            before += source.size
            bar.what = source.path.name
            bar.progress(before, total)
        return
    reader = Reader(store, name, without_secrets)
    for source, progress in _with_progress(found, bar):
        try:
            outcome.take(source, reader.read(source.path, progress))
        except InvalidInput as error:
            outcome.take(source, error)


def _with_progress(found: Sequence[Source], bar: Bar) -> Iterator[tuple[Source, Progress]]:
    before, total = 0, sum(source.size for source in found)
    for source in found:
        bar.what = source.path.name
        bar.progress(before, total)
        yield source, _second_half(bar, before, source.size, total)
        before += source.size


def _second_half(bar: Bar, before: int, size: int, total: int) -> Progress:
    """What draws how far the turns of a file are written; to read it takes as long."""

    def progress(done: int, turns: int) -> None:
        bar.progress(before + size * (turns + done) // (2 * max(turns, 1)), total)

    return progress


@contextmanager
def _collector_paused() -> Iterator[None]:
    """A transcript is a million containers and no cycle: to walk them frees nothing."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _so_far(outcome: _Outcome) -> str:
    if not outcome.imported:
        return "no session had come in"
    return f"{words.count(len(outcome.imported), 'session')} had come in, listed above"


# --- telling ---------------------------------------------------------------------------------


def _tell(run: Invocation, outcome: _Outcome) -> None:
    if run.out.json:
        # Of nothing but failures an error is all that is said.
        if outcome.imported or outcome.skipped or not outcome.failed:
            sessions = [_as_json(imported) for imported in outcome.imported]
            passed_over = [asdict(skipped) for skipped in outcome.skipped]
            run.out.document({"sessions": sessions, "skipped": passed_over})
        return
    rows = [_cells(run, imported) for imported in outcome.imported]
    run.out.lines(columns.lines(rows, run.out.look, whole=0))
    warnings = [(found.name, text) for found in outcome.imported for text in found.warnings]
    few = len(warnings) <= _FEW
    if few or run.settings.verbose:
        for name, text in warnings:
            run.out.warn(f"{name}: {text}")
    elif warnings:
        run.out.note(f"{words.count(len(warnings), 'warning')}; -v shows them")
    if run.settings.verbose:
        for skipped in outcome.skipped:
            run.out.note(f"passed over {skipped.path}: {skipped.reason}")
    elif outcome.skipped:
        number = words.count(len(outcome.skipped), "file")
        run.out.note(f"passed over {number} that hold no session known here; -v lists them")


def _cells(run: Invocation, imported: Imported) -> list[Cell]:
    warnings = len(imported.warnings)
    return [
        ("name", imported.name),
        ("heading", words.count(imported.turns, "turn")),
        ("", _messages(run, imported)),
        ("", f"{imported.branches} {'branch' if imported.branches == 1 else 'branches'}"),
        ("warning" if warnings else "dim", words.count(warnings, "warning")),
        ("added", _news(run, imported)) if imported.created else ("dim", "unchanged"),
        ("dim", Path(imported.source).name),
    ]


def _as_json(imported: Imported) -> dict[str, Any]:
    told = {name: value for name, value in asdict(imported).items() if value is not None}
    told.pop("before", None)
    return told


def _messages(run: Invocation, imported: Imported) -> str:
    """How many messages there are; after a compaction HEAD holds fewer than its turns brought."""
    told = words.count(imported.messages, "message")
    session = run.store.session(imported.name)
    if not imported.created or not 1 <= imported.turns <= session.turn:
        return told
    # A file that came after it in the same run may have added turns.
    head = session.at(imported.turns)
    ever = sum(turn.added() for turn in Line(run.store.objects, head.raw_id))
    return f"{told} now, {ever:,} over all turns" if ever > imported.messages else told


def _news(run: Invocation, imported: Imported) -> str:
    """What an import that wrote something brought: a session, or more turns of one."""
    if imported.added is not None:
        new = imported.added == imported.turns
        return "new" if new else words.count(imported.added, "new turn")
    before = imported.before if imported.before is not None else _turns_before(run, imported.name)
    if before == 0:
        return "new"
    more = imported.turns - before
    return words.count(more, "new turn") if more > 0 else "changed"


def _turns_before(run: Invocation, name: str) -> int:
    """How many turns a session had before its last move."""
    engine, ref = run.store.engine, refs.SESSIONS + name
    tip = engine.tip(ref)
    before = engine.move(ref, tip.gen - 1) if tip and tip.gen > 1 else None
    return run.store.snapshot(before.new).turn if before is not None and before.new else 0
