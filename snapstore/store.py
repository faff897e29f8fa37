"""The store: sessions, tags and snapshots over one engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snapstore import arguments, current, refs, revisions
from snapstore.engine import Engine, Move, Problem, Progress, Update
from snapstore.errors import (
    Corrupt,
    InvalidInput,
    NotFound,
    RefMoved,
    Refused,
    SnapstoreError,
    StoreNotFound,
    UnsupportedFormat,
)
from snapstore.names import numbered, valid_name
from snapstore.objects import Objects
from snapstore.session import Session
from snapstore.snapshot import Snapshot, raw_id_of

if TYPE_CHECKING:
    from snapstore.diff import Diff
    from snapstore.maintenance.gc import Collected
    from snapstore.maintenance.repair import Repaired
    from snapstore.tasks.lease import Leases
    from snapstore.tasks.report import Report
    from snapstore.tasks.runner import Phases
    from snapstore.worktree.directory import Worktree
    from snapstore.worktree.local import Local
    from snapstore.worktree.restore import Restored


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session in a list."""

    name: str
    head: str
    turn: int
    time: datetime | None
    forked_from: str | None
    """Id of the snapshot that it was forked from; None also where damage hides it."""
    messages: int
    problem: str | None = None
    """Why it cannot be read, when it cannot; turn and messages are 0 then."""


def now() -> int:
    """Microseconds since the epoch, UTC."""
    return time.time_ns() // 1000


