"""Checking a store: every byte against its hash, and every link from every ref and reflog entry.

An engine that can be looked through is, once: what it hands out is counted (see census), and when
all of it fits together nothing has to be followed. Only where something may be missing are the
links followed one by one, to say what that touches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from snapstore.engine import Problem, Progress, Touch
from snapstore.engines.sheet import Scanned
from snapstore.errors import InvalidInput, SnapstoreError
from snapstore.maintenance.census import Census
from snapstore.maintenance.following import Followed, follow, heads, place, tips
from snapstore.maintenance.hidden import Hidden
from snapstore.maintenance.oddpairs import Pairs, read_pairs
from snapstore.maintenance.touches import Touches

if TYPE_CHECKING:
    from snapstore.store import Store

_Place: TypeAlias = tuple[str | None, int | None]
"""Path and offset."""


@runtime_checkable
class InFiles(Protocol):
    """An engine whose objects lie in files that a collection may replace."""

    @property
    def rewrites(self) -> int:
        """How often its files were found replaced by a collection."""

    def kind(self, object_id: bytes) -> int:
        """The kind of an object, without reading its content."""


@runtime_checkable
class Purging(Protocol):
    """An engine that others may purge meanwhile, on other machines too."""

    def purged(self) -> str:
        """The name of the last purge, as it is now; each has another."""


def verify(
    store: Store,
    progress: Progress | None = None,
    *,
    quick: bool = False,
    share: float = 1.0,
) -> Iterator[Problem]:
    """The problems of a store, none when all is well.

    Everything is read again; when share is less than 1, that part of the contents, where the engine
    can. Then the links: an object that is whole but refers to one that is gone is found here. Each
    problem says which turns it touches. A quick verification does only that, and reads no content.

    In what is whole, tool results that answer no call are told too. They are harmless: a model's
    API refuses them, but they are as they were saved.
    """
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidInput(f"a share is a number from 0 to 1, not {share!r}")
    share = 0.0 if quick else share
    pairs = Pairs(store.objects) if share >= 1 else None
    read = _read(store, progress, share, pairs)
    hurt = any(not problem.harmless for problem in read.problems)
    followed = Followed([], ()) if read.fits and not hurt else _followed(store)
    if hurt or followed.met:
        yield from _told(store, read, followed)
        return
    yield from read.problems
    if pairs is not None:
        if not isinstance(store.engine, Scanned):
            read_pairs(pairs, store.objects, tips(store, _told_already))
        yield from _odd(store, pairs)


# --- the bytes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Read:
    """What came of reading everything."""

    problems: Sequence[Problem]
    fits: bool = False
    """Whether it is known that all links lead somewhere."""
    hidden: Mapping[_Place, Sequence[Touch]] = field(default_factory=dict)
    """The turns that were saved behind damage, by its place."""


def _read(store: Store, progress: Progress | None, share: float, pairs: Pairs | None) -> _Read:
    engine = store.engine
    found: list[Problem] = []
    if not isinstance(engine, Scanned):
        return _Read(list(engine.verify(progress)) if share > 0 else [])
    cut = engine.cut_off
    census, hidden = Census(store.objects, pairs), Hidden(store)
    # Before anything is read: what others save meanwhile may come too late to be seen.
    census.expect(tips(store, lambda error: census.doubt()))
    for seen in engine.scan(share, progress):
        if isinstance(seen, Problem):
            found.append(seen)
            continue
        census.add(seen)
        if cut is not None:
            hidden.add(seen)
    behind = {place(cut): hidden.touches()} if cut is not None else {}
    return _Read(found, census.settle(), behind)


def _followed(store: Store) -> Followed:
    engine = store.engine
    # Contents were hashed before, or are not to be read: here it is enough that they are there.
    kind = engine.kind if isinstance(engine, InFiles) else None
    while True:
        before = _rewrites(store)
        followed = follow(store, kind)
        if not followed.met or _rewrites(store) == before:
            return followed  # else what was only to be looked at was collected or purged meanwhile


def _rewrites(store: Store) -> object:
    """What is another after each time that objects were let go of."""
    engine = store.engine
    if isinstance(engine, InFiles):
        return engine.rewrites
    return engine.purged() if isinstance(engine, Purging) else None


# --- telling -------------------------------------------------------------------------------------


def _told(store: Store, read: _Read, followed: Followed) -> Iterator[Problem]:
    """All problems, each once, with the turns that they touch."""
    problems = [*read.problems, *(met.problem for met in followed.met)]
    wanted = {problem.id for problem in problems if problem.id}
    touches = Touches(store, wanted, followed.chunked)
    touches.walk(tips(store, _told_already))
    touches.walk_rest(lambda: heads(store, _told_already))
    at: dict[_Place, set[bytes]] = {}
    for problem in problems:
        if problem.id:
            at.setdefault((problem.path, problem.offset), set()).add(problem.id)
    said: set[_Place] = set()
    for problem, ids in _alike(read.problems):
        here = problem.path, problem.offset
        said.add(here)
        held = touches.of(ids) if ids else touches.at(here, at.get(here, ()))
        yield problem._replace(touches=(*held, *read.hidden.get(here, ())))
    yield from _of_links(followed, said, touches)


def _alike(problems: Iterable[Problem]) -> Iterable[tuple[Problem, list[bytes]]]:
    """The problems, of those that say the same of several objects at one place only the first; and
    these objects."""
    alike: dict[Problem, tuple[Problem, list[bytes]]] = {}
    for problem in problems:
        _, ids = alike.setdefault(problem._replace(id=None), (problem, []))
        ids += [problem.id] if problem.id else []
    return alike.values()


def _of_links(followed: Followed, told: set[_Place], touches: Touches) -> Iterator[Problem]:
    said: set[str] = set()
    for problem, error in followed.met:
        here = problem.path, problem.offset
        if problem.id is None:
            # A batch that reading the files has told of is met again where its moves are wanted.
            if here not in told:
                told.add(here)
                yield problem._replace(touches=touches.at(here, ()))
        elif problem.path is not None or str(error) not in said:
            said.add(str(error))
            yield problem._replace(touches=touches.of([problem.id]) or touches.like(error))


def _told_already(error: SnapstoreError) -> None:
    """Moves that cannot be read were told of where they were first met."""


def _odd(store: Store, pairs: Pairs) -> Iterator[Problem]:
    """What is odd about tool results in turns that refs lead to."""
    if not pairs.found:
        return
    touches = Touches(store, {odd.node for odd in pairs.found}, None)
    touches.walk(tips(store, _told_already))
    met = [(held, odd) for odd in pairs.found if (held := touches.of([odd.node]))]
    # From the end of each history to its beginning: so each is read once.
    met.sort(key=lambda one: (one[0][0].ref, one[1].position), reverse=True)
    told = [(held, odd, pairs.told(odd)) for held, odd in met]
    for held, odd, what in reversed(told):
        message = f"message {odd.position}: {what}"
        yield Problem("pair", None, None, odd.message, message, True, held, odd.position)
