"""Transcripts of other programs as sessions of a store.

Each line of a transcript becomes a session: the live one under a name of its own, the branches
under ``NAME/branch-1``, ``NAME/sidechain-1`` and so on. A line is one commit: its turns and the one
move that shows them.

A transcript is imported again and again while it grows, so each line is compared with where its
session stands:

=================================  ===========================================================
at the line's last turn            nothing is written, unless rows that belong to no turn yet have
                                   come: then HEAD is told of them and stays
beyond it: the session went on     nothing is written
in the store, or the file is old
at a turn of any line of the       HEAD moves to the end of the line. The turn may be on another
transcript                         one: a rewind in the harness turns the old line into a branch
at the last import, whose last     HEAD moves to the end of the line: the transcript was read in
turn has grown since               the middle of a turn
anywhere else                      the line becomes a new session ``NAME+1`` and a warning says so:
                                   the file was rewritten, or both went on
=================================  ===========================================================

What is not the same for every import of the same bytes, or changes while the session goes on,
stands in the info of the move: see origins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from snapstore import refs
from snapstore.engine import Move, Update
from snapstore.errors import RefMoved
from snapstore.formats.transcript import Session, Transcript
from snapstore.model.layout import LAYOUT
from snapstore.model.snapshot import Record
from snapstore.names import MAX_LENGTH, valid_name
from snapstore.objects import Stage
from snapstore.store import Store
from snapstore.transfer.growth import begins_with, differ_beside_history, goes_on_from
from snapstore.transfer.held import Held
from snapstore.transfer.origins import OP, Origins, last_import, origin, source_info
from snapstore.transfer.turns import StagedLine, Teller
from snapstore.worktree.binding import Files


@dataclass(frozen=True, slots=True)
class Saved:
    """What a hook that saves a session knows beside the transcript."""

    files: Files = field(default_factory=Files)
    """For the last turn of the live line, unless it was given files at its end already."""
    marks: Mapping[str, Any] = field(default_factory=dict)
    """Facts about this very import, for the info of its moves: see also held.EARLY."""


NOT_SAVED = Saved()
"""By an import that no hook has made."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of one session of a transcript."""

    name: str
    source: str
    rows: int
    """Whole JSON values in the file, which may hold other sessions too."""
    turns: int
    messages: int
    branches: int
    """Lines, the live one included."""
    warnings: tuple[str, ...]
    created: bool
    """Whether anything was written."""
    added: int | None = None
    """How many turns were written, where each was a move of its own; None elsewhere."""
    before: int | None = field(default=None, compare=False)
    """How many turns it had before, 0 when it is new; None when it was not moved, or not known."""


def import_transcript(
    store: Store,
    transcript: Transcript,
    *,
    name: str | None = None,
    source: str = "",
    origins: Origins | None = None,
    progress: Callable[[int, int], None] | None = None,
    saved: Saved = NOT_SAVED,
    beside: Mapping[str, bytes] | None = None,
) -> list[Imported]:
    """Put every session of a transcript into the store; doing it again writes nothing.

    The session is called name. Without a name it is the session that the same transcript was
    imported as before, else a new one, called what the transcript suggests. Several sessions in a
    transcript are called ``name-1``, ``name-2``, ...

    Source is where the transcript came from, in the same words each time: it tells transcripts
    without a session id apart. Whoever imports many hands in one Origins for all of them, so that
    the store is searched once. Progress is called with (done, total) in turns, now and then. Saved
    is what a hook knows beside the transcript. Beside are the files that its program keeps beside
    it, by their paths (see transfer.beside).

    Raises InvalidInput for a name that is none, and RefMoved when another writer moves one of the
    sessions meanwhile; importing again goes on from there.
    """
    if name is not None:
        valid_name(name)
    origins = origins or Origins(store.engine)
    several = len(transcript.sessions) > 1
    tick = _ticker(transcript, progress)
    notes = tuple(map(str, transcript.warnings))
    found: list[Imported] = []
    for number, session in enumerate(transcript.sessions, 1):
        importing = _Import(store, origins, transcript, source, number, saved, beside or {})
        wanted = suffixed(name, f"-{number}") if name and several else name
        landed, head = importing.run(session, wanted, tick)
        became = Imported(
            name=landed,
            source=source,
            rows=transcript.rows,
            turns=head.turn,
            messages=store.objects.lists.length(head.history),
            branches=1 + len(session.branches),
            warnings=(*notes, *importing.warnings),
            created=importing.wrote,
            before=importing.before,
        )
        found.append(became)
        notes = ()  # they are of the file: its first session tells them
    return found


