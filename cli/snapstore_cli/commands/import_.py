"""snapstore import: sessions of other programs."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click

from snapstore import InvalidInput, Store, formats
from snapstore.engine import Progress
from snapstore.formats import Transcript
from snapstore.names import valid_name
from snapstore.transfer.bundle import MAGIC, is_bundle, open_bundle
from snapstore.transfer.carry import Carried, Outcome, carry
from snapstore.transfer.imports import Imported, import_transcript
from snapstore.transfer.origins import Origins
from snapstore_cli.command import Command
from snapstore_cli.invocation import Invocation
from snapstore_cli.progress import Bar
from snapstore_cli.render import columns, words
from snapstore_cli.render.columns import Cell

_SUFFIXES = (".jsonl", ".json")
_FEW = 3
"""So many warnings are shown unasked."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A file to import."""

    path: Path
    size: int
    named: bool
    """Whether it was named itself; else it was found in a folder."""


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


@click.command("import", cls=Command)
@click.argument("paths", metavar="PATH..", nargs=-1, required=True, type=click.Path())
@click.option("--as", "name", metavar="NAME", help="What to call the session; for one file only.")
@click.option(
    "--redact",
    "without_secrets",
    is_flag=True,
    help="Take keys and passwords out of transcripts first.",
)
@click.pass_obj
def import_(
    run: Invocation, paths: tuple[str, ...], name: str | None, without_secrets: bool
) -> None:
    """Import sessions of Claude Code and Codex, plain messages as JSON or JSON Lines, and bundles.

    Each PATH is a file, or a folder in which every .jsonl and .json is looked at, however deep.
    Every turn becomes a turn here. What was rewound away or ran beside it becomes NAME/branch-1,
    NAME/sidechain-1. Without --as a session is called by its title or its first prompt. A file
    that holds several sessions makes NAME-1, NAME-2.

    Import again when a session has grown: the new turns are added to it. An unchanged file writes
    nothing. A file that was rewritten becomes NAME+1, and NAME stays.

    A bundle, which `snapstore export --format bundle` wrote, brings its sessions under their names
    and with the same ids; as NAME+1 where this store has gone on with a session differently. It is
    verified first, and refused whole when it is damaged.

    Prints one line a session: name, turns, messages, branches (the live one counts), warnings, and
    whether anything was new. The current session stays what it was. A PATH that is no session
    ends with exit code 2 after the others are imported; in a folder such files are passed over.

    \b
    Examples:
      snapstore import ~/.claude/projects
      snapstore import ~/.codex/sessions/2030/01/01/rollout-*.jsonl
      snapstore import chat.json --as support-case
      snapstore import session.jsonl --json | jq '.sessions[].warnings'
      snapstore import fix-login.bundle
    """
    sources = _sources(paths)
    if name is not None:
        valid_name(name)
        if len(sources) > 1:
            raise InvalidInput(
                f"--as names one session, and there are {len(sources)} files",
                hint="import them one by one, or without --as",
            )
    outcome = _Outcome()
    with Bar(run.settings) as bar, _collector_paused():
        reader = _Reader(run.writable_store, name, without_secrets)
        _import_all(reader, sources, outcome, bar)
    _tell(run, outcome)
    if outcome.failed:
        raise outcome.failed[0]


def _import_all(
    reader: _Reader, sources: Sequence[_Source], outcome: _Outcome, bar: Bar
) -> None:
    before, total = 0, sum(source.size for source in sources)
    for source in sources:
        bar.what = source.path.name
        bar.progress(before, total)
        progress = _second_half(bar, before, source.size, total)
        try:
            outcome.imported += reader.read(source.path, progress)
        except InvalidInput as error:
            if source.named:
                outcome.failed.append(error)
            else:
                outcome.skipped.append(_Skipped(str(source.path), str(error)))
        before += source.size


class _Reader:
    """Brings files into one store."""

    def __init__(self, store: Store, name: str | None, without_secrets: bool) -> None:
        self._store = store
        self._name = name
        self._without_secrets = without_secrets
        self._origins = Origins(store.engine)

    def read(self, path: Path, progress: Progress) -> list[Imported]:
        """The sessions of a file. Raises InvalidInput for none, Corrupt for a damaged bundle."""
        try:
            with path.open("rb") as file:
                if is_bundle(file.read(len(MAGIC))):
                    return self._bundle(path)
            transcript = self._transcript(path)
        except OSError as error:
            raise InvalidInput(f"{path}: {error.strerror or error}") from None
        return import_transcript(
            self._store,
            transcript,
            name=self._name,
            source=str(path.resolve()),
            origins=self._origins,
            progress=progress,
        )

    def _transcript(self, path: Path) -> Transcript:
        if not self._without_secrets:
            return formats.read_file(path)
        from snapstore.transfer.redaction import without_secrets

        return formats.read(without_secrets(path.read_bytes()), path.name)

    def _bundle(self, path: Path) -> list[Imported]:
        if self._name is not None or self._without_secrets:
            raise InvalidInput(f"{path} is a bundle: its sessions come in as they are called")
        with open_bundle(path, self._store) as found:
            done = carry(found, self._store, op="import bundle", described=str(path.resolve()))
        return [self._arrived(one, path) for one in done if one.kind == "session"]

    def _arrived(self, one: Carried, path: Path) -> Imported:
        head = self._store.snapshot(one.head)
        return Imported(
            name=one.name,
            source=str(path.resolve()),
            rows=0,
            turns=one.turn,
            messages=len(head.history),
            branches=1,
            warnings=(),
            created=one.outcome not in (Outcome.SAME, Outcome.AHEAD),
        )


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


# --- which files -----------------------------------------------------------------------------


def _sources(paths: Iterable[str]) -> list[_Source]:
    """The files to import, each once: in the order of the paths, in folders by name."""
    found: dict[Path, _Source] = {}
    for path in map(Path, paths):
        if path.is_dir():
            for file in _files_below(path):
                found.setdefault(file, _source(file, named=False))
        else:
            found[path] = _source(path, named=True)
    return list(found.values())


def _source(path: Path, *, named: bool) -> _Source:
    try:
        return _Source(path, path.stat().st_size, named)
    except OSError:
        return _Source(path, 0, named)  # reading it will say why


def _files_below(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(_SUFFIXES):
                yield Path(place, name)


# --- telling ---------------------------------------------------------------------------------


def _tell(run: Invocation, outcome: _Outcome) -> None:
    if run.out.json:
        # Of nothing but failures an error is all that is said.
        if outcome.imported or outcome.skipped or not outcome.failed:
            sessions = [asdict(imported) for imported in outcome.imported]
            passed_over = [asdict(skipped) for skipped in outcome.skipped]
            run.out.document({"sessions": sessions, "skipped": passed_over})
        return
    run.out.lines(columns.lines(map(_cells, outcome.imported), run.out.look))
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


def _cells(imported: Imported) -> list[Cell]:
    warnings = len(imported.warnings)
    return [
        ("name", imported.name),
        ("heading", words.count(imported.turns, "turn")),
        ("", words.count(imported.messages, "message")),
        ("", f"{imported.branches} {'branch' if imported.branches == 1 else 'branches'}"),
        ("warning" if warnings else "dim", words.count(warnings, "warning")),
        ("added", "new") if imported.created else ("dim", "unchanged"),
    ]