class Store:
    """Sessions over an engine. Several threads may use one store."""

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Callable[[], int] = now,
        local: Local | None = None,
        here: Local | None = None,
    ) -> None:
        """A store over an engine; local is its directory on this machine, if it has one, and here
        where this machine keeps what is its own of a store that others use too."""
        self.engine = engine
        self.clock = clock
        self.objects = Objects(engine)
        self.local = local
        self.here = here or local
        self._worktrees: dict[Path, Worktree] = {}
        self._leases: Leases | None = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Give everything back; use afterwards is an error."""
        self.engine.close()

    # --- sessions ---------------------------------------------------------------------------------

    def session(self, name: str) -> Session:
        """The session of this name; one that is not there is empty, and made by its first save.

        Raises InvalidInput for what cannot be a name.
        """
        valid_name(name)
        return Session(self, name)

    def sessions(self) -> list[SessionInfo]:
        """Every session, by name; one that cannot be read is listed with its problem."""
        return [self._info(tip) for tip in self.engine.tips(refs.SESSIONS) if tip.new]

    def _info(self, tip: Move) -> SessionInfo:
        assert tip.new is not None
        name = tip.ref.removeprefix(refs.SESSIONS)
        forked_from = self._origin(tip)
        try:
            head = self.snapshot(tip.new)
            messages = self.objects.lists.length(head.record.history)
        except SnapstoreError as error:
            return SessionInfo(name, tip.new.hex(), 0, None, forked_from, 0, str(error))
        return SessionInfo(name, head.id, head.turn, head.time, forked_from, messages)

    def _origin(self, tip: Move) -> str | None:
        try:
            born = tip if tip.born == tip.gen else self.engine.move(tip.ref, tip.born)
        except (Corrupt, UnsupportedFormat):
            return None  # the session can be listed, and its turns read, all the same
        origin = born.info.get("forked_from") if born else None
        return origin.hex() if origin else None

    def last_saved(self) -> str | None:
        """The session that was saved last; None when there are no sessions."""
        from snapstore.latest import last_saved

        return last_saved(self)

    def exists(self, name: str) -> bool:
        """Whether there is a session of this name."""
        return refs.live(self.engine, refs.SESSIONS + arguments.text(name, "a name")) is not None

    def fork(self, source: Snapshot, name: str) -> Session:
        """A new session that starts from a turn.

        Raises Refused when the name is taken, ObjectMissing when the turn is of another store.
        """
        valid_name(name)
        refs.refuse_namesake(self.engine, refs.SESSIONS + name)
        self.snapshot(raw_id_of(source))
        info = {"forked_from": source.raw_id}
        try:
            refs.create(
                self.engine, refs.SESSIONS + name, source.raw_id, "fork", self.clock(), info
            )
        except RefMoved:
            raise Refused(
                f"there is a session {name} already", hint="choose another name, or delete it first"
            ) from None
        return Session(self, name)

    def delete(self, name: str) -> None:
        """Take a session out of the list. Its turns stay, and undo brings it back."""
        self._known(name)
        refs.delete(self.engine, refs.SESSIONS + name, self.clock())

    def rename(self, old: str, new: str) -> None:
        """Give a session another name. When it is the current one it stays that."""
        valid_name(new)
        self._known(old)
        refs.refuse_namesake(self.engine, refs.SESSIONS + new)
        refs.rename(self.engine, refs.SESSIONS + old, refs.SESSIONS + new, self.clock())
        current.follow_rename(self)

    def _known(self, name: str) -> None:
        if not self.exists(name):
            raise revisions.unknown(self, name)

    def undo(self, name: str, *, force: bool = False) -> Move:
        """Take back the last move of a session, a deletion too. Raises NothingToDo."""
        return self.step_back(name, force=force)[0]

    def redo(self, name: str, *, force: bool = False) -> Move:
        """Go forth again over what undo took back. Raises NothingToDo."""
        return self.step_forth(name, force=force)[0]

    def step_back(self, name: str, *, force: bool = False) -> tuple[Move, Restored | None]:
        """As undo; also what it did to files."""
        ref = self._moved(name)
        if self._did_to_files(ref, "back"):
            from snapstore.worktree import moves

            return moves.undo(self, ref, force=force)
        moved = refs.step_back(self.engine, ref, self.clock())
        current.follow_rename(self)
        return moved, None

    def step_forth(self, name: str, *, force: bool = False) -> tuple[Move, Restored | None]:
        """As redo; also what it did to files."""
        ref = self._moved(name)
        if self._did_to_files(ref, "forth"):
            from snapstore.worktree import moves

            return moves.redo(self, ref, force=force)
        moved = refs.step_forth(self.engine, ref, self.clock())
        current.follow_rename(self)
        return moved, None

    def _did_to_files(self, ref: str, way: str) -> bool:
        tip = self.engine.tip(ref)
        return tip is not None and way in tip.info

    def _moved(self, name: str) -> str:
        ref = refs.SESSIONS + arguments.text(name, "a name")
        if self.engine.tip(ref) is None:
            raise revisions.unknown(self, name)
        return ref

    def free_names(self, name: str) -> Iterator[str]:
        """name+1, name+2, ...: those that no session and no tag has or had."""
        kinds = (refs.SESSIONS, refs.TAGS)
        for candidate in numbered(name):
            if all(self.engine.tip(kind + candidate) is None for kind in kinds):
                yield candidate

    def worktree(self, root: Path) -> Worktree:
        """The directory of this absolute path, as this store captures it."""
        from snapstore.worktree.directory import Worktree

        return self._worktrees.setdefault(root, Worktree(self.objects, root, self.here))

    # --- the current session ----------------------------------------------------------------------

    @property
    def current(self) -> str | None:
        """The session that @ stands for; None when none was chosen."""
        return current.chosen(self)

    def switch(self, name: str) -> None:
        """Make a session the current one. Writes nothing when it is already."""
        current.choose(self, name)

    # --- tags -------------------------------------------------------------------------------------

    def tag(self, name: str, snapshot: Snapshot) -> None:
        """Name a turn for good; an existing tag is moved.

        Raises Refused when a session has the name, ObjectMissing when the turn is of another store.
        """
        valid_name(name)
        refs.refuse_namesake(self.engine, refs.TAGS + name)
        self.snapshot(raw_id_of(snapshot))
        tip = self.engine.tip(refs.TAGS + name)
        expect = tip.new if tip else None
        if expect != snapshot.raw_id:
            update = Update(refs.TAGS + name, snapshot.raw_id, expect, "tag", self.clock())
            self.engine.commit([], update)

    def untag(self, name: str) -> None:
        """Remove a tag. Raises NotFound."""
        refs.delete(self.engine, refs.TAGS + arguments.text(name, "a name"), self.clock())

    def tags(self) -> dict[str, str]:
        """Every tag and the id of its snapshot."""
        tips = self.engine.tips(refs.TAGS)
        return {m.ref.removeprefix(refs.TAGS): m.new.hex() for m in tips if m.new}

    # --- turns ------------------------------------------------------------------------------------

    def snapshot(self, snapshot_id: bytes | str) -> Snapshot:
        """The snapshot of this full id. Raises ObjectMissing or Corrupt."""
        return Snapshot(self.objects, arguments.raw_id(snapshot_id))

    def resolve(self, revision: str, *, current: str | None = None) -> Snapshot:
        """The turn that a revision names. Raises InvalidInput, NotFound or Ambiguous."""
        return self.revision(revision, current=current).snapshot

    def revision(self, text: str, *, current: str | None = None) -> revisions.Revision:
        """What a revision names: the turn, the session if one was named, the path after a colon."""
        return revisions.resolve(self, text, current or self.current)

    def diff(self, left: str | Snapshot | Session, right: str | Snapshot | Session) -> Diff:
        """What two turns, or the heads of two sessions, do not have in common."""
        from snapstore.diff import compare

        return compare(self, self._side(left), self._side(right))

    def _side(self, side: str | Snapshot | Session) -> Snapshot:
        if isinstance(side, Snapshot):
            return side
        if isinstance(side, Session):
            if side.head is None:
                raise NotFound(f"session {side.name} has no turn yet")
            return side.head
        return self.resolve(side)

    # --- tasks ------------------------------------------------------------------------------------

    @property
    def leases(self) -> Leases:
        """What keeps two runners of one task apart."""
        if self._leases is None:
            from snapstore.tasks.lease import FileLeases, leases_of

            local = self.local
            self._leases = (
                FileLeases(local.root / "leases", local.disk) if local else leases_of(self.engine)
            )
        return self._leases

    def run_task(self, name: str, phases: Phases, **options: Any) -> Report:
        """Run phases, none of which runs again once it finished; see ``snapstore.tasks.run_task``.

        ``phases`` are pairs of a name and a function, or ``snapstore.tasks.Phase`` objects.
        """
        from snapstore.tasks.runner import run_task

        return run_task(self, name, phases, **options)

    async def run_task_async(self, name: str, phases: Phases, **options: Any) -> Report:
        """As ``run_task``, for async phases; see ``snapstore.tasks.run_task_async``."""
        from snapstore.tasks.runner import run_task_async

        return await run_task_async(self, name, phases, **options)

    # --- care -------------------------------------------------------------------------------------

    def verify(
        self, progress: Progress | None = None, *, quick: bool = False, share: float = 1.0
    ) -> list[Problem]:
        """Check every byte and every link; the problems with the turns that they touch, none when
        all is well. Quick: the links only. Share: of the bytes, a random part this large."""
        from snapstore.maintenance.verify import verify

        return list(verify(self, progress, quick=quick, share=share))

    def repair(self, *, apply: bool = False) -> Repaired:
        """Go on with what is whole after data was damaged. See ``snapstore.maintenance.repair``."""
        from snapstore.maintenance.repair import repair

        return repair(self, apply=apply)

    def gc(self, *, apply: bool = False, grace: timedelta | None = None) -> Collected:
        """What nothing reaches any more: shown, and with ``apply`` dropped. What only undo reaches
        counts as reached for a grace time of 90 days. See ``snapstore.maintenance.gc``."""
        from snapstore.maintenance.gc import REFLOG, collect

        return collect(self, apply=apply, grace=REFLOG if grace is None else grace)

    def stats(self, progress: Progress | None = None) -> dict[str, Any]:
        """Counts and sizes: objects, bytes, logical_bytes, sessions, turns."""
        from snapstore.maintenance.stats import stats

        return stats(self, progress)


def given_store(given: object) -> Store:
    """What a caller gave as an open store. Raises InvalidInput for anything else."""
    if isinstance(given, Store):
        return given
    raise InvalidInput(f"a store is what snapstore.open() returns, not {given!r}")


def open_store(
    where: str | Path = ".snapstore",
    *,
    create: bool = True,
    durable: bool = True,
    clock: Callable[[], int] = now,
    cache: str | Path | bool = True,
    state: str | Path | bool = True,
    options: Mapping[str, str] | None = None,
) -> Store:
    """Open a store: a directory, ``memory://``, or in an object store ``s3://bucket/prefix``,
    ``gs://bucket/prefix``, ``az://container/prefix``.

    A directory or prefix that holds no store becomes one with the first save; with
    ``create=False`` that is StoreNotFound. ``durable=False`` does not wait for the disk: for tests
    and bulk loads.

    Of an object store, what was fetched is kept in ``cache``: a directory, True for one among the
    user's caches, False for none. What is this machine's own is kept in ``state``, likewise: the
    current session, and what makes captures quick and lets restores be taken up again. Its
    credentials and endpoint come from the variables that its provider's own tools read (``AWS_*``,
    ...); ``options`` (``endpoint``, ``region``, ``access_key_id``, ``secret_access_key``, ...)
    come before them.
    """
    from snapstore.engines.log.engine import LogEngine
    from snapstore.engines.memory import MemoryEngine
    from snapstore.links import links
    from snapstore.worktree.local import Local

    where = arguments.place(where, "the place of a store")
    if where.startswith("memory://"):
        return Store(MemoryEngine(), clock=clock)
    local = here = None
    if "://" in where:
        from snapstore.engines.objectstore.opening import engine_at

        engine: Engine = engine_at(where, links, cache, options)
        here = Local.beside(where, state)
    else:
        root = Path(where)
        engine, local = LogEngine(root, durable=durable, links=links), Local(root, durable=durable)
    if not create and not engine.exists():
        engine.close()
        raise StoreNotFound(f"there is no store at {where}")
    return Store(engine, clock=clock, local=local, here=here)