def suffixed(name: str, suffix: str) -> str:
    """A valid name with something at its end, cut before that where it would be too long."""
    return name[: MAX_LENGTH - len(suffix)] + suffix


def _ticker(
    transcript: Transcript, progress: Callable[[int, int], None] | None
) -> Callable[[int], None]:
    lines = (line for session in transcript.sessions for line in session.lines())
    total, done = sum(len(line.turns) for line in lines), 0

    def tick(turns: int) -> None:
        nonlocal done
        done += turns
        if progress is not None:
            progress(done, total)

    return tick


class _Import:
    """The import of one session of a transcript: staged first, for where a line lands depends on
    all of them; then landed, line by line."""

    def __init__(
        self,
        store: Store,
        origins: Origins,
        transcript: Transcript,
        path: str,
        number: int,
        saved: Saved,
        beside: Mapping[str, bytes],
    ) -> None:
        self._store = store
        self._origins = origins
        self._saved = saved
        self._beside = beside
        self._transcript, self._path, self._number = transcript, path, number
        self._stage = Stage(store.objects)
        self._lines: list[StagedLine] = []
        self._layout: bytes | None = None
        self.warnings: list[str] = []
        self.wrote = False
        self.before: int | None = None

    def run(
        self, session: Session, wanted: str | None, tick: Callable[[int], None]
    ) -> tuple[str, Record]:
        """Commit what is new; the session's name, and its HEAD then."""
        objects = self._store.objects
        held = Held(objects, self._before(session, wanted))
        clock, files = self._store.clock, self._saved.files
        with (
            self._stage as stage,
            Teller(objects, stage, self._transcript, tick, held, files, clock) as teller,
        ):
            self._lines = [teller.stage(line) for line in session.lines()]
            # A file of several sessions is kept with its first.
            self._layout = teller.layout(self._lines, self._beside) if self._number == 1 else None
            live, *branches = self._lines
            name, head = self._land_live(live, wanted)
            for branch in branches:
                beside = suffixed(name, f"/{branch.line.name}")
                self._land(branch, beside, self._namesakes(beside))
            return name, objects.snapshots.record(head)

    def _land_live(self, live: StagedLine, wanted: str | None) -> tuple[str, bytes]:
        if wanted is not None:
            return self._land(live, wanted, self._namesakes(wanted))
        hint = live.line.name
        before = list(self._origins.sessions(self._source(live)["source"]))
        if not before:
            equal = [tip for tip in self._namesakes(hint) if tip.new == live.head]
            return self._land(live, hint, equal, warn=False)
        related = next(filter(self._is_about_the_same, before), None)
        if related is None:
            return self._land(live, hint, before, warn=False)
        return self._land(live, _name(related), before)

    def _land(
        self, line: StagedLine, name: str, candidates: list[Move], *, warn: bool = True
    ) -> tuple[str, bytes]:
        """Give a line to the candidate that it belongs to, else to a new session called name."""
        # One that stands at its end before one that went on from there.
        for tip in sorted(candidates, key=lambda tip: tip.new != line.head):
            if self._holds(tip, line):
                if tip.new == line.head and self._is_laid_out_anew(tip, line):
                    self._commit(line, _name(tip), tip)
                return _name(tip), tip.new or line.head
        for tip in candidates:
            if self._is_held(tip):
                self._commit(line, _name(tip), tip)
                return _name(tip), line.head
        engine = self._store.engine
        taken = refs.live(engine, refs.SESSIONS + name) is not None
        tagged = refs.live(engine, refs.TAGS + name) is not None
        free = next(self._store.free_names(name)) if taken or tagged else name
        if taken and warn:
            self.warnings.append(
                f"session {name} holds something else: the file was rewritten, or both went on. "
                f"It stays as it is, and the file is now {free}"
            )
        self._commit(line, free, None)
        return free, line.head

    def _commit(self, line: StagedLine, name: str, tip: Move | None) -> None:
        info = {**self._saved.marks, **self._source(line)}
        if tip is None and line.parts_from is not None:
            info["forked_from"] = line.parts_from
        if line is self._lines[0] and self._layout is not None:
            info[LAYOUT] = self._layout
        ref, expect = refs.SESSIONS + name, tip.new if tip else None
        base = self._base(tip, line) if tip else None
        update = Update(ref, line.head, expect, OP, self._store.clock(), info, base=base)
        try:
            self._stage.commit(update)
        except RefMoved as moved:
            raise RefMoved(name, moved.expected, moved.actual) from None
        self._origins.add(ref, info["source"])
        self.wrote = True
        if line is self._lines[0]:
            self.before = self._store.objects.snapshots.record(expect).turn if expect else 0

    def _base(self, tip: Move, line: StagedLine) -> int | None:
        """Where undo leads to: what only adds to the last turn is undone with the turn."""
        assert tip.new is not None
        objects = self._store.objects
        same = objects.snapshots.record(tip.new).turn == len(line.ids)
        added = same and goes_on_from(objects, line.head, tip.new, grown=True)
        return tip.base if tip.op == OP and added else None

    def _source(self, line: StagedLine) -> dict[str, Any]:
        branch = "" if line is self._lines[0] else line.line.name
        return self._source_of(line.line.meta, branch=branch)

    def _source_of(self, facts: Mapping[str, Any], *, branch: str = "") -> dict[str, Any]:
        harness = self._transcript.harness
        return source_info(harness, self._path, self._number, facts, branch=branch)

    # --- which session a line belongs to ----------------------------------------------------------

    def _before(self, session: Session, wanted: str | None) -> Iterator[Move]:
        """The last moves of the sessions that this one, or a line of it, may have been before."""
        if wanted is None:
            source = self._source_of(session.live.meta)["source"]
            before = list(self._origins.sessions(source))
        else:
            before = self._namesakes(wanted)
        for tip in before:
            yield tip
            yield from self._store.engine.tips(f"{tip.ref}/") if session.branches else ()

    def _namesakes(self, name: str) -> list[Move]:
        """The session of this name, and those that imports had to put beside it: NAME+1, ..."""
        engine = self._store.engine
        tip = refs.live(engine, refs.SESSIONS + name)
        found = [tip] if tip else []
        for n in count(1):
            beside = engine.tip(refs.SESSIONS + suffixed(name, f"+{n}"))
            if beside is None:
                return found
            if beside.new is not None and origin(engine, beside):
                found.append(beside)
        raise AssertionError("names do not end")

    def _holds(self, tip: Move, line: StagedLine) -> bool:
        """Whether a session holds a whole line already."""
        assert tip.new is not None
        objects = self._store.objects
        there = goes_on_from(objects, tip.new, line.head, grown=True)
        return there and not differ_beside_history(objects, tip.new, line.head)

    def _is_laid_out_anew(self, tip: Move, line: StagedLine) -> bool:
        """Whether the file has other rows than before, though its turns are the same."""
        if line is not self._lines[0] or self._layout is None:
            return False
        before = last_import(self._store.engine, tip)
        return before is None or before.info.get(LAYOUT) != self._layout

    def _is_held(self, tip: Move) -> bool:
        """Whether the lines hold all that a session holds, so that it may move to any of them."""
        old = tip.new
        assert old is not None
        grown = tip.op == OP
        objects = self._store.objects
        return any(goes_on_from(objects, line.head, old, grown=grown) for line in self._lines)

    def _is_about_the_same(self, tip: Move) -> bool:
        """Whether a session came from the same file, or begins with the same turn."""
        assert tip.new is not None
        if self._path and origin(self._store.engine, tip).get("path") == self._path:
            return True
        return begins_with(self._store.objects, tip.new, self._lines[0].ids[0])


def _name(tip: Move) -> str:
    return tip.ref.removeprefix(refs.SESSIONS)
